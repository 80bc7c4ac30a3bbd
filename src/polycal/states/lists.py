"""Former states of lists of classes: `QuestionState` and `KernelState` take lists now. Saved files have these."""

from typing import Annotated, Any, ClassVar

from polycal._typing import Seed
from polycal._validation import check_choice
from polycal._validation.lists import REMAINDERS
from polycal.kernels.kernels import Gaussian, Kernel
from polycal.sample import Remainder
from polycal.states.kernel import KernelState
from polycal.states.questions import QuestionState
from polycal.storage.rules import Kept, Real

_DEFAULT_KERNEL = Gaussian(0.2)


class TruncatedQuestionState(QuestionState):
    """A `QuestionState` that is told once what is said of the rest of lists; in cells, whose width is `resolution`."""

    family: ClassVar[str] = "truncated"

    remainder: Annotated[Remainder, Kept()]
    resolution: Annotated[float, Real(low=1e-6, high=0.5)]

    def __init__(
        self, subset: Any, *, remainder: Remainder = "unknown", resolution: float = 2.0**-16, top: int = 1
    ) -> None:
        super().__init__(subset, top=top, resolution=resolution)
        check_choice(remainder, "remainder", REMAINDERS)
        self.remainder = remainder


class TruncatedKernelState(KernelState):
    """A `KernelState` of lists without amplification."""

    family: ClassVar[str] = "truncated-kernel"

    remainder = "anywhere"

    def __init__(
        self,
        landmarks: Any,
        kernel: Kernel = _DEFAULT_KERNEL,
        *,
        n_held_back: int = 0,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(landmarks, kernel, n_held_back=n_held_back, random_state=random_state)
