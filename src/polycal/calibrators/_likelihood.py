"""The log loss of softmax models of log probabilities, and its descent."""

from collections.abc import Callable, Iterator

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Affine, Log, Softmax

# Differences of the loss below this are of no use to anybody.
_LOSS_TOLERANCE = 1e-10
_MAX_ITERATIONS = 1000
# Numbers in predictions on which nobody waits for the fit.
_SMALL = 2**16


def log_proba(sample: Sample) -> Floats:
    """Floored logarithms of the predictions, in their own dtype."""
    out = np.empty_like(sample.proba)
    log = Log()
    for rows in row_blocks(*out.shape):
        out[rows] = log(sample.proba[rows].astype(np.float64))
    return out


def total_weight(sample: Sample) -> float:
    """How many rows the sample counts for: a prior is weighed against this."""
    return float(sample.n_samples if sample.sample_weight is None else sample.sample_weight.sum())


def working_dtype(sample: Sample) -> type[np.floating]:
    """Double precision where it costs nothing; single precision, several times faster, is enough to find a model."""
    return np.float64 if sample.proba.size <= _SMALL else np.float32


def loss_and_proba(logits: Float64s, labels: Ints, mass: Float64s) -> tuple[float, Float64s]:
    """The weighted log loss of ``softmax(logits)``, and the latter; ``logits`` are overwritten by it."""
    losses, proba = losses_and_proba(logits, labels)
    return float(mass @ losses), proba


def losses_and_proba(logits: Float64s, labels: Ints) -> tuple[Float64s, Float64s]:
    """The log loss of each row of ``softmax(logits)``, and the latter; ``logits`` are overwritten by it."""
    logits -= logits.max(axis=1, keepdims=True)
    at_label = logits[np.arange(labels.size), labels]
    np.exp(logits, out=logits)
    total = row_sums(logits)
    logits /= total[:, None]
    losses: Float64s = np.log(total) - at_label
    return losses, logits


def loss_and_residual(logits: Float64s, labels: Ints, mass: Float64s) -> tuple[float, Float64s]:
    """The weighted log loss of ``softmax(logits)``, and its gradient; ``logits`` are overwritten by the latter."""
    loss, proba = loss_and_proba(logits, labels, mass)
    return loss, to_residual(proba, labels, mass)


def to_residual(proba: Float64s, labels: Ints, mass: Float64s) -> Float64s:
    """Overwrite predictions by the gradient of their weighted log loss by the logits."""
    proba *= mass[:, None]
    proba[np.arange(labels.size), labels] -= mass
    return proba


def spreads(logs: Floats, inverse: float) -> Iterator[tuple[slice, Float64s]]:
    """Blocks of ``p (1 - p)`` for p at temperature ``1 / inverse``: the curvature of the loss by each logit."""
    scale, softmax = Affine(np.array([inverse]), np.zeros(1)), Softmax()
    for rows in row_blocks(*logs.shape):
        proba = softmax(scale(logs[rows].astype(np.float64)))
        yield rows, proba * (1.0 - proba)


def minimise(
    function: Callable[[Float64s], tuple[float, Float64s]],
    start: Float64s,
    curvature: Float64s,
    lower: Float64s | None = None,
) -> Float64s:
    """The minimiser of a smooth convex function given with its gradient, by L-BFGS.

    ``curvature`` is about the diagonal of the Hessian: variables scaled by its root need far fewer steps.
    """
    from scipy.optimize import Bounds, minimize  # noqa: PLC0415 - slow to import

    # A variable without influence must not get an infinite scale.
    scale = 1.0 / np.sqrt(np.maximum(curvature, 1e-9 * curvature.max() + 1e-300))

    def scaled(point: Float64s) -> tuple[float, Float64s]:
        value, gradient = function(point * scale)
        return value, gradient * scale

    result = minimize(
        scaled,
        start / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=None if lower is None else Bounds(lower / scale, np.inf),
        options={"maxiter": _MAX_ITERATIONS, "maxcor": 20, "ftol": _LOSS_TOLERANCE, "gtol": 1e-7},
    )
    point: Float64s = result.x * scale
    return point
