"""Calibrators that mix all classes' log probabilities."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_real
from polycal.calibrators._likelihood import total_weight
from polycal.calibrators._log_linear import fit_log_linear
from polycal.calibrators._log_linear_path import StrengthChoice, choose_strength
from polycal.calibrators._matrix_ridge import MatrixRidge
from polycal.calibrators.base import Calibrator
from polycal.sample import Sample
from polycal.steps import Linear, Log, Program, Softmax

AUTO = "auto"


class LogLinearCalibrator(Calibrator):
    """A calibrator that mixes all classes' log probabilities; subclasses say how W and b are held.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.
    off_diagonal_ : float
        The strength used for the entries off the diagonal.
    cv_log_loss_ : ndarray of shape (n_tried, 2)
        Every strength tried, and its log loss on rows kept aside; empty where none was tried.
    """

    saved_attributes: ClassVar[tuple[str, ...]] = ("weight_", "bias_", "off_diagonal_", "cv_log_loss_")
    off_diagonal: float | str
    weight_: Float64s
    bias_: Float64s
    # Files of the first version have neither.
    off_diagonal_: float = np.nan
    cv_log_loss_: Float64s = np.empty((0, 2))

    @abstractmethod
    def _ridge(self, off_diagonal: float) -> MatrixRidge:
        """The penalty of the sum of log losses, given the strength for the entries off the diagonal."""

    def _fit(self, sample: Sample) -> Program:
        choice = self._choose(sample)
        ridge = self._ridge(choice.strength).per(total_weight(sample))
        self.weight_, self.bias_ = fit_log_linear(sample, ridge, choice.start)
        self.off_diagonal_ = choice.strength
        self.cv_log_loss_ = np.array(choice.table, dtype=np.float64).reshape(-1, 2)
        return Log(), Linear(self.weight_, self.bias_), Softmax()

    def _choose(self, sample: Sample) -> StrengthChoice:
        """The strength given, or one that the sample asks for."""
        if is_auto(self.off_diagonal):
            return choose_strength(sample, self._ridge)
        return StrengthChoice(check_strength(self.off_diagonal, "off_diagonal"))


def is_auto(value: Any) -> bool:
    """Whether a strength shall be chosen."""
    return isinstance(value, str) and value == AUTO


def check_strength(value: Any, name: str) -> float:
    """Validate a strength that is not "auto"."""
    try:
        return check_real(value, name, low=0.0)
    except ValueError:
        raise ValueError(f"{name} must be a number from 0, or {AUTO!r}; got {value!r}.") from None
