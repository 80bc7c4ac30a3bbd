"""Class-wise calibration: does each class occur as often as its probability says?"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s
from polycal._validation import check_choice
from polycal.notions._base import ErrorEstimate
from polycal.notions._per_question import PerQuestion
from polycal.question import ask_subset
from polycal.sample import Sample
from polycal.witness.question import SubsetWitness

Reduce = Literal["max", "mean", "sum"]


@dataclass(frozen=True)
class Classwise(PerQuestion):
    r"""Class-wise calibration: does each class occur as often as its probability says?

    Parameters
    ----------
    n_bins, strategy, norm, smooth
        As for `Confidence`, applied to each class's own probability.
    reduce : {"max", "mean", "sum"}
        How the errors of the classes become one number: the worst class (the definition as a weight
        family), their mean (the "class-wise ECE" of the literature), or their sum.

    Notes
    -----
    Definition: the weights are :math:`\varphi(v_\ell)\,e_\ell` for each class :math:`\ell`. Estimator: plug-in.
    Cost: k sorts of n numbers, on all cores. Bias: upwards; the maximum over many classes also picks noise.
    The witness of an estimate is that of the worst class.
    Blind to sums: every class may be calibrated while the probability of "cat or dog" is far off.

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> pc.calibration_error([0, 0, 1, 0], y_proba, pc.Classwise())
    0.25
    """

    reduce: Reduce = "max"
    name: ClassVar[str] = "classwise"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.reduce, "reduce", ("max", "mean", "sum"))

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        errors = self.errors(sample)
        worst = np.array([int(np.argmax(errors))])
        phi = self._weight(ask_subset(sample, worst))
        return ErrorEstimate(
            value=float(getattr(np, self.reduce)(errors)),
            kind="exact",
            notion=self,
            method=f"{self.reduce} over classes, {self._method}",
            n_steps=errors.size,
            n_samples=sample.n_samples,
            witness=SubsetWitness(worst, phi, sample.n_classes, sample.class_names),
        )

    def errors(self, sample: Sample) -> Float64s:
        """The error of each class."""
        classes = np.arange(sample.n_classes)
        return np.array(map_threads(lambda c: self._error(ask_subset(sample, classes[c : c + 1])), classes))
