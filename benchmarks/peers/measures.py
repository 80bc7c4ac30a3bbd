"""How calibration is measured, by us and by the peers: ``call(proba, labels)`` returns one number.

The numbers are of different quantities and are not compared; the seconds and the memory are.
"""

# ruff: noqa: PLC0415 - a missing peer shall fail alone

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Measure:
    """A way to measure calibration.

    Attributes
    ----------
    package, environment : str
        Where it comes from.
    call : callable
        From predictions and labels to a number.
    kind : str
        "binary" for probabilities of shape (n,), "kernel" for (n, k).
    """

    package: str
    environment: str
    call: Callable
    kind: str


MEASURES = {}


def register(name, package, environment="main", kind="binary"):
    """Enter a call into the table."""

    def enter(call):
        MEASURES[name] = Measure(package, environment, call, kind)
        return call

    return enter


def confidence(proba, labels):
    """The largest probability of each row, and whether its class is right."""
    return proba.max(axis=1), (proba.argmax(axis=1) == labels).astype(int)


@register("polycal smooth error", "polycal", "polycal")
def _(proba, labels):
    from polycal import smooth_calibration_error

    return smooth_calibration_error(labels, proba)


@register("numpy argsort (floor)", "numpy", "polycal")
def _(proba, _labels):
    return np.argsort(proba)[0]


@register("HiGHS linear program", "scipy")
def _(proba, labels):
    """The smooth calibration error as in its definition: one variable for each row."""
    from scipy import sparse
    from scipy.optimize import linprog

    order = np.argsort(proba)
    u, residual = proba[order], (labels[order] - proba[order]) / proba.size
    step = sparse.diags([-np.ones(u.size - 1), np.ones(u.size - 1)], [0, 1], shape=(u.size - 1, u.size))
    limits = np.tile(np.diff(u), 2)
    program = sparse.vstack([step, -step])
    return -linprog(-residual, A_ub=program, b_ub=limits, bounds=(-1, 1), method="highs").fun


@register("relplot smECE", "relplot")
def _(proba, labels):
    import relplot

    return relplot.smECE(f=proba, y=labels)


@register("probcal smooth ECE", "probcal")
def _(proba, labels):
    from probcal.metrics import smooth_ece

    return smooth_ece(labels, proba)


@register("netcal binned ECE", "netcal")
def _(proba, labels):
    from netcal.metrics import ECE

    return ECE(bins=15).measure(proba, labels)


@register("torchmetrics binned ECE", "torchmetrics")
def _(proba, labels):
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(torch.as_tensor(proba), torch.as_tensor(labels), n_bins=15)


@register("polycal binned ECE", "polycal", "polycal")
def _(proba, labels):
    from polycal import reliability_curve

    return reliability_curve(labels, proba, n_bins=15).error()


@register("polycal kernel auditor", "polycal", "polycal", kind="kernel")
def _(proba, labels):
    from polycal.families.kernel import KernelAuditor

    auditor = KernelAuditor(amplify=False, max_samples=None)
    return float(auditor.find_witness(labels, proba).strengths.sum())


@register("polycal kernel error", "polycal", "polycal", kind="kernel")
def _(proba, labels):
    from polycal.inference.kernel_error import kernel_calibration_error

    return kernel_calibration_error(labels, proba)


@register("matrix products (floor)", "numpy", "polycal", kind="kernel")
def _(proba, labels):
    """The two products that every kernel statistic of all pairs needs, in blocks and single precision."""
    points = proba.astype(np.float32)
    residual = -points
    residual[np.arange(labels.size), labels] += 1
    total = 0.0
    for start in range(0, labels.size, 1000):
        rows = slice(start, start + 1000)
        total += float(np.vdot((points[rows] @ points.T) @ residual, residual[rows]))
    return total


@register("plain NumPy SKCE", "numpy", kind="kernel")
def skce(proba, labels):
    """The unbiased statistic of Widmann et al. with the kernel exp(-|p - p'|), as one would write it down."""
    n = labels.size
    residual = np.eye(proba.shape[1])[labels] - proba
    squares = np.einsum("ij,ij->i", proba, proba)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * proba @ proba.T, 0))
    products = np.exp(-distances) * (residual @ residual.T)
    np.fill_diagonal(products, 0)
    return products.sum() / (n * (n - 1))


@register("netcal MMCE", "netcal", kind="kernel")
def _(proba, labels):
    """Of the confidence only: pairs of numbers, not of vectors."""
    from netcal.metrics import MMCE

    return MMCE().measure(proba, labels)


@register("probcal SKCE", "probcal", kind="kernel")
def _(proba, labels):
    """Of the confidence only."""
    from probcal.metrics import skce as binary_skce

    predicted, correct = confidence(proba, labels)
    return binary_skce(correct, predicted)
