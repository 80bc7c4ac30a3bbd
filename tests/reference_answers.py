"""Answers at some depth of a tree, row by row and threshold by threshold."""

import numpy as np
from scipy.stats import binom

from polycal.inference.betting import p_value, set_up


def leaves(tree):
    """The classes below a part of a tree, by index."""
    if isinstance(tree, dict):
        return [c for part in tree.values() for c in leaves(part)]
    return [int(name) for name in tree]


def parts(tree):
    """What is right below: names, and what is below them."""
    return tree if isinstance(tree, dict) else {name: {} for name in tree}


def classes_of(name, part):
    return [int(name)] if not part else leaves(part)


def answer_of(tree, row, threshold):
    """The path of the deepest node that is likely enough, and its probability."""
    path, chance, here = [], 1.0, parts(tree)
    while here:
        sums = {name: sum(row[c] for c in classes_of(name, part)) for name, part in here.items()}
        best = max(sums, key=sums.get)
        if sums[best] < threshold:
            break
        path, chance, here = [*path, best], sums[best], parts(here[best])
    return path, chance


def below(tree, path):
    """The classes below a path."""
    here, classes = parts(tree), leaves(tree)
    for name in path:
        classes, here = classes_of(name, here[name]), parts(here[name])
    return classes


def holds(tree, path, label):
    """Whether a label is below a path."""
    return int(label) in below(tree, path)


def certified(tree, proba, labels, weight, risk, alpha, n_thresholds, seed):
    """The last threshold that is certified, its share of wrong answers, and their specificity."""
    mass = np.ones(len(labels)) if weight is None else weight
    counted, k = mass > 0, len(leaves(tree))
    found = None, None, 0.0
    for threshold in np.linspace(1, 0, n_thresholds):
        paths = [answer_of(tree, row, threshold)[0] for row in proba]
        right = np.array([holds(tree, path, y) for path, y in zip(paths, labels, strict=True)])[counted]
        if len(set(mass[counted])) == 1:
            p = binom.cdf((~right).sum(), right.size, risk)
        else:
            p = p_value(set_up(right.astype(float), mass[counted], seed), 1 - risk)
        if p > alpha:
            break
        specific = [1 - (len(below(tree, path)) - 1) / (k - 1) for path in paths]
        found = threshold, 1 - np.average(right, weights=mass[counted]), np.average(specific, weights=mass)
    return found
