"""Predictions kept class by class, so that the probability of any set of classes is there at once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.auditing.questions import asked_ranks
from polycal.sample import Sample


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """A transposed copy of the predictions, with the most likely class of each row.

    Attributes
    ----------
    values : ndarray of shape (n_classes, n_samples)
        As many bytes as the predictions have. A set of m classes reads m stretches of n numbers; in the order of
        rows it would have to pass over nearly all of the memory, whatever m is.
    top : ndarray of int64, shape (n_samples,)
        The most likely class.
    confidence : ndarray of float64, shape (n_samples,)
        Its probability.
    ranks : dict of int to tuple
        The probability of the m most likely classes, and whether the label is among them, for each m that is asked.
    """

    values: Floats
    top: Ints
    confidence: Float64s
    ranks: Mapping[int, tuple[Float64s, Bools]]

    @classmethod
    def of(cls, sample: Sample) -> "Columns":
        """Copy a sample's predictions."""
        tops = {m: sample.top_set(m) for m in asked_ranks(sample.n_classes).values() if m > 1}
        ranks = {m: (top.low, top.hits) for m, top in tops.items()}
        return cls(np.ascontiguousarray(sample.proba.T), *sample.top_class(), ranks)

    def subset_proba(self, subset: Ints) -> Float64s:
        """What `Sample.subset_proba` gives."""
        total = np.zeros(self.values.shape[1])
        for class_index in subset:
            total += self.values[class_index]
        return np.minimum(total, 1.0, out=total)
