"""The smooth calibration error of a set of classes, as far as truncated predictions tell it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import class_set
from polycal.measures.smooth import LipschitzFunction, smooth_curve
from polycal.sample import Question, subset_words
from polycal.sparse._gate import sparse_sample
from polycal.sparse._least import least_gains
from polycal.sparse._sample import Remainder, SparseSample

_ALWAYS = LipschitzFunction(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
_NEVER = LipschitzFunction(np.array([0.0, 1.0]), np.array([-1.0, -1.0]))


@dataclass(frozen=True)
class SmoothInterval:
    """What truncated predictions tell about the smooth calibration error of a set of classes.

    Attributes
    ----------
    low, high : float
        The error of the predictions before they were truncated lies between these.
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
    subset: Any,
    remainder: Remainder = "unknown",
    sample_weight: Any = None,
    class_names: Any = None,
) -> SmoothInterval:
    r"""Bound the smooth calibration error of "is the label in `subset`?" from lists of classes.

    Parameters
    ----------
    y_true, y_proba, remainder, sample_weight, class_names
        As for `sparse_sample`.
    subset : list of class indices or names
        The classes that count as "yes".

    Returns
    -------
    SmoothInterval

    Notes
    -----
    With ``remainder="spread"`` the interval is one number, the error of the predictions with the rest shared
    equally; and so it is with "class". Otherwise the probability u of the set is known to lie in an interval [a, b]:
    the rest falls inside or outside, as far as there are classes not listed on either side and (with "unknown") none
    of them has more than the least class listed.

    Below, for any weight function :math:`\varphi` of the definition
    :math:`\mathrm{smCE} = \sup_\varphi \mathbb{E}[(y - u)\varphi(u)] \ge \mathbb{E} \min_{a \le u \le b} (y - u)
    \varphi(u)`; those tried are the best ones for all u at the middles, at a and at b, and the constants. Above, for
    any reference :math:`u_0` within the intervals,

    .. math:: |(y - u)\,\varphi(u) - (y - u_0)\,\varphi(u_0)| \le |u - u_0|\,(1 + |y - u_0|),

    and the error is at most the mean of :math:`|y - u|`; the least of these bounds over the same three references is
    taken. The interval is safe for every way of completing the lists, not the tightest possible. Where several
    :math:`\varphi` are best, rounding decides which is tried, so that its lower end may depend on the order of rows.
    Cost: O(listed entries) and three sorts of n numbers.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> found = polycal.sparse.smooth_calibration_error([1, 2], top, subset=[0, 1])
    >>> round(found.low, 3), round(found.high, 3), round(found.unknown, 3)
    (0.265, 0.353, 0.075)
    """
    sample = sparse_sample(
        y_true, y_proba, remainder=remainder, sample_weight=sample_weight, class_names=class_names
    )
    members = class_set(subset, sample.n_classes, sample.class_names, "subset")
    return bounded_error(sample, members)[0]


def bounded_error(sample: SparseSample, members: Ints) -> tuple[SmoothInterval, LipschitzFunction]:
    """The interval of a set's error, and the weight function that shows its lower end."""
    low, high = sample.subset_range(members)
    hits, mass = sample.subset_hits(members), sample.mass
    text = subset_words(members, sample.name)
    middle = (low + high) / 2.0
    curve = smooth_curve(Question(middle, hits, sample.sample_weight, text))
    unknown = float(mass @ (high - low))
    if unknown == 0.0:
        return SmoothInterval(curve.value, curve.value, curve.value, 0.0), curve.phi
    ends = [smooth_curve(Question(end, hits, sample.sample_weight, text)) for end in (low, high)]
    phis = [curve.phi, *(end.phi for end in ends), _ALWAYS, _NEVER]
    floors = [float(mass @ least_gains(phi, hits, low, high)) for phi in phis]
    best = int(np.argmax(floors))
    references = [(curve.value, middle), (ends[0].value, low), (ends[1].value, high)]
    ceilings = [value + float(mass @ _change(at, hits, low, high)) for value, at in references]
    ceilings.append(float(mass @ np.maximum(np.abs(hits - low), np.abs(hits - high))))
    return SmoothInterval(max(0.0, floors[best]), min(ceilings), curve.value, unknown), phis[best]


def _change(at: Float64s, hits: Any, low: Float64s, high: Float64s) -> Float64s:
    """How much ``(y - u) phi(u)`` can differ from its value at a reference, whatever phi."""
    change: Float64s = np.maximum(high - at, at - low) * (1.0 + np.abs(hits - at))
    return change
