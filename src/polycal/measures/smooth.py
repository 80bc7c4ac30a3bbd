"""The smooth calibration error of one question, exactly, and the function of the prediction that attains it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal._validation import check_sample, check_subset
from polycal.measures.functions import LipschitzFunction, ScalarFunction
from polycal.sample import Question, Remainder, ask

# Slopes are differences of rounded numbers over such differences.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """The smooth calibration error of one question, with the curves that show where it comes from.

    The error is ``|R|``, the mean residual, plus the area between the cumulative residual curve F and the
    monotone curve S (from 0 to R) nearest to it.

    Attributes
    ----------
    value : float
        The smooth calibration error, in [0, 1].
    predicted : ndarray of shape (n_samples,)
        The predicted probabilities in increasing order.
    cumulative : ndarray of shape (n_samples,)
        F: the weighted sum of (outcome - predicted) over all samples up to this one.
    monotone : ndarray of shape (n_samples,)
        S: the nearest monotone curve between 0 and R.
    phi : LipschitzFunction
        The 1-Lipschitz function whose correlation with the residual is ``value``. It falls where F lies above
        S, rises where F lies below, and reaches 1 (or -1, if the event is rarer than predicted) where S moves.
    question : str
        What was asked, in words.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> curve = pc.smooth_calibration_curve(made.labels, made.proba)
    >>> round(curve.value, 3), round(curve.mean_residual, 3)
    (0.186, -0.186)
    """

    value: float
    predicted: Float64s
    cumulative: Float64s
    monotone: Float64s
    phi: LipschitzFunction
    question: str = ""

    @property
    def mean_residual(self) -> float:
        """R: how much more often the event happens than predicted, on average."""
        return float(self.cumulative[-1])

    def __repr__(self) -> str:
        return f"SmoothCurve(value={self.value:.6g}, n_samples={self.predicted.size}, question={self.question!r})"


@dataclass(frozen=True)
class SmoothInterval:
    """What lists of classes tell about the smooth calibration error of a question.

    Attributes
    ----------
    low, high : float
        The error of the full predictions lies between these.
    value : float
        The error if each unknown share fell half into the set, or if nothing is unknown the error itself.
    unknown : float
        The mean probability of which it is not known whether it belongs to the set; 0 makes the interval a point.
    """

    low: float
    high: float
    value: float
    unknown: float


def smooth_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    subset: Any = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    remainder: Remainder = "unknown",
) -> float | SmoothInterval:
    r"""Compute the exact smooth calibration error of the question "is the label in `subset`?".

    Answers: by how much can the probability of this event, as predicted, be told from its frequency by a
    reader who looks at the prediction through any slowly varying weight? 0 is best, 1 is worst.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities. String columns of a data frame are the class names. A SciPy sparse matrix lists some
        classes of each row: its stored entries, which sum to at most 1.
    subset : list of class indices or names, optional
        The classes that count as "yes". By default class 1 for two classes, and with more classes the
        question of confidence: "is the most likely class right?".
    sample_weight : array-like of shape (n_samples,), optional
    class_names : list of str, optional
    from_logits : bool, default False
        Whether `y_proba` holds logits, to be put through a softmax.
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        For lists: what is said of the probability that a row leaves over. "unknown": the lists hold the most likely
        classes, so no other class has more than the least of them. "spread": all other classes have equal shares.
        "anywhere": nothing; other classes may even be more likely than listed ones. "class": it is the probability of
        one more class, ``n_classes``, which stands for "not listed"; a label that is not listed counts as it.

    Returns
    -------
    float, or for lists SmoothInterval

    See Also
    --------
    smooth_calibration_curve : The same with the optimal weight function and the curves.

    Notes
    -----
    Definition: with :math:`u = \langle 1_T, v \rangle` the predicted probability of the subset T and
    :math:`r = \langle 1_T, y - v \rangle` its residual,

    .. math:: \mathrm{smCE}_T = \sup_\varphi \mathbb{E}[r\,\varphi(u)],

    over all 1-Lipschitz :math:`\varphi` into [-1, 1] [1]_. Estimator: the exact supremum on the sample (no
    bins, no bandwidth), by one bounded isotonic L1 regression (by a minimum-cost flow in [2]_). Cost: a sort, then
    :math:`O(n \log n)` in one pass. Bias: upwards, of order :math:`n^{-1/2}`; a perfectly calibrated predictor does
    not read 0.

    Lists are never made dense. The interval is a point with "spread" and with "class", where nothing is unknown (the
    set T then means "the label is one of T, and is listed", a function of the prediction like others). Otherwise u is
    known to lie in an interval [a, b]: the rest falls inside or outside, as far as there are classes not listed on
    either side and (with "unknown") none of them has more than the least class listed. Below, for any
    :math:`\varphi`, :math:`\mathrm{smCE} \ge \mathbb{E} \min_{a \le u \le b} (y - u)\,\varphi(u)`; those tried are the
    best ones for all u at the middles, at a and at b, and the constants. Above, for any reference :math:`u_0` within
    the intervals,

    .. math:: |(y - u)\,\varphi(u) - (y - u_0)\,\varphi(u_0)| \le |u - u_0|\,(1 + |y - u_0|),

    and the error is at most the mean of :math:`|y - u|`; the least of these bounds over the same three references is
    taken. The interval is safe for every way of completing the lists, not the tightest possible. Where several
    :math:`\varphi` are best, rounding decides which is tried, so that the lower end may depend on the order of rows.
    Cost: O(listed entries) and three sorts.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".
    .. [2] Hu, Jambulapati, Tian and Yang (2024), "Testing Calibration in Nearly-Linear Time".

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]
    >>> round(pc.smooth_calibration_error([2, 2, 0, 1], y_proba, subset=[0, 1]), 6)
    0.22
    >>> from scipy.sparse import csr_array
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> found = pc.smooth_calibration_error([1, 2], top, subset=[0, 1])
    >>> round(found.low, 3), round(found.high, 3), round(found.unknown, 3)
    (0.265, 0.353, 0.075)
    """
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
    )
    question = ask(sample, check_subset(subset, sample))
    return smooth_interval(question)[0] if sample.is_listed else smooth_error(question)


def smooth_calibration_curve(
    y_true: Any,
    y_proba: Any,
    *,
    subset: Any = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> SmoothCurve:
    """Compute the exact smooth calibration error with its optimal weight function and its curves.

    Parameters, definition and cost are those of `smooth_calibration_error`.

    Parameters
    ----------
    y_true, y_proba, subset, sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    SmoothCurve

    Examples
    --------
    >>> import polycal as pc
    >>> curve = pc.smooth_calibration_curve([1, 0, 1], [0.2, 0.5, 0.9])
    >>> round(curve.value, 4)
    0.1833
    >>> curve.phi([0.2, 0.5, 0.9])
    array([1. , 0.7, 1. ])
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    return smooth_curve(ask(sample, check_subset(subset, sample)))


