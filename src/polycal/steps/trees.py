"""A step of trees: from a prediction and features to a prediction, through another program and a sum of small trees."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.steps._base import Branches, Program, Step, run
from polycal.steps.columns import FLOOR
from polycal.steps.rows import Softmax
from polycal.storage.rules import Array, Whole, expect

# Logarithms of probabilities below this count as this where trees look at them or stretch them.
LOWEST = -12.0


@dataclass(frozen=True, eq=False)
class Boosted(Step):
    """``softmax(l + b + s max(l, -12))`` with l the logarithm of a program's prediction, and b and s from trees.

    Rows are ``n_classes`` probabilities and then features. Each tree is complete: node i has the children 2 i + 1 and
    2 i + 2, a node without a feature hands its rows to the first, and the leaves are told in order. Trees see the
    features, and then l of the classes in ``seen``. Their values are b of the classes in ``shifted``, and s.

    Attributes
    ----------
    branches : tuple of one program
        From probabilities to probabilities.
    n_classes : int
    seen, shifted : ndarray of int64
        Classes.
    feature : ndarray of int64, shape (n_trees, n_nodes)
        The column that a node looks at; -1 if none.
    threshold : ndarray of float64, shape (n_trees, n_nodes)
        Rows below it, or of a category equal to it, go to the first child.
    equal, missing_left : ndarray of bool, shape (n_trees, n_nodes)
        Whether the node is about one category; whether rows whose value is missing go to the first child.
    values : ndarray of float64, shape (n_trees, n_nodes + 1, n_values)
    n_features : int
        Columns beside the probabilities.
    """

    branches: Annotated[tuple[Program, ...], Branches()]
    n_classes: Annotated[int, Whole(low=2)]
    n_features: Annotated[int, Whole(low=1)]
    seen: Annotated[Ints, Array("int64", "n_seen", low=0, below="n_classes", rises=True)]
    shifted: Annotated[Ints, Array("int64", "n_shifted", low=0, below="n_classes", rises=True)]
    feature: Annotated[Ints, Array("int64", "n_trees n_nodes", low=-1)]
    threshold: Annotated[Float64s, Array("float64", "n_trees n_nodes", low=-np.inf, high=np.inf)]
    equal: Annotated[Bools, Array("bool", "n_trees n_nodes")]
    missing_left: Annotated[Bools, Array("bool", "n_trees n_nodes")]
    values: Annotated[Float64s, Array("float64", "n_trees n_nodes+1 n_values", low=-1e3, high=1e3)]
    family: ClassVar[str] = "boosted"

    def _check(self) -> None:
        super()._check()
        leaves = self.feature.shape[1] + 1
        expect(len(self.branches) == 1, "there must be one program")
        expect(leaves & (leaves - 1) == 0, "trees must be complete")
        expect(self.feature.max(initial=-1) < self.n_features + self.seen.size, "nodes must look at a column")
        expect(
            self.values.shape[2] == self.shifted.size + 1, "leaves must have a value for each class shifted"
        )

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        from polycal._compiled.boosting import tree_sums  # noqa: PLC0415 - imports numba

        k = self.n_classes
        if rows.shape[1] != k + self.n_features:
            raise ValueError(f"{k} probabilities and {self.n_features} features are needed.")
        log_proba = np.log(np.maximum(run(self.branches[0], rows[:, :k]), FLOOR))
        stretched = np.maximum(log_proba, LOWEST)
        inputs = np.ascontiguousarray(np.hstack([rows[:, k:], stretched[:, self.seen]]))
        found = tree_sums(inputs, self.feature, self.threshold, self.equal, self.missing_left, self.values)
        log_proba += found[:, -1:] * stretched
        log_proba[:, self.shifted] += found[:, :-1]
        return Softmax()(log_proba)
