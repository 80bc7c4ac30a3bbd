"""No calibration: the baseline every other calibrator must beat."""

from typing import ClassVar

from polycal.calibrators._base import Calibrator
from polycal.sample import Sample
from polycal.steps import Program


class IdentityCalibrator(Calibrator):
    """The predictions as they are.

    Useful as the reference in comparisons, and to pass logits through a softmax.

    Parameters
    ----------
    from_logits : bool
        The predictions are logits, which go through a softmax.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.IdentityCalibrator().fit([[0.2, 0.8], [0.6, 0.4]], [1, 0]).predict_proba([[0.25, 0.75]])
    array([[0.25, 0.75]])
    """

    family: ClassVar[str] = "identity"

    def __init__(self, *, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:  # noqa: ARG002 - nothing to learn
        return ()