def smooth_error(question: Question) -> float:
    """The exact smooth calibration error of a question."""
    predicted, cumulative, _ = _dual_input(*_sorted_cumulative(question))
    return _value(predicted, cumulative, _kernels().nearest_monotone(predicted, cumulative))


def smooth_curve(question: Question) -> SmoothCurve:
    """The exact smooth calibration error of a question, with its witness and curves."""
    return _curve(*_sorted_cumulative(question), question.text)


_ALWAYS = LipschitzFunction(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
_NEVER = LipschitzFunction(np.array([0.0, 1.0]), np.array([-1.0, -1.0]))


def smooth_interval(question: Question) -> tuple[SmoothInterval, LipschitzFunction]:
    """The error of a question as far as it is known, and the weight function that shows its lower end."""
    curve = smooth_curve(question)
    if question.low is None:
        return SmoothInterval(curve.value, curve.value, curve.value, 0.0), curve.phi
    (low, high), hits, middle = question.ranges, question.hits, question.predicted
    mass = np.ones(hits.size) if question.weight is None else question.weight
    mass = mass / mass.sum()
    ends = [smooth_curve(Question(end, hits, question.weight, "")) for end in (low, high)]
    phis = [curve.phi, *(end.phi for end in ends), _ALWAYS, _NEVER]
    floors = [float(mass @ least_gains(phi, question)) for phi in phis]
    best = int(np.argmax(floors))
    references = [(curve.value, middle), (ends[0].value, low), (ends[1].value, high)]
    unsure = np.zeros(hits.size, dtype=np.bool_) if question.unsure is None else question.unsure
    changes = [largest_change(at, hits, low, high, unsure) for _, at in references]
    ceilings = [value + float(mass @ change) for (value, _), change in zip(references, changes, strict=True)]
    ceilings.append(float(mass @ largest_residual(hits, low, high, unsure)))
    unknown = float(mass @ (high - low + unsure))
    interval = SmoothInterval(max(0.0, floors[best]), min(ceilings), curve.value, unknown)
    return interval, phis[best]


def largest_change(at: Floats, hits: Bools, low: Floats, high: Floats, unsure: Bools) -> Float64s:
    """How much ``(y - u) phi(u)`` can differ from its value at a reference, whatever phi; y too where it is unsure."""
    change: Float64s = np.maximum(high - at, at - low) * (1.0 + np.abs(hits - at)) + unsure
    return change


def largest_residual(hits: Bools, low: Floats, high: Floats, unsure: Bools) -> Float64s:
    """The most that ``|y - u|`` can be, for each row."""
    most: Float64s = np.maximum(np.where(hits | unsure, 1.0 - low, 0.0), np.where(hits, 0.0, high))
    return most


def least_gains(phi: ScalarFunction, question: Question) -> Float64s:
    """``min (hit - u) phi(u)`` for each row over all that lists leave open: u in [low, high], and an unsure answer."""
    (low, high), hits, unsure = question.ranges, question.hits, question.unsure
    least = _least_gains(phi, hits, low, high)
    if unsure is not None:
        other = _least_gains(phi, ~hits[unsure], low[unsure], high[unsure])
        least[unsure] = np.minimum(least[unsure], other)
    return least


def _least_gains(phi: ScalarFunction, hits: Bools, low: Float64s, high: Float64s) -> Float64s:
    """With the answers known.

    Between two knots this is a quadratic: its least value is at an end or at the vertex. Of the pieces that lie
    wholly in an interval the least is looked up; the two at its ends are cut.
    """
    edges, heights, slopes = _pieces(phi)
    first = np.searchsorted(edges, low, side="left") - 1
    last = np.searchsorted(edges, high, side="right") - 1
    target = hits.astype(np.float64)
    left_end = np.minimum(high, edges[first + 1])
    right_start = np.maximum(low, edges[last])
    start_height = heights[first] + slopes[first] * (low - edges[first])
    least = _least_of_piece(target, low, left_end, start_height, slopes[first])
    end_height = heights[last] + slopes[last] * (right_start - edges[last])
    least = np.minimum(least, _least_of_piece(target, right_start, high, end_height, slopes[last]))
    for outcome in (False, True):
        whole = _least_of_piece(np.full(slopes.size, float(outcome)), edges[:-1], edges[1:], heights, slopes)
        rows = np.flatnonzero((hits == outcome) & (last - first > 1))
        least[rows] = np.minimum(least[rows], _range_minimum(whole, first[rows] + 1, last[rows] - 1))
    return least


def _pieces(phi: ScalarFunction) -> tuple[Float64s, Float64s, Float64s]:
    """Edges of the linear pieces of phi, from below 0 to above 1; its height at the start of each, and its slope."""
    if not isinstance(phi, LipschitzFunction):
        return np.concatenate([[-1.0], phi.knots, [2.0]]), phi.heights, np.zeros(phi.heights.size)
    plain = phi.simplified()
    edges = np.concatenate([[min(-1.0, plain.knots[0] - 1)], plain.knots, [max(2.0, plain.knots[-1] + 1)]])
    heights = np.concatenate([plain.heights[:1], plain.heights, plain.heights[-1:]])
    return edges, heights[:-1], np.diff(heights) / np.diff(edges)


def _least_of_piece(
    target: Float64s, start: Float64s, end: Float64s, height: Float64s, slope: Float64s
) -> Float64s:
    """The least of ``(target - u) (height + slope (u - start))`` for u from start to end."""
    falls = slope < 0
    vertex = (target + start - height / np.where(falls, slope, 1.0)) / 2.0
    vertex = np.where(falls, np.clip(vertex, start, end), start)
    values = [(target - u) * (height + slope * (u - start)) for u in (start, vertex, end)]
    least: Float64s = np.minimum.reduce(values)
    return least


def _range_minimum(values: Float64s, first: Ints, last: Ints) -> Float64s:
    """The least of ``values[first:last + 1]`` for each pair: minima over powers of two, two of which cover a range."""
    tables = [values]
    while 2 ** len(tables) <= values.size:
        half = 2 ** (len(tables) - 1)
        tables.append(np.minimum(tables[-1][:-half], tables[-1][half:]))
    least = np.empty(first.size)
    level = np.log2(last - first + 1).astype(np.int64)
    for power in np.unique(level):
        rows = level == power
        table = tables[power]
        least[rows] = np.minimum(table[first[rows]], table[last[rows] + 1 - 2**power])
    return least


def projected_curve(values: Float64s, residual: Float64s) -> SmoothCurve:
    """Maximise ``sum_i residual_i phi(values_i)`` over 1-Lipschitz phi, for values of range at most 2."""
    u, F = _kernels().cumulative_residual(values, residual, np.argsort(values))
    return _curve(u, F, "")


def projected_error(values: Float64s, residual: Float64s) -> float:
    """The value of `projected_curve` alone."""
    u, F, _ = _dual_input(*_kernels().cumulative_residual(values, residual, np.argsort(values)))
    return _value(u, F, _kernels().nearest_monotone(u, F))


def _curve(predicted: Float64s, cumulative: Float64s, text: str) -> SmoothCurve:
    predicted, cumulative, sign = _dual_input(predicted, cumulative)
    monotone = _kernels().nearest_monotone(predicted, cumulative)
    heights = sign * _kernels().optimal_witness(predicted, cumulative, monotone)
    return SmoothCurve(
        value=_value(predicted, cumulative, monotone),
        predicted=predicted,
        cumulative=sign * cumulative,
        monotone=sign * monotone,
        phi=LipschitzFunction(predicted, heights),
        question=text,
    )


def _sorted_cumulative(question: Question) -> tuple[Float64s, Float64s]:
    """Sorted predictions u and the cumulative residuals F of a question."""
    kernels = _kernels()
    if question.weight is None:
        packed = kernels.pack(question.predicted, question.hits)
        packed.sort()
        u, F = kernels.unpack_cumulative(packed)
    else:
        residual = question.weight * (question.hits - question.predicted) / question.weight.sum()
        # Where predictions are equal, other sorts draw another curve on another processor.
        order = np.argsort(question.predicted, kind="stable")
        u, F = kernels.cumulative_residual(question.predicted, residual, order)
    return u, F


def _dual_input(u: Float64s, F: Float64s) -> tuple[Float64s, Float64s, float]:
    """Flip all signs where the mean residual is negative: the algorithm wants R >= 0."""
    return (u, -F, -1.0) if F[-1] < 0 else (u, F, 1.0)


def _value(u: Float64s, F: Float64s, S: Float64s) -> float:
    """``R + sum_i d_i |F_i - S_i|``."""
    return float(F[-1] + _kernels().transport_cost(u, F, S))


def _kernels() -> Any:
    """The compiled passes; importing them imports numba, so only when first needed."""
    from polycal._compiled import smooth as kernels  # noqa: PLC0415

    return kernels


def drawn_points(curve: SmoothCurve, max_points: int) -> tuple[Float64s, Float64s, Float64s]:
    """Steps to draw: F and S are 0 before the first prediction, and R after the last."""
    u = curve.predicted
    kept = _kept(u, curve.cumulative, max_points)
    ends = min(0.0, u[0]), max(1.0, u[-1])
    x = np.concatenate([ends[:1], u[kept], ends[1:]])
    F, S = (np.concatenate([[0.0], line[kept], line[-1:]]) for line in (curve.cumulative, curve.monotone))
    return x, F, S


def _kept(u: Float64s, F: Float64s, max_points: int) -> Ints:
    """Indices of the points to draw: the last of equal predictions, and of these at most four a column.

    Between equal predictions F depends on the order of the rows, so it has no place in a picture.
    """
    distinct = np.append(np.flatnonzero(np.diff(u) > 0), u.size - 1)
    if distinct.size <= max_points:
        return distinct
    x, y, n_columns = u[distinct], F[distinct], max_points // 4
    column = np.minimum((x - x[0]) / (x[-1] - x[0]) * n_columns, n_columns - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    picks = [
        (a, a + int(y[a:b].argmin()), a + int(y[a:b].argmax()), b - 1)
        for a, b in zip(starts.tolist(), [*starts[1:].tolist(), x.size], strict=True)
    ]
    return distinct[np.unique(picks)]
