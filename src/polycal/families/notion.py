"""What being calibrated means: the role of a notion, and its error on a sample."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from polycal._threads import one_blas_thread, thread_budget
from polycal._validation import check_notion, check_sample
from polycal.families.witness import Witness
from polycal.sample import Remainder, Sample, refuse_lists

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
    upper : float or None
        Where lists hide part of the predictions: no completion of the lists has a larger error. None: not asked.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> estimate = pc.estimate_error(made.labels, made.proba, pc.SubsetSmooth())
    >>> estimate.kind, estimate.method, estimate.witness
    ('exact', 'all 7 subsets', SubsetWitness(is it 1 or 2?))
    """

    value: float
    kind: Kind
    notion: "Notion"
    method: str
    n_steps: int
    n_samples: int
    witness: Witness | None = None
    upper: float | None = None

    def __float__(self) -> float:
        return self.value


class Notion(ABC):
    """A weight family W. Its error is ``sup over w in W of |E <y - v, w(v)>|``.

    Notions are small frozen dataclasses, so they compare, hash and print by their parameters.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> notion = pc.Confidence(smooth=True)
    >>> isinstance(notion, pc.Notion), notion.name
    (True, 'confidence')
    >>> pc.calibration_error(made.labels, made.proba, notion) > 0.1
    True
    """

    name: ClassVar[str]
    # Whether it can be estimated from lists of classes.
    reads_lists: ClassVar[bool] = False

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
    n_jobs: int | None = -1,
    remainder: Remainder = "unknown",
) -> ErrorEstimate:
    """Compute the error of any notion of calibration, with what kind of number it is.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities, or lists of classes as for `smooth_calibration_error`.
    notion : Notion
        What being calibrated means, such as ``Confidence()``. Lists tell something about `Confidence`, `TopLabel`,
        `Classwise` and `SubsetSmooth`.
    sample_weight, class_names, from_logits, remainder
        As for `smooth_calibration_error`.
    n_jobs : int or None, default -1
        Number of threads, -1 for one per core; the result does not depend on it.

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
    notion = check_notion(notion)
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
    )
    if not notion.reads_lists:
        refuse_lists(sample, repr(notion))
    with thread_budget(n_jobs), one_blas_thread(sample.n_samples * sample.n_classes**2):
        return notion.estimate(sample)


def calibration_error(
    y_true: Any,
    y_proba: Any,
    notion: Notion,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    n_jobs: int | None = -1,
    remainder: Remainder = "unknown",
) -> float:
    """Compute the error of any notion of calibration. 0 is best.

    The value is the plug-in estimate on the sample: biased upwards, so that a perfectly calibrated
    predictor does not read 0. `estimate_error` says what kind of number it is.

    Parameters
    ----------
    y_true, y_proba, notion, sample_weight, class_names, from_logits, n_jobs, remainder
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
        n_jobs=n_jobs,
        remainder=remainder,
    ).value
