"""The numbers that every tool shows: scores, the error of one question and bounds of it, from batches."""

from typing import Any

from polycal._validation import check_level
from polycal.inference.question_bounds import error_bounds
from polycal.states.cells import Weights
from polycal.states.questions import QuestionState
from polycal.states.sums import ScoreState

# Narrow enough that what cells change is far below what chance does.
_RESOLUTION = 1.0 / 4096.0


class RunningCalibration:
    """Scores, and the smooth calibration error of one question between bounds, of rows that come in batches.

    Parameters
    ----------
    subset : list of classes, optional
        The classes that count as "yes"; by default "is the most likely class right?".
    alpha : float, default 0.05
        The bounds hold with probability 1 - alpha. They hold for the rows seen when `numbers` is called once; who looks
        again and again at more rows wants a monitor.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.integrations.running import RunningCalibration
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> running = RunningCalibration().update(example.labels, example.proba)
    >>> numbers = running.numbers()
    >>> sorted(numbers)
    ['accuracy', 'at_least', 'at_most', 'brier_score', 'log_loss', 'smooth_calibration_error']
    >>> numbers["at_least"] <= numbers["smooth_calibration_error"] <= numbers["at_most"]
    True
    """

    def __init__(self, subset: Any = None, *, alpha: float = 0.05) -> None:
        self.alpha = check_level(alpha)
        self._question = QuestionState(subset, resolution=_RESOLUTION)
        self._scores = ScoreState()

    def update(self, y_true: Any, y_proba: Any, *, from_logits: bool = False) -> "RunningCalibration":
        """Take in a batch of labels and predictions."""
        self._question.update(y_true, y_proba, from_logits=from_logits)
        self._scores.update(y_true, y_proba, from_logits=from_logits)
        return self

    def numbers(self) -> dict[str, float]:
        """The error, its bounds and the scores of all rows so far."""
        error = self._question.finish().value
        n = self._question.n_samples
        residuals = self._question.residuals(Weights(n, float(n), float(n), 1.0))
        bounds = error_bounds([] if residuals is None else [residuals], self.alpha / 2, self.alpha / 2)
        at_least, at_most = bounds[:, 0].tolist()
        named = {"smooth_calibration_error": error, "at_least": at_least, "at_most": at_most}
        return named | self._scores.finish()
