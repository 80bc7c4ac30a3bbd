"""A witness judged on rows that it was not found on, corrected for others judged beside it, and read out in numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._text import printable
from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_level, check_sample, check_seed, check_witness
from polycal.families.kernel_lists import ListedKernelWitness
from polycal.families.questions import SubsetWitness, TopWitness
from polycal.families.top_set import TopSetWitness
from polycal.families.witness import Witness
from polycal.inference.betting import lower_bound, p_value, set_up, standard_error
from polycal.listed import ListedSample
from polycal.sample import Question, Remainder, Sample, ask_members, refuse_lists, row_blocks


@dataclass(frozen=True, eq=False)
class Certificate:
    """A witness judged on data it was not found on.

    Attributes
    ----------
    estimate : float
        The weighted mean of ``<y - v, w(v)>`` over the rows: unbiased for the witness's true correlation.
    lower_bound : float
        Below the true correlation with probability at least ``1 - alpha``. More than 0 proves miscalibration.
    p_value : float
        Of the hypothesis that the true correlation is at most 0, as it is for calibrated predictions.
    alpha : float
        The probability that `lower_bound` is wrong, at most.
    n_samples : int
        Number of rows.
    witness : Witness or None
        What was judged; None where it is no weight function.
    std_error : float
        The usual standard error of `estimate`; `lower_bound` and `p_value` do not rely on it.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.SubsetAuditor().find_witness(made.labels[:400], made.proba[:400])
    >>> certificate = pc.certify(witness, made.labels[400:], made.proba[400:])
    >>> certificate.lower_bound < certificate.estimate
    True
    """

    estimate: float
    lower_bound: float
    p_value: float
    alpha: float
    n_samples: int
    witness: Witness | None
    std_error: float

    @property
    def is_significant(self) -> bool:
        """Whether miscalibration is shown at level `alpha`."""
        return self.p_value <= self.alpha

    def __str__(self) -> str:
        numbers = f"estimate {self.estimate:.4f} ± {self.std_error:.4f}, p = {self.p_value:.2g}, n = {self.n_samples}"
        if self.is_significant:
            finding = f"miscalibrated by at least {self.lower_bound:.4f} at {1 - self.alpha:.4g} confidence"
        else:
            finding = "no miscalibration shown"
        words = "" if self.witness is None else printable(self.witness.describe())
        return f"{words} {finding} ({numbers})"


def certify(
    witness: Witness,
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    random_state: Seed = 0,
    remainder: Remainder = "unknown",
    features: Any = None,
) -> Certificate:
    r"""Judge a witness on data it was not found on.

    The data must be new to the witness: on the rows it was found on, any search finds something.

    Parameters
    ----------
    witness : Witness
        A function from predictions to [-1, 1]^k, found on other rows.
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities, or lists of classes as for `smooth_calibration_error`.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`. A row of weight 2 counts double but is not two independent rows.
    random_state : int, Generator or None, default 0
        Seed of the orders in which rows are bet on. The order in which they are given does not matter.
    remainder : {"unknown", "spread", "anywhere", "class"}
        As for `smooth_calibration_error`.
    features : data frame, mapping or array of shape (n_samples, n_features), optional
        As for `audit`. A witness of a slice is judged on the rows of that slice.

    Returns
    -------
    Certificate

    See Also
    --------
    mean_lower_bound : The bound, its validity and its width.

    Notes
    -----
    Definition: the witness's correlation is :math:`\mathbb{E}\langle y - v, w(v) \rangle`, which is 0 if
    predictions are calibrated in any sense that allows the weight function w. Estimator: the mean over the rows,
    in float64. The bound and the p-value hold for any distribution and any n, by betting. They judge this
    witness only: judging many and reporting the best needs a correction, such as Holm's.
    The bound is one for the error of a notion when the witness belongs to its weight family.

    Of lists, the certificate is one of the full predictions: for a set of classes each row counts with the least
    correlation that any completion of its list has, so that what is certified holds however the rest was distributed.
    For the most likely class, and for a kernel witness of lists, nothing is unknown. Other witnesses need full
    predictions.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, test = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> witness = pc.estimate_error(fit.labels, fit.proba, pc.Confidence(smooth=True)).witness
    >>> certificate = certify(witness, test.labels, test.proba)
    >>> certificate.lower_bound <= certificate.estimate
    True
    """
    check_level(alpha)
    random_state = check_seed(random_state)
    check_witness(witness)
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
        features=features,
    )
    return certify_sample(witness, sample, alpha, random_state)


def certify_sample(witness: Witness, sample: Sample, alpha: float, random_state: Seed = 0) -> Certificate:
    """Judge a witness on a validated sample."""
    sample = witness.part(sample)
    if sample.n_samples == 0:
        raise ValueError("no row is in the slice that the witness is about.")
    correlations = witness.correlations(sample)
    bound = correlation_bound(witness)
    values = (correlations + bound) / (2.0 * bound)
    game = set_up(values.clip(0.0, 1.0), sample.sample_weight, random_state)
    return Certificate(
        estimate=2.0 * bound * game.mean - bound,
        lower_bound=2.0 * bound * lower_bound(game, alpha) - bound,
        p_value=p_value(game, 0.5),
        alpha=alpha,
        n_samples=correlations.size,
        witness=witness,
        std_error=2.0 * bound * standard_error(game.gain[0], game.stake[0]),
    )


def correlation_bound(witness: Witness) -> float:
    """The largest absolute value ``<y - v, w(v)>`` can take: 2, or 1 if w weighs a single yes/no question."""
    witness = getattr(witness, "inner", witness)
    return 1.0 if isinstance(witness, SubsetWitness | TopWitness | TopSetWitness) else 2.0


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Holm's adjusted p-values: rejecting those at most alpha errs at all with probability at most alpha.

    Valid under any dependence between the tests. Of tests with weights, each counts as so many: one of half the weight
    has to be twice as significant.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    weight = np.ones(p.size) if weights is None else np.asarray(weights, dtype=np.float64)
    ratio = p / weight
    order = np.argsort(ratio, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(ratio[order] * left)
    return [float(value) for value in np.minimum(adjusted, 1.0)]


@dataclass(frozen=True)
class Reading:
    """Where a question is answered worst: what was predicted there, and what happened.

    Attributes
    ----------
    question : str
        The yes/no question.
    low, high : float
        The range of predicted probabilities that was looked at (chosen on other rows than those averaged).
    predicted, observed : float
        Mean prediction and share of "yes" among the rows in that range; NaN if there are none.
    share : float
        Share of the rows in that range.
    doubt : float
        Of lists: the mean prediction is within this of `predicted`.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> reading = pc.audit(made.labels, made.proba, notions="confidence").worst.reading
    >>> reading.observed < reading.predicted
    True
    """

    question: str
    low: float
    high: float
    predicted: float
    observed: float
    share: float
    doubt: float = 0.0

    def __str__(self) -> str:
        says = f"{self.predicted:.3f}" + (f" ± {self.doubt:.3f}" if self.doubt else "")
        numbers = f"says {says}, is {self.observed:.3f} ({self.share:.0%} of the rows)"
        return f"{printable(self.question)} {numbers}"


def read_witness(witness: Witness, fit: Sample, judge: Sample) -> Reading:
    """Choose the worst range of the witness's main question on ``fit``, and read it off on ``judge``."""
    members = main_question(witness, fit)
    return _read(ask_members(fit, members), ask_members(judge, members))


def main_question(witness: Witness, sample: Sample) -> Ints | int:
    """The classes of the question that a witness is read out by, or how many most likely ones.

    A witness of the whole prediction is read out by the class that adds most to its correlation on these rows.
    """
    if isinstance(witness, TopWitness | TopSetWitness):
        return witness.m if isinstance(witness, TopSetWitness) else 1
    if isinstance(witness, SubsetWitness):
        return witness.members
    return np.array([int(np.argmax(class_contributions(witness, sample)))])


def class_contributions(witness: Witness, sample: Sample) -> Float64s:
    """``E (y_l - v_l) w_l(v)`` of each class; they add up to the witness's correlation (of lists, where listed)."""
    if isinstance(sample, ListedSample) and isinstance(witness, ListedKernelWitness):
        return witness.contributions(sample)
    refuse_lists(sample, f"a {type(witness).__name__}")
    mass, total = sample.mass, np.zeros(sample.n_classes)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        weight = witness.evaluate_rows(sample.take(rows)) * mass[rows, None]
        total -= np.einsum("ij,ij->j", weight, sample.proba[rows])
        hit = np.take_along_axis(weight, sample.labels[rows, None], axis=1)[:, 0]
        total += np.bincount(sample.labels[rows], weights=hit, minlength=sample.n_classes)
    return total


def worst_range(question: Question) -> tuple[float, float]:
    """The range (low, high] of predictions whose residuals have the sum of largest absolute value."""
    order = np.argsort(question.predicted, kind="stable")
    u = question.predicted[order]
    residual = question.hits[order] - u
    if question.weight is not None:
        residual = residual * question.weight[order]
    # Cut only between different predictions; -1 stands before the first.
    last = np.flatnonzero(np.diff(u, append=np.inf) > 0)
    F = np.concatenate([[0.0], np.cumsum(residual)[last]])
    edges = np.concatenate([[-1.0], u[last]])
    first, second = sorted((int(np.argmin(F)), int(np.argmax(F))))
    return (float(edges[first]), float(edges[second])) if first < second else (-1.0, float(edges[-1]))


def _read(fit: Question, judge: Question) -> Reading:
    low, high = worst_range(fit)
    inside = (judge.predicted > low) & (judge.predicted <= high)
    weight = np.ones(inside.size) if judge.weight is None else judge.weight
    mass = float(weight[inside].sum())
    sums = np.stack([judge.predicted, judge.answers, judge.doubt]) @ (weight * inside)
    predicted, observed, doubt = (
        (float(total) for total in sums / mass) if mass > 0 else (np.nan, np.nan, 0.0)
    )
    return Reading(judge.text, max(low, 0.0), high, predicted, observed, mass / float(weight.sum()), doubt)
