"""How one yes/no question is measured: binned or smooth. Shared by the notions made of such questions."""

from dataclasses import dataclass

from polycal._validation import check_choice, check_integer
from polycal.binned import Norm, Strategy, binned_curve, gap_signs
from polycal.functions import ScalarFunction
from polycal.notions._base import Notion
from polycal.question import Question
from polycal.smooth import smooth_curve, smooth_error


@dataclass(frozen=True)
class PerQuestion(Notion):
    """Parameters common to confidence, top-label and class-wise calibration."""

    n_bins: int = 15
    strategy: Strategy = "uniform"
    norm: Norm = "l1"
    smooth: bool = False

    def __post_init__(self) -> None:
        check_integer(self.n_bins, "n_bins", minimum=1)
        check_choice(self.strategy, "strategy", ("uniform", "quantile"))
        check_choice(self.norm, "norm", ("l1", "l2", "max"))

    def _error(self, question: Question) -> float:
        if self.smooth:
            return smooth_error(question)
        return binned_curve(question, self.n_bins, self.strategy).error(self.norm)

    def _weight(self, question: Question) -> ScalarFunction:
        """The function phi of the predicted probability that attains the error (of the l1 norm, for bins)."""
        if self.smooth:
            return smooth_curve(question).phi.simplified()
        return gap_signs(question, self.n_bins, self.strategy)

    @property
    def _method(self) -> str:
        if self.smooth:
            return "exact supremum over 1-Lipschitz weights"
        shape = "equal-width" if self.strategy == "uniform" else "equal-mass"
        norm = "" if self.norm == "l1" else f", {self.norm} norm"
        return f"{self.n_bins} {shape} bins{norm}"
