"""Boosting from a calibrated prediction: small trees of features and log probabilities, by Newton steps of log loss.

A leaf shifts the scores of classes and stretches all log probabilities: a temperature, where its rows are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Ints
from polycal.features import Features
from polycal.sample import Sample, likely_classes, sums_at
from polycal.steps import FLOOR, LOWEST, Boosted, Program, Softmax

# Bins of numbers, and of categories; classes that trees see and shift.
_BINS, _MOST_CODES, _MOST_CLASSES = 32, 63, 20
# How much of a Newton step is taken; what is added to second derivatives; rows of a leaf at least.
_RATE, _PENALTY, _MIN_ROWS = 0.15, 5.0, 25.0
# Values of a leaf, at most.
_LARGEST = 2.0

Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Binning:
    """How inputs are cut into bins: code 0 is missing, and code c > 0 stands for a range or a category.

    Attributes
    ----------
    edges : tuple of ndarray
        Of each input: where the second bin and those after it begin, half-way between values that rows have, so that
        rounding moves no such row; of categories the value of each bin.
    coded : ndarray of bool
        Which inputs are categories.
    """

    edges: tuple[Float64s, ...]
    coded: Bools

    @classmethod
    def of(cls, inputs: Float64s, coded: Bools) -> "Binning":
        """From the values of rows."""
        return cls(
            tuple(_categories(x) if c else _cuts(x) for x, c in zip(inputs.T, coded, strict=True)), coded
        )

    def codes(self, inputs: Float64s) -> Codes:
        """The codes of rows."""
        out = np.zeros(inputs.shape, dtype=np.uint8)
        for place, (edges, coded) in enumerate(zip(self.edges, self.coded, strict=True)):
            x = inputs[:, place]
            known = ~np.isnan(x)
            if coded:
                at = np.searchsorted(edges, x[known])
                found = (
                    (at < edges.size) & (edges[np.minimum(at, edges.size - 1)] == x[known])
                    if edges.size
                    else at < 0
                )
                # What was never seen is like what is missing.
                out[known, place] = np.where(found, at + 1, 0)
            else:
                out[known, place] = np.searchsorted(edges, x[known], side="right") + 1
        return out

    def threshold(self, place: int, split: int) -> float:
        """The value that a split of codes stands for."""
        edges = self.edges[place]
        # All bins on one side: the other has the missing values.
        return float(edges[split - 1]) if split <= edges.size else np.inf


def _cuts(x: Float64s) -> Float64s:
    known = np.sort(x[~np.isnan(x)])
    if known.size == 0:
        return known
    begins = np.searchsorted(known, np.quantile(known, np.arange(1, _BINS) / _BINS, method="higher"))
    begins = np.unique(begins[begins > 0])
    before, after = known[begins - 1], known[begins]
    half = before / 2.0 + after / 2.0
    return np.where(half > before, half, after)


def _categories(x: Float64s) -> Float64s:
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:_MOST_CODES]])


class Tree(NamedTuple):
    """A complete tree, its nodes in order."""

    feature: Ints
    split: Ints
    equal: Bools
    missing_left: Bools
    values: Float64s


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from: a calibrated prediction, features, labels and weights."""

    log_proba: Float64s
    features: Float64s
    labels: Ints
    weight: Float64s

    @classmethod
    def of(cls, sample: Sample, proba: Float64s, features: Float64s) -> "Rows":
        """Of a sample, with calibrated predictions and coded features."""
        weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
        return cls(np.log(np.maximum(proba, FLOOR)), features, sample.labels, weight)

    @property
    def stretched(self) -> Float64s:
        """The log probabilities as trees see them."""
        return np.maximum(self.log_proba, LOWEST)

    def losses(self, proba: Float64s) -> Float64s:
        """The log loss of each row."""
        return -np.log(np.maximum(proba[np.arange(self.labels.size), self.labels], FLOOR))


