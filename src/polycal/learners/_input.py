"""The gate of the learners: predictions, targets in [-1, 1] and weights."""

from typing import Any

import numpy as np

from polycal._containers import to_numpy
from polycal._typing import Float64s, Floats
from polycal._validation import check_proba, check_weight


def check_examples(X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Float64s, Float64s | None]:
    """Validate examples: rows on the simplex, one target in [-1, 1] each, weights."""
    points, _ = check_proba(X, name="X")
    targets = _check_targets(y, points.shape[0])
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None and weight.size != targets.size:
        raise ValueError(
            f"sample_weight has {weight.size} entries but X has {targets.size} rows; give one per row."
        )
    return points, targets, weight


def _check_targets(y: Any, n_rows: int) -> Float64s:
    array = to_numpy(y, "y")
    if array.shape != (n_rows,):
        raise ValueError(f"y must be one target per row of X, of shape ({n_rows},); got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"y must hold numbers from -1 to 1; got dtype {array.dtype}.")
    targets = array.astype(np.float64)
    if not (np.abs(targets) <= 1).all():
        row = int(np.argmin(np.abs(targets) <= 1))
        raise ValueError(
            f"y[{row}] is not a number from -1 to 1: {targets[row]:.6g}. Scale the targets first."
        )
    return targets
