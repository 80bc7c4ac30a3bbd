"""The rows that a calibrator learns from: with groups, joined with more, repeated as often as whole weights say."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Ints
from polycal._validation import to_numpy
from polycal.families.auditor import weighted_rows
from polycal.sample import Sample

# Larger weights, on average, are not counts of rows.
_MOST_COPIES = 10


@dataclass(frozen=True, eq=False)
class FitRows:
    """Validated rows, with the labels of their groups where these are known.

    Attributes
    ----------
    sample : Sample
    groups : ndarray of shape (n_samples,), or None
        The same label for rows that are held out together.
    """

    sample: Sample
    groups: NDArray[Any] | None = None

    def group_numbers(self) -> Ints | None:
        """The number of each row's group."""
        return None if self.groups is None else np.unique(self.groups, return_inverse=True)[1]

    def joined(self, more: "FitRows") -> "FitRows":
        """These rows, and others of the same classes below."""
        first, second = self.sample, more.sample
        if first.n_classes != second.n_classes:
            raise ValueError(
                f"y_proba has {second.n_classes} classes but the rows before have {first.n_classes}."
            )
        if first.class_names and second.class_names and first.class_names != second.class_names:
            i = next(i for i, name in enumerate(first.class_names) if name != second.class_names[i])
            raise ValueError(
                f"class {i} is called {second.class_names[i]!r} but {first.class_names[i]!r} in the rows before; "
                "give the classes in the same order."
            )
        if (self.groups is None) != (more.groups is None):
            raise ValueError(
                "groups must be given for all rows or for none, those of earlier calls included."
            )
        weight = None
        if first.sample_weight is not None or second.sample_weight is not None:
            weight = np.concatenate([_weight(first), _weight(second)])
        sample = Sample(
            np.concatenate([first.proba, second.proba]),
            np.concatenate([first.labels, second.labels]),
            weight,
            first.class_names or second.class_names,
        )
        groups = (
            None if self.groups is None or more.groups is None else np.concatenate([self.groups, more.groups])
        )
        return FitRows(sample, groups)


def check_row_groups(groups: Any, n_samples: int) -> NDArray[Any] | None:
    """The label of each row's group."""
    if groups is None:
        return None
    labels = to_numpy(groups, "groups")
    if labels.shape != (n_samples,):
        raise ValueError(f"groups must have shape ({n_samples},), a label for each row; got {labels.shape}.")
    return labels


def _weight(sample: Sample) -> Float64s:
    return np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight


def counted_rows(sample: Sample) -> Sample:
    """The sample with each row as often as its weight says, if all weights are whole and not large.

    Such weights are counts: the copies are different observations, which may be in different folds. Other weights say
    how much a row matters; it is one observation, and must not be in two folds.
    """
    if _holds_counts(sample):
        return replace(sample.take(counted_index(sample)), sample_weight=None)
    return weighted_rows(sample)


def counted_index(sample: Sample) -> Ints:
    """Where the rows of `counted_rows` come from."""
    weight = _weight(sample)
    times = weight.astype(np.int64) if _holds_counts(sample) else (weight > 0).astype(np.int64)
    return np.repeat(np.arange(sample.n_samples), times)


def _holds_counts(sample: Sample) -> bool:
    """Whether the weights are counts of rows."""
    weight = sample.sample_weight
    if weight is None:
        return False
    return bool((weight == np.round(weight)).all() and weight.sum() <= _MOST_COPIES * sample.n_samples)
