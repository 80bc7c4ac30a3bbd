"""Slices: rows that their features name, and the question that is answered wrongly there.

A witness may look at the features x of a row as well as at its prediction v: for w(x, v) in [-1, 1]^k everything that
certificates say holds unchanged. A slice is the simplest such function: a witness of v where its conditions hold.
"""

from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Floats
from polycal._validation import check_integer, check_seed
from polycal.families._slice_bins import Bins, Condition, Interval, column_bins
from polycal.families._slice_search import Found, search_slices
from polycal.families.auditor import Auditor, weighted_rows
from polycal.families.learner import LearnerAuditor, LearnerWitness, learnt_columns
from polycal.families.questions import SubsetWitness, TopWitness
from polycal.families.witness import Witness
from polycal.features import Features
from polycal.measures.smooth import smooth_curve
from polycal.sample import Sample, ask_members
from polycal.storage.rules import Part, expect

__all__ = [
    "Condition",
    "Interval",
    "SliceAuditor",
    "SliceWitness",
    "column_importance",
    "column_slices",
    "feature_learner",
    "slice_rows",
]
# Values of a column that make named slices, at most; numbers with more values are cut into quarters.
_MOST_NAMED, _QUARTERS = 12, 4


def slice_rows(conditions: tuple[Condition, ...], features: Features | None) -> Bools:
    """Which rows fulfil all conditions."""
    if features is None:
        raise ValueError(
            "a slice is a set of rows by their features, and these rows have none; give features."
        )
    inside = np.ones(features.n_rows, dtype=np.bool_)
    for condition in conditions:
        inside &= condition.rows(features)
    return inside


@dataclass(frozen=True, eq=False, repr=False)
class SliceWitness(Witness):
    """w(x, v) = 1[x fulfils all conditions] u(v): a witness u of the prediction, on the rows of a slice.

    A certificate of it is one of u among the rows of the slice: how far off the question is *there*.

    Attributes
    ----------
    conditions : tuple of Condition
        What the rows of the slice have in common.
    inner : Witness
        u, what is asked of these rows.

    Examples
    --------
    >>> import polycal as pc
    >>> data = pc.datasets.make_slices(4000, random_state=0)
    >>> witness = pc.SliceAuditor().find_witness(data.labels, data.proba, features=data.features)
    >>> [condition.column for condition in witness.conditions]
    ['device']
    """

    conditions: Annotated[tuple[Condition, ...], Part((Condition,), many="n_conditions")]
    inner: Annotated[Witness, Part((Witness,))]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "slice"

    def _check(self) -> None:
        super()._check()
        expect(len(self.conditions), "a slice must have a condition")
        expect(self.inner.n_classes == self.n_classes, "the question must be one of the same classes")

    @property
    def subset(self) -> list[int] | list[str] | None:
        """The classes of the question: names if known, else indices; None if it is about the most likely one."""
        return self.inner.subset if isinstance(self.inner, SubsetWitness) else None

    def part(self, sample: Sample) -> Sample:
        """The rows of the slice."""
        return sample.take(slice_rows(self.conditions, sample.features))

    def evaluate(self, proba: Floats) -> Float64s:  # noqa: ARG002 - it is not enough
        """Refused: the features are missing."""
        raise ValueError("a witness of a slice looks at features; give them: witness(y_proba, features=...).")

    def evaluate_rows(self, sample: Sample) -> Float64s:
        """The values of the inner witness in the slice, 0 elsewhere."""
        inside = slice_rows(self.conditions, sample.features)
        values: Float64s = self.inner.evaluate(sample.proba) * inside[:, None]
        return values

    def correlations(self, sample: Sample) -> Float64s:
        """Those of the inner witness in the slice, 0 elsewhere."""
        inside = slice_rows(self.conditions, sample.features)
        return self.inner.correlations(sample) * inside

    def describe(self) -> str:
        """The slice and the question."""
        return f"where {self.where()}: {self.inner.describe()}"

    def where(self) -> str:
        """The slice in words."""
        return " and ".join(condition.words() for condition in self.conditions)


