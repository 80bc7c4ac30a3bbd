"""Sigmoid calibration: is each class right on either side of any soft threshold?"""

from dataclasses import dataclass
from typing import ClassVar

from polycal._validation import check_real
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.effort import Effort
from polycal.search.points import distinct_points
from polycal.search.sigmoid import climb, ladder
from polycal.search.verdict import sigmoid_witness


@dataclass(frozen=True)
class Sigmoid(Notion):
    r"""Sigmoid calibration: is each class right on either side of any soft threshold?

    Parameters
    ----------
    slope : float, default 8
        L, at least 1: how sharp the thresholds may be. The error grows with it, towards that of `Halfspace`.

    Notes
    -----
    Definition: each coordinate of the weight is :math:`\tanh(L\langle a, v\rangle + b)` with
    :math:`a \in [-1, 1]^k` and any b (the family :math:`\Sigma_L` of [1]_); so the error is at most L times that
    of `ProjectedSmooth`. Estimator: gradient ascent for all coordinates at once, on a ladder of slopes 1, 2, 4,
    ..., L where each rung starts from the one below: a lower bound, which never falls from L to 2L when
    L is a power of 2. A search looks at no more than 32,768 distinct predictions; the value is that of the
    whole sample. Cost: some hundred passes of two matrix products, O(n k^2) each. Bias: upwards.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section
       "Efficient Auditing for Projected Smooth Calibration".

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.2, 0.2, 0.8, 0.8], pc.Sigmoid(4))
    >>> round(estimate.value, 3), estimate.kind
    (1.574, 'lower bound')
    """

    slope: float = 8.0
    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        check_real(self.slope, "slope", low=1, high=1e6)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        rungs = ladder(float(self.slope))
        points = distinct_points(sample)
        found = climb(points, rungs, Effort.for_classes(sample.n_classes))
        witness = sigmoid_witness(sample, found[-1].in_order_of(points))
        return ErrorEstimate(
            value=float(witness.contributions.sum()),
            kind="lower bound",
            notion=self,
            method=f"gradient ascent over {len(rungs)} slopes",
            n_steps=len(rungs),
            n_samples=sample.n_samples,
            witness=witness,
        )
