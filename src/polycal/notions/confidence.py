"""Confidence calibration: is the most likely class right as often as its probability says?"""

from dataclasses import dataclass
from typing import ClassVar

from polycal.notions._base import ErrorEstimate
from polycal.notions._per_question import PerQuestion
from polycal.question import ask_confidence
from polycal.sample import Sample
from polycal.witness.question import TopWitness


@dataclass(frozen=True)
class Confidence(PerQuestion):
    r"""Confidence calibration: is the most likely class right as often as its probability says?

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal mass.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or largest gap over the bins; "l1" is the expected calibration error (ECE).
    smooth : bool, default False
        Whether to take the exact supremum over 1-Lipschitz weights instead of bins (no parameters then).

    Notes
    -----
    Definition: the weights are :math:`\varphi(v_\ell)\,e_\ell` with :math:`\ell = \arg\max v` (the first of
    equals); any :math:`\varphi` that is constant on bins, or any 1-Lipschitz one. A bin holds its upper edge.
    Estimator: plug-in. Cost: O(nk) to find the maximum, then O(n log n). Bias: upwards, of order
    :math:`\sqrt{b/n}` for b bins; in the other direction bins hide what cancels inside one.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.calibration_error([0, 1], [[0.75, 0.25], [0.75, 0.25]], pc.Confidence())
    0.25
    """

    name: ClassVar[str] = "confidence"

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        question = ask_confidence(sample)
        witness = TopWitness((self._weight(question),), sample.n_classes, sample.class_names)
        return ErrorEstimate(self._error(question), "exact", self, self._method, 1, sample.n_samples, witness)
