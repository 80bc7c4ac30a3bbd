"""The slices of an audit: searched for on one half of the rows and judged on the other, or asked for by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_column_names, check_masks
from polycal.auditing.shares import SLICE_FOUND_SHARE
from polycal.auditing.slices import NamedSlice, SliceFinding, SliceReading, SliceRows
from polycal.families.learner import LearnerWitness
from polycal.families.slices import (
    Condition,
    SliceAuditor,
    SliceWitness,
    column_importance,
    column_slices,
    feature_learner,
    slice_rows,
)
from polycal.families.witness import Witness
from polycal.features import TRUTH
from polycal.inference.betting import lower_bound, set_up
from polycal.inference.certificate import (
    Certificate,
    Reading,
    certify_sample,
    correlation_bound,
    read_witness,
)
from polycal.inference.question_bounds import discoveries
from polycal.sample import Sample

# The headline is the slice with the shortest description whose bound is at least this share of the largest.
_NEARLY = 0.8
_LARGEST_STAKE = 0.9
# Rows times classes that the learner sees.
_MOST_TAUGHT = 300_000
# Columns of which the importance is told, and the share of the largest from which on they are named.
_MOST_IMPORTANT, _MATTERS = 5, 0.2


# From what a learner found to the importance of each column.
Importance = Callable[[LearnerWitness], Mapping[str, float]]


class Slices(NamedTuple):
    """The slices of an audit."""

    found: tuple[SliceFinding, ...]
    named: tuple[NamedSlice, ...]


@dataclass(frozen=True)
class SlicePlan:
    """What is asked about slices.

    Attributes
    ----------
    search : bool
        Whether features are searched.
    columns : tuple of str
        Columns whose values are slices with names.
    masks : tuple of str
        Columns of truth values whose true rows are slices with names.
    """

    search: bool = False
    columns: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()

    @property
    def asked(self) -> bool:
        """Whether anything is."""
        return self.search or self.is_named

    @property
    def is_named(self) -> bool:
        """Whether slices are named."""
        return bool(self.columns or self.masks)

    def words(self) -> tuple[str, ...]:
        """What is approximate where rows go by, in sentences."""
        if not self.asked:
            return ()
        words = (
            "Slices were cut and searched for on the sketch, and judged on every row of the other half, but for what a "
            "learner found, which random rows of it judged. Named slices are measured by all rows, in cells."
        )
        return (words,)

    def found_alpha(self, alpha: float) -> float:
        """What the bounds of slices that are found may fail with, of the alpha of slices."""
        return alpha * (SLICE_FOUND_SHARE if self.is_named else 1.0)

    def named_alpha(self, alpha: float) -> float:
        """What the bounds of slices that are named may fail with."""
        return alpha * (1.0 - SLICE_FOUND_SHARE if self.search else 1.0)

    def named_in(self, sample: Sample) -> dict[str, tuple[Condition, ...]]:
        """The named slices of some rows, which tell the values of columns."""
        slices: dict[str, tuple[Condition, ...]] = {
            name: (Condition(name, "category", TRUTH[1]),) for name in self.masks
        }
        return slices if sample.features is None else slices | column_slices(sample.features, self.columns)


NO_SLICES = SlicePlan()


def column_plan(columns: Sequence[str], *, is_listed: bool) -> SlicePlan:
    """The plan for columns of files: they are searched, and their values are slices with names."""
    if columns and is_listed:
        raise ValueError("slices need full predictions, and these are lists of classes; leave out slice_by.")
    return SlicePlan(bool(columns), columns=tuple(columns))


def asked_slices(sample: Sample, slices: Any) -> tuple[Sample, SlicePlan]:
    """A sample with what it is to be sliced by, and the plan: masks by name, or a list of columns of its features."""
    search = sample.features is not None
    if sample.is_listed and (search or slices is not None):
        raise ValueError(
            "slices need full predictions, and y_proba lists only some classes; drop features and slices."
        )
    if slices is None:
        return sample, SlicePlan(search)
    if not isinstance(slices, Mapping):
        return sample, SlicePlan(search, columns=check_column_names(slices, sample.features))
    masks = check_masks(slices, sample.n_samples)
    if sample.features is None:
        return replace(sample, features=masks), SlicePlan(masks=masks.names)
    twice = next((name for name in masks.names if name in sample.features.names), None)
    if twice is not None:
        raise ValueError(f"slices names {twice!r}, which is a column of features too; rename one.")
    return replace(sample, features=sample.features.with_columns(masks)), SlicePlan(search, masks=masks.names)


class FoundSlices(NamedTuple):
    """What the search found: slices, the most promising first, and what a learner found, if it did."""

    slices: list[SliceWitness]
    learnt: LearnerWitness | None

    @property
    def witnesses(self) -> list[Witness]:
        """All of them; the learner's is the second, as it is searched for on its own."""
        learnt: list[Witness] = [] if self.learnt is None else [self.learnt]
        return [*self.slices[:1], *learnt, *self.slices[1:]]


