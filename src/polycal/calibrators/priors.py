"""Priors of the calibrators: what is believed before any row is seen, weighed so that many rows outvote it.

Every fit minimises the *sum* of the rows' log losses plus a penalty that does not grow with the rows. So the minimum
exists for any rows (separable ones, a single one, classes that do not occur), and tends to maximum likelihood.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Floats
from polycal._validation import CalibrationWarning, check_real
from polycal.sample import Sample

AUTO = "auto"
# The weight of every prior, unless another is asked for.
PRIOR = 1.0
# How much less than the entries off the diagonal, whose features are larger and many, the others are penalised.
MATRIX_RATIO, DIRICHLET_RATIO = 300.0, 3000.0
# Of a matrix, in units of the prior: the least penalty of an entry, and that of the relative change of the diagonal's
# mean, which temperature scaling has already learnt from the same rows.
WEAKEST, KNOWN = 0.3, 10.0
# Rows that the prior of mixture weights counts for, in each part.
MIXTURE_ROWS = 1.0 / 3.0


def check_prior(prior: float | None) -> float:
    """The weight of the prior; 0 for None."""
    return 0.0 if prior is None else check_real(prior, "prior", low=0.0)


def is_auto(value: Any) -> bool:
    """Whether a penalty shall be chosen."""
    return isinstance(value, str) and value == AUTO


def check_penalty(value: Any, name: str) -> float:
    """Validate a penalty that is not "auto"."""
    try:
        return check_real(value, name, low=0.0)
    except ValueError:
        raise ValueError(f"{name} must be a number from 0, or {AUTO!r}; got {value!r}.") from None


def slope_penalty(slope: float) -> float:
    """Of a common slope 1/T: ``slope - 1 - log(slope)``, a gamma prior whose mode is the input.

    It is convex, and no slope of 0 or below is possible: without evidence the order of the classes stays.
    """
    return slope - 1.0 - float(np.log(slope))


def slope_penalty_gradient(slope: float) -> float:
    """Its derivative."""
    return 1.0 - 1.0 / slope


def warn_if_few(sample: Sample, n_numbers: int, name: str) -> None:
    """Say once for a fit that the prior, more than the rows, decides."""
    n = sample.n_samples if sample.sample_weight is None else int(np.count_nonzero(sample.sample_weight))
    if n < n_numbers:
        warnings.warn(
            f"{name} fits {n_numbers:,} numbers to {n:,} rows: the penalty decides more than the rows do.",
            CalibrationWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class MatrixPenalty:
    r"""``off_diagonal/2 sum_{i != j} W_ij^2 + diagonal/2 sum_i (W_ii - m)^2 + bias/2 |b|^2 + slope/2 (m - centre)^2``.

    m is the mean of the diagonal, the inverse of a temperature: free, or near a centre. Maps and steps are arrays of
    shape (k + 1, k), the bias below the matrix.

    Attributes
    ----------
    off_diagonal, diagonal, bias, slope : float
        Not negative.
    centre : float
    """

    off_diagonal: float
    diagonal: float
    bias: float
    slope: float = 0.0
    centre: float = 0.0

    @property
    def amount(self) -> float:
        """The penalty off the diagonal, of which the others are a part; 1 where it is 0."""
        return self.off_diagonal or 1.0

    @classmethod
    def tied(cls, off_diagonal: float, ratio: float = MATRIX_RATIO) -> "MatrixPenalty":
        """With the diagonal and the bias penalised in proportion."""
        return cls(off_diagonal, off_diagonal / ratio, off_diagonal / ratio)

    def per(self, total: float) -> "MatrixPenalty":
        """The penalty that goes with a mean of losses where this one goes with their sum, ``total`` of them."""
        off_diagonal, bias = self.off_diagonal / total, self.bias / total
        return MatrixPenalty(off_diagonal, self.diagonal / total, bias, self.slope / total, self.centre)

    def under(self, prior: float, inverse: float) -> "MatrixPenalty":
        """With a prior of some weight: the diagonal is near the inverse temperature, and no entry is free."""
        if prior == 0.0:
            return self
        least = WEAKEST * prior
        off_diagonal, bias = max(self.off_diagonal, least), max(self.bias, least)
        return MatrixPenalty(
            off_diagonal, max(self.diagonal, least), bias, KNOWN * prior / inverse**2, inverse
        )

    def each(self, n_classes: int) -> Float64s:
        """The relative penalty of each entry, of shape (k + 1, k)."""
        out = np.full((n_classes + 1, n_classes), self.off_diagonal)
        np.fill_diagonal(out, self.diagonal)
        out[-1] = self.bias
        return out / self.amount

    def gradient(self, weight: Floats) -> Floats:
        """The derivative."""
        return self._gradient(weight, self.centre)

    def value(self, weight: Floats, gradient: Floats) -> float:
        """The penalty, given its derivative: half the product of that with the way from the centre."""
        return 0.5 * (float(np.vdot(gradient, weight)) - self.centre * float(np.trace(gradient)))

    def _gradient(self, weight: Floats, centre: float) -> Floats:
        out: Floats = self.off_diagonal * weight
        own = np.diagonal(weight)
        mean = float(own.mean())
        np.fill_diagonal(out, self.diagonal * (own - mean) + self.slope / own.size * (mean - centre))
        out[-1] = self.bias * weight[-1]
        return out

    def centred(self, step: Floats) -> Floats:
        """The step without what the softmax does not see, a shift of all classes; overwritten.

        Row by row, that is the shift after which the penalty's derivatives sum to 0: no other shift costs less. The
        rows depend on one another by the mean of the diagonal alone, so there is a closed form.
        """
        return self._shifted(step, 0.0)

    def settled(self, weight: Floats) -> Floats:
        """The map (a copy) with the shift of all classes, row by row, that costs least."""
        return self._shifted(weight.copy(), self.centre)

    def _shifted(self, step: Floats, centre: float) -> Floats:
        k = step.shape[1]
        others = (k - 1) * self.off_diagonal
        if others > 0.0:
            slopes, common = np.einsum("ij->i", self._gradient(step, centre)[:-1]), self.slope / k
            mean = slopes.mean() / (others + common)
            shift = (slopes + (self.diagonal - common) * mean) / (others + self.diagonal)
            step[:-1] -= shift[:, None]
        step[-1] -= step[-1].mean()
        return step
