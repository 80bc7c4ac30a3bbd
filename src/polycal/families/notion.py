"""What being calibrated means: the role of a notion, and its error on a sample."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from polycal._validation import check_sample
from polycal.families.witness import Witness
from polycal.sample import Sample

Kind = Literal["exact", "lower bound", "upper bound", "heuristic"]


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """The error of a notion on a sample, with what kind of number it is.

    Attributes
    ----------
    value : float
        The number.
    kind : {"exact", "lower bound", "upper bound", "heuristic"}
        How it relates to the notion's error *on this sample* (which itself is biased upwards as an
        estimate of the population's).
    notion : Notion
        What was measured.
    method : str
        What was computed, in words.
    n_steps : int
        Number of elementary problems solved (classes, subsets, iterations).
    n_samples : int
        Number of rows.
    witness : Witness or None
        A weight function of the notion's family whose correlation with the residual on this sample is
        `value`; for an upper bound at most that. Where `value` is a mean, a sum or another norm than the
        supremum over weights, the witness is that of the supremum. None where there is none to show.
    """

    value: float
    kind: Kind
    notion: "Notion"
    method: str
    n_steps: int
    n_samples: int
    witness: Witness | None = None

    def __float__(self) -> float:
        return self.value


class Notion(ABC):
    """A weight family W. Its error is ``sup over w in W of |E <y - v, w(v)>|``.

    Notions are small frozen dataclasses, so they compare, hash and print by their parameters.
    """

    name: ClassVar[str]

    @abstractmethod
    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the notion's error on a validated sample."""

    def repeated(self, times: int) -> Self:  # noqa: ARG002 - for notions that depend on it
        """The notion, for `times` estimates of samples of one size: one that may take long chooses a faster way."""
        return self


def estimate_error(
    y_true: Any,
    y_proba: Any,
    notion: Notion,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> ErrorEstimate:
    """Compute the error of any notion of calibration, with what kind of number it is.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    notion : Notion
        What being calibrated means, such as ``Confidence()``.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    ErrorEstimate

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([0, 1], [[0.5, 0.5], [0.5, 0.5]], pc.Canonical())
    >>> estimate.value, estimate.kind
    (0.0, 'exact')
    """
    if not isinstance(notion, Notion):
        raise TypeError(f"notion must be a notion such as polycal.Confidence(); got {notion!r}.")
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    return notion.estimate(sample)


def calibration_error(
    y_true: Any,
    y_proba: Any,
    notion: Notion,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    """Compute the error of any notion of calibration. 0 is best.

    The value is the plug-in estimate on the sample: biased upwards, so that a perfectly calibrated
    predictor does not read 0. `estimate_error` says what kind of number it is.

    Parameters
    ----------
    y_true, y_proba, notion, sample_weight, class_names, from_logits
        As for `estimate_error`.

    Returns
    -------
    float

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]
    >>> round(pc.calibration_error([0, 0, 1, 0], y_proba, pc.Confidence(n_bins=5)), 3)
    0.2
    """
    return estimate_error(
        y_true,
        y_proba,
        notion,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
    ).value
