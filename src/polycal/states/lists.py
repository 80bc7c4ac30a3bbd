"""States of lists under their former names: every state takes lists now."""

from typing import Any, ClassVar

from polycal._validation import check_choice
from polycal._validation_lists import REMAINDERS
from polycal.sample import Remainder
from polycal.states.kernel import ListedKernelState as TruncatedKernelState
from polycal.states.questions import QuestionState

__all__ = ["TruncatedKernelState", "TruncatedQuestionState"]


class TruncatedQuestionState(QuestionState):
    """A `QuestionState` that is told once what lists leave over.

    Parameters
    ----------
    subset : list of class indices
        The classes that count as "yes".
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        As for `smooth_calibration_error`.
    resolution : float, default 2**-16
        As for `QuestionState`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from polycal.states.lists import TruncatedQuestionState
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> summary = TruncatedQuestionState([0, 1]).update([1, 2], top).finish()
    >>> round(summary.low, 3), round(summary.high, 3), round(summary.unknown, 3)
    (0.25, 0.353, 0.075)
    """

    family: ClassVar[str] = "truncated"

    def __init__(
        self, subset: Any, *, remainder: Remainder = "unknown", resolution: float = 2.0**-16
    ) -> None:
        super().__init__(subset, resolution=resolution)
        check_choice(remainder, "remainder", REMAINDERS)
        self.remainder = remainder

    def parameters(self) -> dict[str, Any]:
        """Question, remainder and resolution."""
        return {**super().parameters(), "remainder": self.remainder}
