"""Trees of classes: ``python -m benchmarks.trees nodes | risk``: what nodes cost, how often a risk is not kept."""

import sys
from time import process_time

import numpy as np

import polycal as pc
from benchmarks.timing import best_times
from polycal.auditing.nodes import asked_nodes, node_errors
from polycal.sample import Sample


def random_tree(n_classes, n_inner, seed=0):
    """A tree of so many inner nodes, each below one of the last 200 before it, as deep as WordNet's."""
    rng = np.random.default_rng(seed)
    parents = {"node 0": None}
    for node in range(1, n_inner):
        parents[f"node {node}"] = f"node {rng.integers(max(0, node - 200), node)}"
    above = {*parents} - {*parents.values()}
    # Every inner node has a class below.
    homes = [*above, *(f"node {node}" for node in rng.integers(0, n_inner, n_classes - len(above)))]
    return pc.make_taxonomy(parents | {f"class {c}": home for c, home in enumerate(homes)})


def over_confident(n, k, seed=0):
    """Predictions that are too sure, with labels."""
    rng = np.random.default_rng(seed)
    proba = np.exp(3 * rng.standard_normal((n, k), dtype=np.float32))
    proba /= proba.sum(axis=1, keepdims=True)
    labels = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = proba**1.5
    return Sample(
        sharp / sharp.sum(axis=1, keepdims=True), labels, None, tuple(f"class {c}" for c in range(k))
    )


def nodes(n=10_000, k=1000, n_inner=900):
    """Seconds of processors for all nodes: of rows that are held, and of rows that go by, beyond an audit without."""
    tree, sample = random_tree(k, n_inner), over_confident(n, k)
    asked = asked_nodes(tree, k, sample.class_names)
    node_errors(asked, sample.take(slice(0, 100)), 0.05, 1)  # compile outside the clock

    def audited(taxonomy):
        options = {"class_names": sample.class_names, "auditors": {}, "notions": [], "n_jobs": 1}
        pc.audit(sample.labels, sample.proba, taxonomy=taxonomy, **options)

    audited(tree)
    tasks = [lambda: node_errors(asked, sample, 0.05, 1), lambda: audited(tree), lambda: audited(None)]
    held, streamed, without = best_times(tasks, repeats=3, clock=process_time)
    print(f"{tree}, {n:,} rows: held {held:.2f} s, going by {streamed - without:.2f} s")


def risk(n_fits=1000, n=400, allowed=0.15, alpha=0.05):
    """How often the risk of a fitted model is larger than allowed, and how specific it is beside answers by class."""
    trees = {"tree": {"a": {"b": ["0", "1"], "c": ["2", "3"]}, "d": ["4", "5"]}, "classes": list("012345")}
    population = drawn(20_000, n_fits)
    for name, tree in trees.items():
        broken, specific = 0, []
        for seed in range(n_fits):
            labels, proba, _ = drawn(n, seed)
            model = pc.AnswerDepth(tree, risk=allowed, alpha=alpha).fit(proba, labels)
            broken += true_risk(model, *population[1:]) > allowed
            specific.append(model.specificity_)
        print(
            f"{name}: risk above {allowed:g} in {broken} of {n_fits} fits on {n} rows, "
            f"specificity {np.mean(specific):.3f}"
        )


def drawn(n, seed, sharpness=2.0):
    """Labels, predictions that are too sure, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(6, 0.3), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**sharpness
    return labels, proba / proba.sum(axis=1, keepdims=True), truth


def true_risk(model, proba, truth):
    """The probability that an answer is wrong."""
    found = model.answer(proba).nodes
    sums = model.taxonomy_.sums(truth, model.taxonomy_.classes(6, None))
    return float(np.where(found < 0, 0.0, 1.0 - sums[np.arange(found.size), found]).mean())


if __name__ == "__main__":
    {"nodes": nodes, "risk": risk}[sys.argv[1]]()
