"""What the kernel calibrator says about its fit: what was chosen and why, and what more rows would allow."""

from typing import TYPE_CHECKING

import numpy as np

from polycal._typing import Float64s
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.selection import KINDS
from polycal.calibrators.kernel.trial import Gain

if TYPE_CHECKING:
    from polycal.calibrators.kernel.calibrator import KernelCalibrator

# All that may have gained something, in the order of the lines, which are compared with the best before ...
_STEPS = {"curve": "temperature, background and curve", **KINDS}
# ... or with the input.
_POOLED = {
    "temperature": "temperature scaling alone",
    "vector": "vector scaling alone",
    "kernel": "the kernel alone",
    "neighbours": "labels nearby alone",
    "pool": "the pool",
}
# Files hold their numbers.
_PARTS = (*_STEPS, "temperature", "vector", "kernel", "pool", "neighbours")


def to_array(gains: dict[str, Gain]) -> Float64s:
    """The gains as numbers, which files can hold: a row for each part, its number first."""
    rows = [(_PARTS.index(name), *gain) for name, gain in gains.items()]
    return np.array(sorted(rows), dtype=np.float64).reshape(-1, 4)


def to_gains(array: Float64s) -> dict[str, Gain]:
    """The gains from `to_array`; of a file, those that make sense."""
    rows = array.tolist() if array.ndim == 2 and array.shape[1] == 4 else []
    return {_PARTS[int(row[0])]: Gain(*row[1:]) for row in rows if 0 <= row[0] < len(_PARTS)}


def told(model: "KernelCalibrator") -> list[tuple[str, str]]:
    """Label and value of each line."""
    gains = to_gains(model.gains_)
    steps = [(_STEPS[name], _step(model, name, gains[name])) for name in _STEPS if name in gains]
    pooled = [
        (_POOLED[name], f"saves {_amount(gains[name])} of the input's") for name in _POOLED if name in gains
    ]
    return [
        *([("rows", _rows(model))] if model.n_samples_ else []),
        ("predicts by", _predictor(model)),
        *([("log loss", "of rows that were held out, ± its standard error")] if gains else []),
        *steps,
        *pooled,
        *_more_rows(model, gains),
    ]


def _rows(model: "KernelCalibrator") -> str:
    n, groups = model.n_samples_, model.n_groups_
    together = f", in {groups:,} groups of rows that were held out together" if groups < n else ""
    return f"{n:,}{together}"


def _predictor(model: "KernelCalibrator") -> str:
    if model.used_ == "identity":
        return "the input as it is: nothing was better beyond the noise"
    if model.used_ == "pool":
        names = ("the input", "temperature scaling", "vector scaling", "the kernel", "labels nearby")
        # Older files have no labels nearby.
        shares = [
            f"{share:.0%} {name}" for share, name in zip(model.shares_, names, strict=False) if share > 0.0
        ]
        return f"a pool, since rows are few: {', '.join(shares)}"
    curve = f"temperature {model.temperature_:.3g}, background and curve"
    if model.used_ == "temperature":
        return f"{curve}: a regression was not better beyond the noise"
    return f"{curve}, and a regression of penalty {model.regularisation_:.2g}"


def _step(model: "KernelCalibrator", name: str, gain: Gain) -> str:
    """What a step gained, whether it is used, and if not, why."""
    before = "the input's" if name == "curve" else "the best before"
    said = f"saves {_amount(gain)} of {before}"
    if name in _used(model):
        return f"{said}: used"
    if gain.needed <= model.n_samples_:
        # It was the best for a while, or stood in the way of the rest.
        return f"{said}: not used, what follows does without it"
    if name == "curve":
        return f"{said}: not used"
    if not np.isfinite(gain.needed):
        return f"{said}: not used, nothing gained that matters"
    return f"{said}: not used, within the noise; about {_round(gain.needed):,} rows would show such a gain"


def _used(model: "KernelCalibrator") -> set[str]:
    """The steps that are a part of what predicts."""
    if model.shares_.size > 3 and model.shares_[3] == 0.0:
        return set()
    regression = {"landmarks" if model.n_landmarks_ else model.features_of_}
    matrix = {"matrix"} if model.mixes_matrix_ else set()
    return {"curve"} | (regression if np.isfinite(model.regularisation_) else set()) | matrix


def _more_rows(model: "KernelCalibrator", gains: dict[str, Gain]) -> list[tuple[str, str]]:
    """What is tried from more rows on."""
    n, k, lines = model.n_samples_, model.n_classes_, []
    if gains and "landmarks" not in gains and n < tuning.MANY_ROWS * k and k <= tuning.LANDMARK_CLASSES:
        lines.append((KINDS["landmarks"], f"not tried: from {tuning.MANY_ROWS * k:,} rows on, 100 a class"))
    if "pool" in gains:
        lines.append(("with more rows", f"from {tuning.FEW_ROWS:,} on the kernel decides alone"))
    return lines


def _amount(gain: Gain) -> str:
    if not np.isfinite(gain.log_loss):
        return "an infinite part (it gave 0 to what happened)"
    return f"{gain.log_loss:.4f} ± {gain.error:.4f}"


def _round(rows: float) -> int:
    """To two digits."""
    return int(float(f"{rows:.2g}"))
