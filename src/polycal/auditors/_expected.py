"""What the labels should be by a recalibration of two numbers: residuals without the noise of the labels."""

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Ints

Float32s = NDArray[np.float32]

_MAX_STEPS = 30
_LARGEST_POWER = 10.0
# Lower probabilities, and lower shares of what an average class gets, count as these.
_LOWEST_PROBA = 1e-8
_LOWEST_SHARE = 1e-3


def expected_labels(proba: Float32s, labels: Ints, mass: Float64s) -> Float32s:
    """The most likely label distributions of the form ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    The power a mends the confidence, b the preference for classes that are predicted often. Both are learnt
    from all rows together, so hardly any of the labels' noise is in them.
    """
    from polycal._compiled import powers as kernels  # noqa: PLC0415 - imports numba

    log_proba = np.log(np.maximum(proba, np.float32(_LOWEST_PROBA)))
    log_share = np.log(np.maximum(mass @ proba * proba.shape[1], _LOWEST_SHARE))
    powers, scale = np.array([1.0, 0.0]), 1.0
    loss, slope, bend = kernels.power_loss(log_proba, log_share, labels, mass, *powers)
    for _ in range(_MAX_STEPS):
        # A Newton step; least squares because equal mean predictions leave b without effect.
        step = np.linalg.lstsq(bend, slope, rcond=1e-9)[0]
        if slope @ step < 1e-9:
            break
        trial = np.clip(powers - scale * step, -_LARGEST_POWER, _LARGEST_POWER)
        trial_loss, trial_slope, trial_bend = kernels.power_loss(log_proba, log_share, labels, mass, *trial)
        if trial_loss < loss:
            powers, loss, slope, bend = trial, trial_loss, trial_slope, trial_bend
        else:
            scale /= 4
    expected: Float32s = kernels.power_labels(log_proba, log_share, *powers)
    return expected