@dataclass(frozen=True)
class SliceAuditor(Auditor):
    r"""Look for the rows whose predictions are off: values and intervals of columns, and pairs of them.

    Parameters
    ----------
    n_slices : int, default 24
        How many slices `find_slices` returns at most, the most promising first.
    random_state : int, default 0
        Seed of the rows that are looked at where they are too many.

    Notes
    -----
    Definition: the weights are :math:`1[x \in S]\,\varphi(\langle 1_T, v \rangle) 1_T` with S a value, an interval or
    missing values of one column, or two such conditions, T a set of at most five classes (or the most likely one), and
    1-Lipschitz :math:`\varphi`. The error of a slice is that of its question *among its rows*.
    Search: for every class, every pair of up to 12 classes, and the most likely class, residuals and residuals times
    predictions are added up in bins of every column (categories; numbers at 16 quantiles; missing values); sums of bins
    in a row are intervals. A slice is judged by the chi-square statistic of these sums or of their difference from
    those of all rows, whichever is smaller. Conjunctions start from values, quarters and halves of one column. The
    strongest slices are looked at more closely: their set of classes grows one by one while that is worth more than
    chance would give. Of slices that share most of their rows the strongest is told.
    Cost: O(n d q) for d columns and q questions, for conjunctions some seven times that for each column, on at most
    about 20,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> data = pc.datasets.make_slices(4000, random_state=0)
    >>> witness = pc.SliceAuditor().find_witness(data.labels, data.proba, features=data.features)
    >>> [condition.column for condition in witness.conditions]
    ['device']
    """

    _: KW_ONLY
    n_slices: int = 24
    random_state: int = 0

    def __post_init__(self) -> None:
        check_integer(self.n_slices, "n_slices", minimum=1)
        check_seed(self.random_state)

    def find(self, sample: Sample) -> SliceWitness:
        """The most promising slice of a validated sample."""
        found = self.find_slices(sample)
        if not found:
            raise ValueError("no column of features has two values with enough rows each to be slices.")
        return found[0]

    def find_slices(self, sample: Sample, n_jobs: int | None = None) -> list[SliceWitness]:
        """The most promising slices of a validated sample with features, best first."""
        sample = weighted_rows(sample)
        found = search_slices(sample, self.random_state, n_jobs)[: self.n_slices]
        return [_witness(one, sample) for one in found]


def _witness(found: Found, sample: Sample) -> SliceWitness:
    """The slice with the weight function that is best on its rows."""
    inside = sample.take(slice_rows(found.conditions, sample.features))
    members = 1 if found.members is None else np.array(found.members)
    phi = smooth_curve(ask_members(inside, members)).phi.simplified()
    k, names = sample.n_classes, sample.class_names
    inner = (
        TopWitness((phi,), k, names) if isinstance(members, int) else SubsetWitness(members, phi, k, names)
    )
    return SliceWitness(found.conditions, inner, k, names)


def column_slices(features: Features, names: tuple[str, ...]) -> dict[str, tuple[Condition, ...]]:
    """The slices that columns name: their most frequent values, quarters of numbers, missing values."""
    slices: dict[str, tuple[Condition, ...]] = {}
    for name in names:
        for condition in _named_conditions(column_bins(features, name, 1)):
            slices[condition.words()] = (condition,)
    return slices


def _named_conditions(bins: Bins) -> list[Condition]:
    m = bins.n_numbers
    if m <= _MOST_NAMED:
        missing = [one for one in bins.conditions[m:] if one.test == "missing"]
        return [*[one for one in bins.conditions if one.test != "missing"][:_MOST_NAMED], *missing]
    counts = np.bincount(bins.codes[bins.codes >= 0], minlength=bins.n_bins)[:m]
    share = np.cumsum(counts) / max(counts.sum(), 1)
    cuts = [int(np.argmin(np.abs(share - quarter / _QUARTERS))) + 1 for quarter in range(1, _QUARTERS)]
    starts = sorted({0, *(cut for cut in cuts if cut < m), m})
    spans = pairwise(starts)
    return [*(bins.condition(*span) for span in spans), *bins.conditions[m:]]


def feature_learner(features: Features, n_classes: int, seed: int) -> LearnerAuditor:
    """The default learner of functions of (x, v, log v): gradient-boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - not at `import polycal`

    coded = [column.is_coded for column in learnt_columns(features)] + [False] * (2 * n_classes)
    trees = HistGradientBoostingRegressor(
        max_iter=50,
        max_leaf_nodes=12,
        min_samples_leaf=40,
        categorical_features=np.array(coded),
        early_stopping=False,
        random_state=seed,
    )
    return LearnerAuditor(trees, draw=False, random_state=seed)


def column_importance(
    witness: LearnerWitness, sample: Sample, seed: int, most_values: int = 200_000
) -> dict[str, float]:
    """What the correlation loses when a column is shuffled among these rows, largest first: permutation importance.

    0 for losses within two standard errors, but for the largest; 0 for all columns if shuffling all of them together
    loses no more than that: then the witness looks at predictions alone. Random rows stand for all where these would be
    more than so many values of estimators.
    """
    features = sample.features
    if features is None:
        return {}
    rng = np.random.default_rng(seed)
    n_rows = max(1, most_values // max(1, (len(features.columns) + 1) * len(witness.estimators)))
    rows = rng.permutation(sample.n_samples)[:n_rows]
    part, values = sample.take(rows), features.values[rows]
    whole = witness.correlations(part)

    def lost(places: slice | list[int]) -> tuple[float, bool]:
        """The mean loss, and whether it is beyond two standard errors."""
        shuffled = values.copy()
        shuffled[:, places] = values[rng.permutation(values.shape[0])][:, places]
        loss = whole - witness.correlations(replace(part, features=Features(shuffled, features.columns)))
        mean = float(part.mass @ loss)
        return mean, mean > 2.0 * float(np.linalg.norm(part.mass * (loss - mean)))

    if not lost(slice(None))[1]:
        return dict.fromkeys(features.names, 0.0)
    losses = {name: lost([place]) for place, name in enumerate(features.names)}
    most = max(mean for mean, _ in losses.values())
    kept = {
        name: max(mean, 0.0) if beyond or mean == most else 0.0 for name, (mean, beyond) in losses.items()
    }
    return dict(sorted(kept.items(), key=lambda item: -item[1]))