NO_FOUND = FoundSlices([], None)


class JudgedSlice(NamedTuple):
    """A witness on the rows that judge it."""

    certificate: Certificate
    reading: Reading
    elsewhere: Reading | None
    share: float
    # Sums of a, a x, a^2, a^2 x and a^2 x^2, for weights a of at most 1 and x the correlation over its bound.
    sums: Float64s


def find_slices(searched: Sample, seed: int, n_jobs: int | None) -> FoundSlices:
    """Search rows for slices, and with a learner for any function of features and predictions."""
    features = searched.features
    if features is None:
        return NO_FOUND
    n_taught = max(1, min(searched.n_samples, _MOST_TAUGHT // min(searched.n_classes, 20)))
    taught = searched.take(np.sort(np.random.default_rng(seed).permutation(searched.n_samples)[:n_taught]))
    learnt = feature_learner(features, searched.n_classes, seed).find(taught)
    slices = SliceAuditor(random_state=seed).find_slices(searched, n_jobs)
    return FoundSlices(slices, learnt if learnt.estimators else None)


def found_slices(
    searched: Sample, judging: Sample, alpha: float, fdr: float, seed: int, n_jobs: int | None
) -> tuple[SliceFinding, ...]:
    """Slices found on some rows and judged on others.

    Parameters
    ----------
    searched, judging : Sample
        With features.
    alpha, fdr : float
        What all bounds together may fail with, and the level of e-BH.
    """
    found = find_slices(searched, seed, n_jobs)
    levels = slice_levels(len(found.witnesses), alpha).tolist()
    both = list(zip(found.witnesses, levels, strict=True))
    judged = [judge_witness(witness, searched, judging, level, seed) for witness, level in both]
    priors = [prior_of(witness, searched, judging, level, seed) for witness, level in both]
    return slice_findings(found, judged, priors, fdr, lambda learnt: column_importance(learnt, judging, seed))


def slice_levels(n_witnesses: int, alpha: float) -> Float64s:
    """The level of each bound: together alpha, and more for what the search found most promising."""
    weight = 1.0 / np.arange(1, n_witnesses + 1)
    levels: Float64s = alpha * weight / weight.sum()
    return levels


def judge_witness(
    witness: Witness, searched: Sample, judging: Sample, level: float, seed: int
) -> JudgedSlice | None:
    """A witness on rows that judge it; None if too few of them are in its slice."""
    inside = witness.part(judging)
    if inside.n_samples < 2 or _is_weightless(inside):
        return None
    certificate = certify_sample(witness, judging, level, seed)
    inner = getattr(witness, "inner", witness)
    weight = np.ones(inside.n_samples) if inside.sample_weight is None else inside.sample_weight
    stake, gains = weight / weight.max(), inner.correlations(inside) / correlation_bound(witness)
    elsewhere = None
    if isinstance(witness, SliceWitness):
        outside = judging.take(~slice_rows(witness.conditions, judging.features))
        part = witness.part(searched)
        elsewhere = read_witness(inner, part, outside) if outside.n_samples else None
    whole = judging.n_samples if judging.sample_weight is None else float(judging.sample_weight.sum())
    return JudgedSlice(
        certificate,
        read_witness(inner, witness.part(searched), inside),
        elsewhere,
        float(weight.sum()) / whole,
        np.array([stake.sum(), stake @ gains, stake @ stake, stake**2 @ gains, stake**2 @ gains**2]),
    )


def _is_weightless(sample: Sample) -> bool:
    return sample.sample_weight is not None and not sample.sample_weight.any()


class Prior(NamedTuple):
    """What other rows than those of the slice that judge say of a witness.

    Attributes
    ----------
    spread : float
        The mean square of its correlations over their bound, on the rows that were searched.
    usual : float
        An upper bound for its correlation over its bound outside the slice, by rows that judge: the search looks for
        rows whose others are less wrong, so that those it saw seem less wrong than they are.
    """

    spread: float
    usual: float


def prior_of(witness: Witness, searched: Sample, judging: Sample, level: float, seed: int) -> Prior:
    """What the searched rows say of a witness, and those outside its slice that judge."""
    bound, inner = correlation_bound(witness), getattr(witness, "inner", witness)
    spread = float(np.mean((inner.correlations(witness.part(searched)) / bound) ** 2))
    if not isinstance(witness, SliceWitness):
        return Prior(spread, 0.0)
    outside = judging.take(~slice_rows(witness.conditions, judging.features))
    if not outside.n_samples or _is_weightless(outside):
        return Prior(spread, 1.0)
    gains = inner.correlations(outside) / bound
    game = set_up(((1.0 - gains) / 2.0).clip(0.0, 1.0), outside.sample_weight, seed)
    return Prior(spread, max(1.0 - 2.0 * lower_bound(game, level), 0.0))


def evidence(one: JudgedSlice, prior: Prior, level: float) -> float:
    r"""An e-value of a witness: its expectation is at most 1 if its correlation is not above the usual one.

    :math:`\exp(\lambda \sum a x - \psi(\lambda) \sum a^2 x^2)` with
    :math:`\psi(\lambda) = -\log(1 - \lambda) - \lambda` and :math:`x \ge -1` (Fan, Grama and Liu 2015); the stake
    :math:`\lambda` is chosen by other rows.
    """
    # Values above c are at least -1 again over 1 + c.
    c, (weight, gain, squares, square_gain, square) = prior.usual, one.sums.tolist()
    gain = (gain - c * weight) / (1.0 + c)
    square = (square - 2.0 * c * square_gain + c * c * squares) / (1.0 + c) ** 2
    spread = max(one.certificate.n_samples * prior.spread, 1e-300)
    stake = min(np.sqrt(2.0 * np.log(1.0 / level) / spread), _LARGEST_STAKE)
    return float(np.exp(min(stake * gain + (np.log1p(-stake) + stake) * square, 690.0)))


def slice_findings(
    found: FoundSlices,
    judged: Sequence[JudgedSlice | None],
    priors: Sequence[Prior],
    alpha: float,
    importance: Importance,
) -> tuple[SliceFinding, ...]:
    """The slices that are shown to be off: the headline, what the learner found, and the others by their bounds."""
    pairs = [
        (witness, one, prior)
        for witness, one, prior in zip(found.witnesses, judged, priors, strict=True)
        if one is not None
    ]
    level = alpha / max(len(pairs), 1)
    e_values = [evidence(one, prior, level) for _, one, prior in pairs]
    looks_at = [
        _important(witness, importance) if _may_be_told(one, e, alpha) else {}
        for (witness, one, _), e in zip(pairs, e_values, strict=True)
    ]
    # What a learner finds by predictions alone is about all rows, not about some that differ: no evidence of a slice.
    is_slice = [
        bool(found) or isinstance(witness, SliceWitness)
        for (witness, _, _), found in zip(pairs, looks_at, strict=True)
    ]
    e_values = [e * is_so for e, is_so in zip(e_values, is_slice, strict=True)]
    shown = [
        _finding(*pair, e, is_found, found)
        for pair, e, is_found, found, is_so in zip(
            pairs, e_values, discoveries(e_values, alpha), looks_at, is_slice, strict=True
        )
        if is_so
    ]
    proven = sorted((f for f in shown if f.worse_by > 0 or f.discovered), key=lambda f: -f.worse_by)
    readable = [f for f in proven if not f.is_learnt]
    if not readable:
        return tuple(proven)
    # What e-BH alone discovers has no bound, and is no headline where something has one.
    near = [f for f in readable if f.worse_by >= _NEARLY * max(readable[0].worse_by, 0.0)] or readable[:1]
    headline = min(near, key=lambda f: len(f.rows.conditions))
    learnt = [f for f in proven if f.is_learnt]
    return (headline, *learnt, *(f for f in proven if f is not headline and not f.is_learnt))


def _may_be_told(one: JudgedSlice, e: float, alpha: float) -> bool:
    """Whether a bound or e-BH may show it."""
    return one.certificate.lower_bound > 0 or e >= 1.0 / alpha


def _important(witness: Witness, importance: Importance) -> dict[str, float]:
    """The columns that matter most to what a learner found; none for other witnesses, or if none is seen to."""
    if not isinstance(witness, LearnerWitness):
        return {}
    return dict([(name, loss) for name, loss in importance(witness).items() if loss > 0][:_MOST_IMPORTANT])


def _finding(
    witness: Witness, one: JudgedSlice, prior: Prior, e: float, found: bool, looks_at: Mapping[str, float]
) -> SliceFinding:
    conditions = witness.conditions if isinstance(witness, SliceWitness) else ()
    rows = SliceRows(conditions, one.certificate.n_samples, one.share)
    told = asdict(one.reading)
    if isinstance(witness, LearnerWitness):
        told |= {"question": "is the whole prediction right?", "predicted": np.nan, "observed": np.nan}
    # Columns that hardly matter are not named.
    least = _MATTERS * max(looks_at.values(), default=0.0)
    named = [column for column, loss in looks_at.items() if loss >= least]
    where = f"by {', '.join([*named, 'the prediction'])}" if named else str(rows)
    reading = SliceReading(
        **told,
        where=where,
        at_least=max(one.certificate.lower_bound, 0.0),
        all_predictions=one.reading.share > 0.999,
    )
    certificate = replace(one.certificate, witness=witness)
    usual = prior.usual * correlation_bound(witness)
    return SliceFinding(rows, witness, certificate, reading, one.elsewhere, usual, e, found, looks_at)
