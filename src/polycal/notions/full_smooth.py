"""Full smooth calibration: weights that may look at the whole prediction, as long as they vary slowly."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

from polycal._validation import CalibrationWarning, check_integer
from polycal.inference.redraw import null_draws
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.full_smooth import best_full_smooth

# Upper bound minus attained value, above which the number is no longer called exact.
_EXACT = 1e-9


@dataclass(frozen=True)
class FullSmooth(Notion):
    r"""Full smooth calibration: is each class as frequent as predicted, among predictions near one another?

    The strongest smooth notion, and one no sample of ordinary size can estimate: the weights of a class are
    any slowly varying function of all k probabilities, and with so much freedom they follow the noise of the
    labels. So the error is large for perfectly calibrated predictions too, and computing it warns, with the
    noise floor beside it. Needs the POT library (``pip install 'polycal[transport]'``).

    Parameters
    ----------
    n_floor_draws : int, default 1
        How often to draw labels from the predictions themselves and compute the error again. The mean is the
        noise floor told by the warning and by the estimate's `method`. Each draw costs as much as the error.
        0 leaves out the floor and the warning: what to use inside a test that draws labels itself.
    random_state : int, default 0
        Seed of these draws.

    Notes
    -----
    Definition: the weight of each class is any :math:`h : \Delta_k \to [-1, 1]` with
    :math:`|h(v) - h(v')| \le \|v - v'\|_1` [1]_. The error is from 0 to 2, and at least `SubsetSmooth`'s.

    Estimator: the exact supremum on the sample. For class :math:`\ell` with weighted residuals
    :math:`r_i = m_i (1[y_i = \ell] - v_{i\ell})` the dual of

    .. math:: \max \sum_i r_i x_i \quad\text{subject to}\quad |x_i| \le 1,\ |x_i - x_j| \le \|v_i - v_j\|_1

    ships positive residual (rows labelled :math:`\ell`) to negative residual (the others) at cost
    :math:`\|v_i - v_j\|_1` a unit, or throws away residual of either sign at cost 1 a unit. No distance
    exceeds 2, so throwing away one unit of each sign never beats shipping the one to the other, and an
    optimum throws away only the net: the error of a class is its mean residual plus a partial optimal
    transport. It is solved on nearest-neighbour arcs by a network simplex, adding arcs until none left out
    has a negative reduced cost. Equal predictions are merged first.

    Cost: distances between rows of a class and all others, :math:`O(n^2 k)` over all classes and in blocks,
    and one sparse transport per class; seconds for n = 5,000 and k = 10. Bias: upwards, and it
    shrinks only like :math:`n^{-1/(k-1)}` for k > 3; an auditor needs exponentially many samples in k [1]_.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration",
       Definition of full smooth calibration and Section "Sample Complexity of Canonical Calibration".

    Examples
    --------
    >>> from polycal import calibration_error
    >>> from polycal.notions.full_smooth import FullSmooth
    >>> y_proba = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> calibration_error([0, 1], y_proba, FullSmooth(n_floor_draws=0))
    0.625
    """

    n_floor_draws: int = 1
    random_state: int = 0
    name: ClassVar[str] = "full-smooth"

    def __post_init__(self) -> None:
        check_integer(self.n_floor_draws, "n_floor_draws", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        value, upper, witness = best_full_smooth(sample)
        floor = f"; {self._floor_words(sample)}" if self.n_floor_draws else ""
        if floor:
            warnings.warn(
                f"The full smooth calibration error overfits: {value:.4g} here{floor}. Judge it by a test that "
                "draws labels (polycal.calibration_test with FullSmooth(n_floor_draws=0)), or use SubsetSmooth.",
                CalibrationWarning,
                stacklevel=3,
            )
        return ErrorEstimate(
            value=value,
            kind="exact" if upper - value <= _EXACT else "lower bound",
            notion=self,
            method=f"optimal transport for each class{floor}",
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=witness,
        )

    def _floor_words(self, sample: Sample) -> str:
        # One draw at a time: the classes of each are solved on all cores.
        floors = null_draws(
            sample,
            lambda redrawn: best_full_smooth(redrawn)[0],
            self.n_floor_draws,
            self.random_state,
            n_jobs=1,
        )
        draws = "1 draw" if self.n_floor_draws == 1 else f"{self.n_floor_draws} draws"
        return f"{floors.mean():.4g} with labels drawn from the predictions themselves ({draws})"
