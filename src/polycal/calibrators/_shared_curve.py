"""One curve for all classes: a temperature that depends on how likely a class is said to be."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._likelihood import total_weight
from polycal.calibrators._tilt import fit_tilt, tilt_derivatives
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Clip, Log, Program, Sum

# Where the curve may bend.
KNOTS = (0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)


@dataclass(frozen=True, eq=False)
class SharedCurve:
    """``softmax(g(log q))`` with one piecewise linear g, of slope 1 below the smallest knot.

    Temperature scaling has a straight line for g; but classifiers that are over-confident about their first choice
    are often under-confident about the rest.

    Attributes
    ----------
    slopes : ndarray of shape (n_knots,)
        What each knot adds to the slope of g.
    """

    slopes: Float64s

    def logit_steps(self) -> Program:
        """The map from q to logits, g(log q)."""
        bends = tuple(
            (Clip(float(np.log(knot)), 0.0), Affine(np.array([slope]), np.array([-slope * np.log(knot)])))
            for knot, slope in zip(KNOTS, self.slopes, strict=True)
            if slope != 0.0
        )
        return (Log(), Sum(((), *bends))) if bends else (Log(),)

    def apply(self, log_proba: Floats) -> None:
        """Overwrite log q by the log of what the curve makes of it."""
        for rows in row_blocks(*log_proba.shape):
            logits = _curve(log_proba[rows], self.slopes)
            logits -= logits.max(axis=1, keepdims=True)
            log_proba[rows] = logits - np.log(np.einsum("ij->i", np.exp(logits)))[:, None]


def fit_shared_curve(sample: Sample, log_proba: Floats) -> SharedCurve:
    """The curve of least log loss, each slope with a standard normal prior; straight where bending gains no more
    than it would by chance, about one nat in all for each slope.
    """

    def directions(rows: slice) -> Floats:
        return np.stack([_beyond(log_proba[rows], knot) for knot in KNOTS])

    slopes, straight = fit_tilt(sample, log_proba, directions, len(KNOTS)), np.zeros(len(KNOTS))
    losses = [tilt_derivatives(sample, log_proba, directions, at)[0] for at in (straight, slopes)]
    worthwhile = losses[0] - losses[1] > len(KNOTS) / total_weight(sample)
    return SharedCurve(slopes if worthwhile else straight)


def _curve(logs: Floats, slopes: Float64s) -> Floats:
    """The curve's value at each logarithm."""
    out = logs.copy()
    for knot, slope in zip(KNOTS, slopes, strict=True):
        out += float(slope) * _beyond(logs, knot)
    return out


def _beyond(logs: Floats, knot: float) -> Floats:
    """How far each logarithm lies above a knot's."""
    shift = float(np.log(knot))
    above: Floats = np.maximum(logs, shift)
    above -= shift
    return above
