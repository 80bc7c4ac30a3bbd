"""How to look for a witness: the role of an auditor, and rows held out so that it does not merely fit the noise."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polycal._threads import one_blas_thread, thread_budget
from polycal._typing import Bools, Float64s, Floats
from polycal._validation import check_notion, check_sample
from polycal.families.notion import Notion
from polycal.families.witness import Witness
from polycal.sample import Remainder, Sample, refuse_lists, row_blocks, split_rows


class Auditor(ABC):
    """An algorithm that looks for a witness of miscalibration. One verb: `find_witness`.

    Auditors are small frozen dataclasses, so they compare and print by their parameters. A witness is a
    claim, not a proof: judge it on rows that were not given to the auditor.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> auditor = pc.SubsetAuditor(max_size=2)
    >>> isinstance(auditor, pc.Auditor)
    True
    >>> witness = auditor.find_witness(made.labels, made.proba)
    >>> isinstance(witness, pc.Witness)
    True
    """

    # Whether it can search lists of classes.
    reads_lists: ClassVar[bool] = False

    def find_witness(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
        n_jobs: int | None = -1,
        remainder: Remainder = "unknown",
        features: Any = None,
    ) -> Witness:
        """Look for a weight function that correlates with the residual ``y - v``.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices, or class names when these are known.
        y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predicted probabilities, or lists of classes as for `smooth_calibration_error`.
        sample_weight, class_names, from_logits, remainder
            As for `smooth_calibration_error`.
        n_jobs : int or None, default -1
            Number of threads, -1 for one per core; the result does not depend on it.
        features : data frame, mapping or array of shape (n_samples, n_features), optional
            What else is known of the rows, for auditors that look at it: see `audit`.

        Returns
        -------
        Witness
        """
        sample = check_sample(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            class_names=class_names,
            from_logits=from_logits,
            remainder=remainder,
            features=features,
        )
        with thread_budget(n_jobs), one_blas_thread(sample.n_samples * sample.n_classes**2):
            return self.look(sample)

    def look(self, sample: Sample) -> Witness:
        """`find`, refusing lists of classes where full predictions are needed."""
        if not self.reads_lists:
            refuse_lists(sample, repr(self))
        return self.find(sample)

    @abstractmethod
    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""


@dataclass(frozen=True)
class NotionAuditor(Auditor):
    """Look for the witness of a notion by maximising its error on the given rows.

    Right for notions with few parameters (confidence, class-wise), where what is largest on these rows is nearly
    largest on others. For rich families use their own auditors, which hold rows back.

    Parameters
    ----------
    notion : Notion
        What being calibrated means.

    Examples
    --------
    >>> import polycal as pc
    >>> witness = pc.NotionAuditor(pc.Confidence(smooth=True)).find_witness([0, 1, 1], [0.2, 0.6, 0.7])
    >>> witness.describe()
    'is the most likely class right?'
    """

    notion: Notion
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "notion", check_notion(self.notion))

    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
        if not self.notion.reads_lists:
            refuse_lists(sample, repr(self.notion))
        witness = self.notion.estimate(sample).witness
        if witness is None:
            raise ValueError(f"{self.notion!r} has no witness to show; choose a notion that has one.")
        return witness


# From a sample to witnesses of growing freedom, always the same number of them.
Levels = Callable[[Sample], Sequence[Witness]]


class Verdict(NamedTuple):
    """The level of freedom that holds up, and the classes whose contribution does."""

    level: int
    kept: Bools


def cross_fit(sample: Sample, levels: Levels, seed: int) -> Verdict:
    """Choose the level with the largest correlation on rows that it has not seen, and the classes to keep."""
    first, second = split_rows(sample, (1, 1), seed)
    if first.size == 0 or second.size == 0:
        return Verdict(0, np.ones(sample.n_classes, dtype=np.bool_))
    halves = sample.take(first), sample.take(second)
    judged = [
        [coordinate_contributions(witness, unseen) for witness in levels(seen)]
        for seen, unseen in (halves, halves[::-1])
    ]
    gains, errors = np.moveaxis(np.array(judged), 2, 0)
    level = int(np.argmax(gains.sum(axis=(0, 2))))
    error = np.sqrt((errors[:, level] ** 2).sum(axis=0)) / 2
    return Verdict(level, worth_keeping(gains[:, level].mean(axis=0), error))


def worth_keeping(gains: Float64s, errors: Float64s) -> Bools:
    """Which gains stay positive when shrunk towards their mean, as far as their errors explain how they differ.

    The gain of one class among many is mostly noise: to drop all that came out negative loses much where all
    classes are off a little, and to keep all adds noise where few are.
    """
    live = errors > 0
    if not live.any():
        return live
    precision = np.where(live, 1.0, 0.0) / np.where(live, errors, 1.0) ** 2
    centre = float(precision @ gains / precision.sum())
    excess = (precision * (gains - centre) ** 2).sum() - (live.sum() - 1)
    variance = max(0.0, float(excess / precision.sum()))
    kept: Bools = live & (variance * gains + errors**2 * centre > 0)
    return kept


def weighted_rows(sample: Sample) -> Sample:
    """The sample without the rows of weight 0, which say nothing."""
    if sample.sample_weight is None or sample.sample_weight.all():
        return sample
    return sample.take(sample.sample_weight > 0)


def coordinate_contributions(witness: Witness, sample: Sample) -> tuple[Float64s, Float64s]:
    """``E (y_l - v_l) w_l(v)`` for each class l, whose sum is the correlation, and their standard errors."""
    mass = sample.mass
    total, square = np.zeros((2, sample.n_classes))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        residual = -sample.proba[rows].astype(np.float64)
        residual[np.arange(residual.shape[0]), sample.labels[rows]] += 1.0
        residual *= witness.evaluate_rows(sample.take(rows)) * mass[rows, None]
        total += residual.sum(axis=0)
        square += np.einsum("ij,ij->j", residual, residual)
    return total, np.sqrt(np.maximum(square - total**2 * (mass @ mass), 0.0))


# Amplifications 1, 2, 4, ..., up to this power of two; the last ones are the sign of the witness.
_OCTAVES = 20


AMPLIFICATIONS: Float64s = np.exp2(np.arange(_OCTAVES + 1, dtype=np.float64))


def amplified_gains(residual: Floats, values: Float64s, scale: Float64s) -> Float64s:
    """``sum_ij residual_ij clip(c values_ij scale_j, -1, 1)`` for every c of `AMPLIFICATIONS`, in one pass."""
    from polycal._compiled.kernels import octave_sums  # noqa: PLC0415 - imports numba

    inside, outside = octave_sums(residual, values, scale, _OCTAVES)
    within = np.cumsum(inside[::-1])[::-1]
    beyond = np.concatenate([[0.0], np.cumsum(outside)[:-1]])
    gains: Float64s = AMPLIFICATIONS * within + beyond
    return gains
