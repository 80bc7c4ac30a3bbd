"""Canonical calibration: given the whole prediction, is the label distributed as it says?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._validation import check_real
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.witness.table import TableWitness


@dataclass(frozen=True)
class Canonical(Notion):
    r"""Canonical calibration: given the whole prediction, is the label distributed as it says?

    Computed only where predictions repeat (a decision tree, a table of rules); with distinct predictions it
    cannot be estimated from fewer than exponentially many samples in k [1]_, and a ``ValueError`` says so.

    Parameters
    ----------
    min_repeats : float, default 2
        Refuse when a distinct prediction occurs fewer times than this on average.

    Notes
    -----
    Definition: all weight functions into :math:`[-1, 1]^k`, so the error is
    :math:`\mathbb{E}\,\|\mathbb{E}[y \mid v] - v\|_1`, from 0 to 2. Estimator: plug-in over groups of equal
    predictions. Cost: a sort of the rows, O(nk log n). Bias: upwards, of order :math:`\sqrt{k g / n}` for g
    distinct predictions.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Theorem on the sample complexity of canonical calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.calibration_error([0, 1, 2, 2], [[0.5, 0.25, 0.25]] * 4, pc.Canonical())
    0.5
    """

    min_repeats: float = 2.0
    name: ClassVar[str] = "canonical"

    def __post_init__(self) -> None:
        check_real(self.min_repeats, "min_repeats", low=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        distinct, group = np.unique(sample.proba, axis=0, return_inverse=True)
        n_distinct = distinct.shape[0]
        if sample.n_samples < self.min_repeats * n_distinct:
            raise ValueError(
                f"Canonical error needs repeated predictions: {sample.n_samples} rows hold {n_distinct} distinct ones "
                f"(fewer than {self.min_repeats:g} rows each), and without repeats any finite sample looks "
                "miscalibrated. Use SubsetSmooth, Classwise or Confidence, or round the predictions first."
            )
        mass = sample.mass
        outcome = np.zeros(distinct.shape)
        np.add.at(outcome, (group, sample.labels), mass)
        expected = distinct * np.bincount(group, weights=mass, minlength=n_distinct)[:, None]
        gap = outcome - expected
        method = f"grouped by {n_distinct} distinct predictions"
        witness = TableWitness(distinct, np.sign(gap), sample.n_classes, sample.class_names)
        value = float(np.abs(gap).sum())
        return ErrorEstimate(value, "exact", self, method, n_distinct, sample.n_samples, witness)
