"""Answers at some depth of a tree of classes: how often they are wrong, for each of some thresholds."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from scipy.stats import beta, binom

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_level, check_seed
from polycal.sample import Sample, sums_at
from polycal.states.base import State
from polycal.states.sums import Runs
from polycal.states.tally import CELL, Bets
from polycal.storage.rules import Array, Part, Real, Whole, expect
from polycal.storage.saved import Checked
from polycal.taxonomy import Taxonomy


@dataclass(frozen=True)
class DepthCertificate(Checked):
    """What is certified of answers at some depth of a tree.

    Attributes
    ----------
    threshold : float
        The least probability of a node that is answered.
    risk : float
        Share of wrong answers on the rows of the fit, at this threshold.
    at_most : float
        The true risk is at most this, with probability 1 - alpha.
    alpha : float
    n_samples : int
        Rows of positive weight.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> deep = pc.AnswerDepth({"a": ["0", "1"], "b": ["2", "3"]}, risk=0.5).fit(
    ...     made.proba, made.labels, class_names=["0", "1", "2", "3"]
    ... )
    >>> deep.certificate_.risk <= deep.certificate_.at_most <= 0.5
    True
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "depth"

    threshold: Annotated[float, Real(low=0, high=1)]
    risk: Annotated[float, Real(low=0, high=1)]
    at_most: Annotated[float, Real(low=0, high=1)]
    alpha: Annotated[float, Real(low=0, high=1)]
    n_samples: Annotated[int, Whole(low=1)]


class DepthSummary(NamedTuple):
    """The certificate of the most specific threshold that has one, and how specific its answers are."""

    certificate: DepthCertificate | None
    specificity: float