@dataclass(frozen=True, eq=False)
class Booster:
    """What all trees of a fit have in common."""

    depth: int
    binning: Binning
    seen: Ints
    shifted: Ints

    @classmethod
    def of(cls, rows: Rows, sample: Sample, features: Features, depth: int) -> "Booster":
        """From the rows to learn from."""
        classes = likely_classes(sample, _MOST_CLASSES)
        coded = np.array([column.is_coded for column in features.columns] + [False] * classes.size)
        inputs = np.hstack([rows.features, rows.stretched[:, classes]])
        return cls(depth, Binning.of(inputs, coded), classes, classes)

    def codes(self, rows: Rows) -> Codes:
        """The codes of rows."""
        return self.binning.codes(np.hstack([rows.features, rows.stretched[:, self.seen]]))

    def boost(self, rows: Rows, others: Rows | None, n_rounds: int) -> Iterator[tuple[Tree, Float64s | None]]:
        """Tree after tree, each with the predictions of other rows by all trees so far."""
        parts = [rows] if others is None else [rows, others]
        codes = [self.codes(part) for part in parts]
        scores = [part.log_proba.copy() for part in parts]
        for _ in range(n_rounds):
            tree = self._grow(codes[0], _sums(rows, Softmax()(scores[0]), self.shifted))
            for place, part in enumerate(parts):
                added = tree.values[self._leaves(tree, codes[place])]
                scores[place] += added[:, -1:] * part.stretched
                scores[place][:, self.shifted] += added[:, :-1]
            yield tree, None if others is None else Softmax()(scores[1])

    def _grow(self, codes: Codes, sums: Float64s) -> Tree:
        """A tree of the best splits, level by level."""
        from polycal._compiled.boosting import descend, node_sums  # noqa: PLC0415 - imports numba

        node = np.zeros(codes.shape[0], dtype=np.int64)
        n_bins = int(codes.max()) + 1
        levels = []
        for level in range(self.depth):
            tables = node_sums(codes, node, sums, 1 << level, n_bins)
            found = [_best_split(table, self.binning.coded) for table in tables]
            feature, split = (np.array([one[i] for one in found], dtype=np.int64) for i in (0, 1))
            equal, left = (np.array([one[i] for one in found], dtype=np.bool_) for i in (2, 3))
            node = descend(codes, node, feature, split, equal, left)
            levels.append((feature, split, equal, left))
        feature, split, equal, left = (np.concatenate(part) for part in zip(*levels, strict=True))
        total = np.stack([sums_at(node, column, 1 << self.depth) for column in sums.T], axis=1)
        return Tree(feature, split, equal, left, _RATE * _steps(total))

    def _leaves(self, tree: Tree, codes: Codes) -> Ints:
        from polycal._compiled.boosting import descend  # noqa: PLC0415 - imports numba

        node = np.zeros(codes.shape[0], dtype=np.int64)
        for level in range(self.depth):
            own = slice((1 << level) - 1, (2 << level) - 1)
            node = descend(codes, node, *(part[own] for part in tree[:4]))
        return node

    def step(self, program: Program, trees: list[Tree], n_classes: int, n_features: int) -> Boosted:
        """The trees as a step after a program."""
        thresholds = [
            [
                self.binning.threshold(max(int(f), 0), int(s))
                for f, s in zip(tree.feature, tree.split, strict=True)
            ]
            for tree in trees
        ]
        feature, equal, missing_left, values = (
            np.stack([getattr(tree, name) for tree in trees])
            for name in ("feature", "equal", "missing_left", "values")
        )
        return Boosted(
            (program,),
            n_classes,
            n_features,
            self.seen,
            self.shifted,
            feature,
            np.array(thresholds),
            equal,
            missing_left,
            values,
        )


def _sums(rows: Rows, proba: Float64s, shifted: Ints) -> Float64s:
    """First derivatives, second derivatives and weight of each row: of shifts, of the stretch."""
    residual = -proba
    residual[np.arange(rows.labels.size), rows.labels] += 1.0
    stretched = rows.stretched
    mean = np.einsum("ij,ij->i", proba, stretched)
    slope = np.einsum("ij,ij->i", residual, stretched)
    bend = np.einsum("ij,ij->i", proba, stretched**2) - mean**2
    chosen = proba[:, shifted]
    parts = [
        residual[:, shifted],
        slope[:, None],
        chosen * (1.0 - chosen),
        bend[:, None],
        np.ones((slope.size, 1)),
    ]
    out: Float64s = np.ascontiguousarray(np.hstack(parts) * rows.weight[:, None])
    return out


def _steps(sums: Float64s) -> Float64s:
    """Newton steps from sums."""
    m = (sums.shape[-1] - 1) // 2
    return np.clip(sums[..., :m] / (sums[..., m : 2 * m] + _PENALTY), -_LARGEST, _LARGEST)


def _gain(sums: Float64s) -> Float64s:
    """What Newton steps gain, twice; minus infinity for too few rows."""
    m = (sums.shape[-1] - 1) // 2
    gain: Float64s = (sums[..., :m] ** 2 / (sums[..., m : 2 * m] + _PENALTY)).sum(axis=-1)
    return np.where(sums[..., -1] >= _MIN_ROWS, gain, -np.inf)


def _best_split(table: Float64s, coded: Bools) -> tuple[int, int, bool, bool]:
    """The column, the code, whether it is one category, and where missing values go; column -1 if nothing gains."""
    total = table[0].sum(axis=0)
    below = np.cumsum(table, axis=1)
    alone = np.where(coded[:, None, None], table, below)
    choices = np.stack([alone - np.where(coded, 0.0, 1.0)[:, None, None] * table[:, :1], alone])
    gains = _gain(choices) + _gain(total - choices)
    gains[:, :, 0] = -np.inf
    # One category and missing values together are no split that can be told.
    gains[1, coded] = -np.inf
    left, feature, split = np.unravel_index(int(np.argmax(gains)), gains.shape)
    if not gains[left, feature, split] > _gain(total):
        return -1, 0, False, True
    return int(feature), int(split), bool(coded[feature]), bool(left)
