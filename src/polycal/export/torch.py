"""Steps as a differentiable torch module."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

import numpy as np

from polycal.sample import GRID, drift_allowed
from polycal.steps import (
    Affine,
    Clip,
    Distances,
    Exp,
    InBlocks,
    Interpolate,
    LargestOf,
    Linear,
    Log,
    Lookup,
    Normalise,
    Others,
    Polynomial,
    Product,
    Program,
    Project,
    Sigmoid,
    Softmax,
    Step,
    Sum,
    Top,
)

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise ImportError("to_torch needs torch: see https://pytorch.org for how to install it.") from error


def make_module(steps: Program, *, gated: bool = False) -> nn.Module:
    """A module from ``(batch, n_classes)`` predictions to calibrated ones, of the same dtype.

    A gated module takes probabilities, and renormalises those that the gate does.
    """
    return _Calibrator(steps, gated=gated)


class _Calibrator(nn.Module):
    """All the steps, computed in float64 (until told otherwise by ``module.float()``)."""

    def __init__(self, steps: Program, *, gated: bool) -> None:
        super().__init__()
        self.gated = gated
        self.steps = _sequence(steps)
        self.register_buffer("precision", torch.zeros((), dtype=torch.float64), persistent=False)

    def forward(self, proba: Tensor) -> Tensor:
        """Calibrated predictions."""
        rows = proba.to(self.precision.dtype)
        return self.steps(_gate(rows, proba.dtype) if self.gated else rows).to(proba.dtype)


class _Step(nn.Module):
    """One step: its arrays as buffers, its formula from the table below."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        if type(step) not in _FORMULAS:
            raise TypeError(f"a {step.title} cannot be written as a torch module.")
        self.step_type = type(step)
        for field in fields(cast("Any", step)):
            value = getattr(step, field.name)
            if isinstance(value, np.ndarray):
                self.register_buffer(field.name, torch.tensor(value))
            elif isinstance(value, tuple):
                setattr(self, field.name, nn.ModuleList(_sequence(branch) for branch in value))
            else:
                setattr(self, field.name, value)

    def forward(self, rows: Tensor) -> Tensor:
        """Apply the step."""
        return _FORMULAS[self.step_type](self, rows)


def _sequence(steps: Program) -> nn.Sequential:
    return nn.Sequential(*(_Step(step) for step in steps))


def _gate(rows: Tensor, given: torch.dtype) -> Tensor:
    """What the gate makes of probabilities: rows whose sum is off by more than rounding are renormalised.

    Sums are taken in two parts, without rounding, as `polycal.sample.exact_row_sums` does: steep maps tell rows apart
    that differ in their last digit.
    """
    outside = torch.promote_types(given, torch.float32)
    positive = rows.clamp(min=0.0)
    coarse = (positive * GRID).round() / GRID
    total = coarse.sum(dim=1, keepdim=True) + (positive - coarse).sum(dim=1, keepdim=True)
    allowed = drift_allowed(str(outside).removeprefix("torch."), rows.shape[1])
    off = ((total - 1.0).abs() > allowed) | (rows.amin(dim=1, keepdim=True) < 0.0)
    return torch.where(off, (positive / total).to(outside).to(rows.dtype), rows)


def _others(_: Any, rows: Tensor) -> Tensor:
    zero = torch.zeros_like(rows[:, :1])
    before = torch.cat([zero, rows[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([zero, rows.flip(1)[:, :-1].cumsum(dim=1)], dim=1).flip(1)
    return before + after


def _normalise(step: Any, rows: Tensor) -> Tensor:
    total = rows.sum(dim=1, keepdim=True)
    empty = total <= 0
    return torch.where(empty, step.fallback, rows / torch.where(empty, 1.0, total))


def _interpolate(step: Any, rows: Tensor) -> Tensor:
    left = _search(step, rows, torch.le)
    right = torch.minimum(left + 1, step.starts[1:] - 1)
    # A column's last knot is its own right neighbour.
    width = torch.where(left == right, 1.0, step.knots[right] - step.knots[left])
    part = ((rows - step.knots[left]) / width).clamp(0.0, 1.0)
    return step.heights[left] + part * (step.heights[right] - step.heights[left])


def _lookup(step: Any, rows: Tensor) -> Tensor:
    return step.heights[_search(step, rows, torch.lt)]


def _search(step: Any, rows: Tensor, below: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The last knot of the column that is below each value, else the first: a binary search on all at once."""
    last = step.starts[1:] - 1
    found = step.starts[:-1].expand(rows.shape)
    for power in range(math.ceil(math.log2(int(step.starts.diff().max()))) - 1, -1, -1):
        further = torch.minimum(found + (1 << power), last)
        found = torch.where(below(step.knots[further], rows), further, found)
    return found


def _project(_: Any, rows: Tensor) -> Tensor:
    ordered = rows.sort(dim=1, descending=True).values
    excess = ordered.cumsum(dim=1) - 1.0
    counts = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    kept = (ordered * counts > excess).sum(dim=1, keepdim=True)
    return (rows - excess.gather(1, kept - 1) / kept).clamp(min=0.0)


def _polynomial(step: Any, rows: Tensor) -> Tensor:
    total = torch.zeros_like(rows)
    for coefficient in step.coefficients.flip(0):
        total = total * rows + coefficient
    return total


def _top(_: Any, rows: Tensor) -> Tensor:
    return nn.functional.one_hot(rows.argmax(dim=1), rows.shape[1]).to(rows.dtype)


def _largest_of(step: Any, rows: Tensor) -> Tensor:
    runs = rows.split(step.starts.diff().tolist(), dim=1)
    return torch.stack([run.amax(dim=1) for run in runs], dim=1)


_FORMULAS: dict[type[Step], Callable[[Any, Tensor], Tensor]] = {
    Log: lambda step, rows: rows.clamp(min=step.floor).log(),
    Affine: lambda step, rows: rows * step.scale + step.shift,
    Linear: lambda step, rows: rows @ step.weight + step.bias,
    Sum: lambda step, rows: sum(branch(rows) for branch in step.branches),
    Product: lambda step, rows: math.prod(branch(rows) for branch in step.branches),
    InBlocks: lambda step, rows: step.branches[0](rows),
    Exp: lambda _, rows: rows.exp(),
    Clip: lambda step, rows: rows.clamp(step.low, step.high),
    Polynomial: _polynomial,
    Softmax: lambda _, rows: rows.softmax(dim=1),
    Sigmoid: lambda _, rows: rows.sigmoid(),
    Normalise: _normalise,
    Others: _others,
    Interpolate: _interpolate,
    Lookup: _lookup,
    Project: _project,
    Top: _top,
    Distances: lambda step, rows: torch.cdist(rows, step.points, p=1.0),
    LargestOf: _largest_of,
}