class DepthState(State):
    """Count for each threshold how often the deepest node of at least that probability is wrong.

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree of the classes.
    risk, alpha, n_thresholds, random_state
        As for `AnswerDepth`.

    Notes
    -----
    As the threshold sinks, the answer of a row goes down one path, and is wrong from some threshold on. So a row is one
    number, and with its weight a key that adds up. `finish` returns the certificate and the specificity of
    `AnswerDepth`. Cost: O(n nodes). Memory: a number for each threshold and weight.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> from polycal.states import DepthState
    >>> state = DepthState(pc.make_taxonomy({"pet": ["0", "1"], "car": ["2"]}), risk=0.1)
    >>> state.update([0, 1] * 50, np.tile([0.5, 0.4, 0.1], (100, 1))).finish().certificate.risk
    0.0
    """

    family: ClassVar[str] = "depth"

    taxonomy: Annotated[Taxonomy, Part((Taxonomy,))]
    risk: Annotated[float, Real(low=0, high=1)]
    alpha: Annotated[float, Real(low=0, high=1)]
    n_thresholds: Annotated[int, Whole(low=2)]
    random_state: Annotated[int, Whole()]
    _wrong: Annotated[Runs, Part((Runs,))]
    _specificity: Annotated[Float64s, Array("float64", "n_thresholds", low=0)]

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        risk: float = 0.05,
        alpha: float = 0.05,
        n_thresholds: int = 50,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(taxonomy, Taxonomy):
            raise TypeError(
                f"taxonomy must be a Taxonomy, as make_taxonomy makes it; got {type(taxonomy).__name__}."
            )
        self.taxonomy, self.risk, self.alpha = taxonomy, check_level(risk, name="risk"), check_level(alpha)
        self.n_thresholds = check_integer(n_thresholds, "n_thresholds", minimum=2)
        self.random_state = check_seed(random_state)
        # Keys are the first threshold at which rows are wrong, and their weight; their number adds up.
        self._wrong = Runs(2, np.zeros((3, 0)))
        self._specificity = np.zeros(self.n_thresholds)

    @property
    def thresholds(self) -> Float64s:
        """From careful to specific."""
        return np.linspace(1.0, 0.0, self.n_thresholds)

    def finish(self) -> DepthSummary:
        """Thresholds are tested from careful to specific, until the first that cannot be certified."""
        self._seen()
        first, weight, count = self._wrong.whole()
        certificate, specificity = None, 0.0
        for number, threshold in enumerate(self.thresholds):
            wrong = first <= number
            mean = float((weight * count)[wrong].sum() / self.total_weight)
            p_value, at_most = self._judged(wrong, weight, count)
            if p_value > self.alpha:
                break
            certificate = DepthCertificate(
                float(threshold), mean, min(at_most, self.risk), self.alpha, int(count.sum())
            )
            specificity = float(self._specificity[number] / self.total_weight)
        return DepthSummary(certificate, specificity)

    def _judged(self, wrong: Ints, weight: Float64s, count: Float64s) -> tuple[float, float]:
        """The p-value of "the risk is larger", and an upper bound of the risk: exact, or with weights by betting."""
        if (weight == weight[0]).all():
            n, n_wrong = int(count.sum()), int(count[wrong].sum())
            bound = beta.ppf(1.0 - self.alpha, n_wrong + 1, n - n_wrong) if n_wrong < n else 1.0
            return float(binom.cdf(n_wrong, n, self.risk)), float(bound)
        bets = Bets(np.stack([np.where(wrong, 0.0, 1.0 / CELL), weight, count]), self.random_state)
        return bets.p_value(1.0 - self.risk), 1.0 - bets.lower(self.alpha)

    def _open(self, n_classes: int) -> None:
        self.taxonomy.classes(n_classes, self.class_names)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        tree = self.taxonomy
        classes = tree.classes(sample.n_classes, self.class_names)
        nodes, chances = tree.likeliest(sample.proba, classes)
        inside = tree.holds(nodes, sample.labels[:, None], classes)
        # Where the way leaves the label, it never comes back; a leaf that is right is right for ever.
        left = np.where(inside.all(axis=1), -1.0, chances[np.arange(len(nodes)), inside.argmin(axis=1)])
        first = np.searchsorted(-self.thresholds, -left, side="left").astype(np.float64)
        counted = weight > 0
        self._wrong.add(np.stack([first, weight, np.ones(weight.size)])[:, counted])
        self._specificity += self._gained(nodes, chances, weight)

    def _gained(self, nodes: Ints, chances: Float64s, weight: Float64s) -> Float64s:
        """The specificity of all answers at each threshold: every step down the tree adds what it rules out."""
        starts, stops = self.taxonomy.spans
        sizes, k = stops - starts, self.taxonomy.leaves.size
        size = np.where(nodes < 0, 0, sizes[nodes])
        above = np.column_stack([np.full(len(nodes), k), size[:, :-1]])
        ruled_out = np.where(nodes < 0, 0.0, (above - size) / max(k - 1, 1))
        first = np.searchsorted(-self.thresholds, -chances, side="left")
        gains = sums_at(first.ravel(), (weight[:, None] * ruled_out).ravel(), self.n_thresholds + 1)
        return np.cumsum(gains)[:-1]

    def _merge(self, other: "DepthState") -> None:
        self._wrong.merge(other._wrong)
        self._specificity += other._specificity

    def _check_sums(self, n_classes: int) -> None:
        expect(self.taxonomy.leaves.size == n_classes, "the leaves must be the classes")
        expect(self._wrong.n_keys == 2, "thresholds and weights must be the keys")
        first, weight, count = self._wrong.check_columns(3)
        whole = (first == np.floor(first)).all() and (count == np.floor(count)).all()
        expect(whole and ((first >= 0) & (first <= self.n_thresholds)).all(), "thresholds must be numbers")
        expect((weight > 0).all() and (count >= 1).all(), "weights and counts must be positive")
        expect(self._is_total(weight @ count), "weights must add up to that of all rows")
        expect(
            (np.diff(self._specificity) >= -1e-9 * max(self.total_weight, 1.0)).all(), "specificity must rise"
        )
