"""Search on one part of the rows, judge on the other: findings with certificates, and tests by all rows beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from polycal._threads import thread_budget
from polycal._typing import Ints
from polycal.auditing.parts import Finding, QuestionError
from polycal.auditing.shares import WHOLE_SHARE, found_level
from polycal.families.auditor import Auditor, NotionAuditor
from polycal.families.kernel import KernelAuditor
from polycal.families.questions import Confidence, SubsetWitness
from polycal.families.subset import SubsetAuditor, SubsetPath, SubsetSmooth
from polycal.families.witness import Witness
from polycal.inference.certificate import (
    Certificate,
    Reading,
    certify_sample,
    holm,
    main_question,
    read_witness,
    worst_range,
)
from polycal.inference.kernel_noise import MOST_ROWS, kernel_noise
from polycal.inference.redraw import (
    MOST_DRAWS,
    Noise,
    draws_wanted,
    noise_test,
    question_noise,
    redraw_labels,
)
from polycal.kernels.kernels import Laplace
from polycal.measures.smooth import smooth_error
from polycal.sample import Sample, ask_confidence, ask_members, split_rows
from polycal.states.certificate import ReadingState

# Fewer rows than this on either side prove nothing.
MIN_ROWS = 10
_POWER = 0.8
# Redrawn errors above the one seen after which it will not be significant.
_ENOUGH = 5
# Rows times sets of classes up to which these are measured in milliseconds, and so on redrawn labels too.
_FEW_SETS = 1 << 21
# What tests by all rows count as, where a group counts as one. Sets of classes are what an audit is for; the kernel
# needs little, since its power grows fast with the error.
_CONFIDENCE_WEIGHT, _KERNEL_WEIGHT, _SUBSET_WEIGHT = 1.0, 0.5, 2.5

# Of the level of a path of sets of classes, what is kept for all but the one that looks strongest where it was found.
_OTHERS_SHARE = 0.5
# Of the largest lower bound of a path, what that of the set shown first must reach.
_SHORT_ENOUGH = 0.8

Halves = tuple[Ints, Ints] | None


class Found(NamedTuple):
    """A witness that an auditor found.

    Attributes
    ----------
    source : str
        The name of the auditor.
    witness : Witness
    share : float
        Of the level that all that the auditor found has together.
    leads : bool
        Whether it is the one of them that is tested by all rows, if there is such a test.
    """

    source: str
    witness: Witness
    share: float = 1.0
    leads: bool = True


class Judged(NamedTuple):
    """A witness on the rows that judge it."""

    certificate: Certificate
    reading: Reading


class WholeTest(NamedTuple):
    """A test by all rows of what an auditor looks at: what it counts as among all, and the noise once it is needed."""

    weight: float
    noise: Callable[[], Noise]


def half_rows(sample: Sample, seed: int) -> Halves:
    """Random halves of the rows to search on and to judge on; None if there are too few."""
    searched, judging = split_rows(sample, (0.5, 0.5), seed)
    usable = all(_n_weighted(sample, rows) >= MIN_ROWS for rows in (searched, judging))
    return (searched, judging) if usable else None


def find_all(
    auditors: Mapping[str, Auditor],
    sample: Sample,
    halves: Halves,
    alpha: float,
    seed: int,
    n_jobs: int | None,
    n_groups: int = 0,
) -> tuple[Finding, ...]:
    """What auditors find in a sample that is held, before tests are corrected for one another."""
    if halves is None:
        return ()
    searched, judging = (sample.take(rows) for rows in halves)
    found = search_all(auditors, searched, n_jobs)
    level = found_level(alpha, len(auditors))
    judged = [
        Judged(
            certify_sample(one.witness, judging, level * one.share, seed),
            read_witness(one.witness, searched, judging),
        )
        for one in found
    ]
    tests = {name: whole_test(auditor, sample, seed) for name, auditor in auditors.items()}
    return findings_of(found, judged, tests, alpha, seed, n_groups)


def search_all(auditors: Mapping[str, Auditor], searched: Sample, n_jobs: int | None) -> list[Found]:
    """What each auditor finds: one witness, and of the first that looks for sets of classes a path of them."""
    path = path_source(auditors)
    with thread_budget(n_jobs):
        # One after the other: a search uses all threads, and often one of them takes most of the time.
        found = [
            _found_path(name, auditor.find_path(searched))
            if name == path and isinstance(auditor, SubsetAuditor)
            else [Found(name, auditor.look(searched))]
            for name, auditor in auditors.items()
        ]
    return [one for some in found for one in some]


def path_source(auditors: Mapping[str, Auditor]) -> str | None:
    """The name of the auditor whose path of sets an audit shows."""
    return next((name for name, auditor in auditors.items() if isinstance(auditor, SubsetAuditor)), None)


def _found_path(source: str, path: SubsetPath) -> list[Found]:
    """Half of the level is for the set that looks strongest on the rows searched, the rest for all others."""
    n_others = len(path.witnesses) - 1
    shares = np.full(n_others + 1, _OTHERS_SHARE / max(n_others, 1))
    shares[path.strongest] = 1.0 - _OTHERS_SHARE if n_others else 1.0
    return [
        Found(source, witness, float(share), number == path.strongest)
        for number, (witness, share) in enumerate(zip(path.witnesses, shares, strict=True))
    ]


def findings_of(
    found: Sequence[Found],
    judged: Sequence[Judged],
    tests: Mapping[str, WholeTest | None],
    alpha: float,
    seed: int,
    n_groups: int,
) -> tuple[Finding, ...]:
    """Findings, before tests are corrected for one another."""
    seeds = dict(zip(tests, np.random.SeedSequence(seed).spawn(len(tests)), strict=True))
    total = n_groups + sum(test.weight for test in tests.values() if test is not None)
    # What a certificate shows needs no other test.
    shown = {one.source for one, (c, _) in zip(found, judged, strict=True) if c.p_value <= c.alpha}

    def whole(one: Found) -> tuple[float | None, float]:
        test = tests[one.source]
        if test is None or not one.leads:
            return None, 0.0
        if one.source in shown:
            return 1.0, test.weight
        n_draws = draws_wanted(total / test.weight, WHOLE_SHARE * alpha)
        p_value = noise_test(test.noise(), n_draws, seeds[one.source], fewest=1, enough=_ENOUGH)[1]
        return p_value, test.weight

    wholes = map(whole, found)

    return tuple(
        Finding(
            source=one.source,
            witness=one.witness,
            certificate=certificate,
            whole_p_value=whole_p_value,
            whole_weight=weight,
            adjusted_p_value=1.0,
            significant=False,
            reading=reading,
            detectable=detectable(certificate, certificate.alpha),
        )
        for one, (certificate, reading), (whole_p_value, weight) in zip(found, judged, wholes, strict=True)
    )


def whole_test(auditor: Auditor, sample: Sample, seed: int) -> WholeTest | None:
    """A test by all rows of what an auditor looks at: nobody needs to search for confidence, or for all at once.

    Where all sets of classes can be tried again and again, that needs no other rows to judge it either.
    """
    weight, n = whole_weight(auditor), sample.n_samples
    if sample.is_listed or weight == 0.0:
        return None
    if isinstance(auditor, KernelAuditor):
        few = n <= MOST_ROWS
        return (
            WholeTest(weight, partial(kernel_noise, sample, (auditor.kernel, Laplace()), seed))
            if few
            else None
        )
    if isinstance(auditor, SubsetAuditor):
        few = n << min(sample.n_classes, 30) <= _FEW_SETS
        return WholeTest(weight, partial(_subset_noise, sample, auditor.max_size)) if few else None
    return WholeTest(weight, partial(_confidence_noise, sample))


def whole_weight(auditor: Auditor) -> float:
    """What the test by all rows of an auditor counts as, where a group counts as one; 0 if there is none."""
    if isinstance(auditor, NotionAuditor):
        return _CONFIDENCE_WEIGHT if auditor.notion == Confidence(smooth=True) else 0.0
    if isinstance(auditor, SubsetAuditor):
        return _SUBSET_WEIGHT
    return _KERNEL_WEIGHT if isinstance(auditor, KernelAuditor) else 0.0


def _confidence_noise(sample: Sample) -> Noise:
    """The error of confidence."""
    question = ask_confidence(sample)
    # In increasing order, so that the draws do not depend on that of the rows.
    order = np.argsort(question.predicted, kind="stable")
    weight = None if question.weight is None else question.weight[order]
    ordered = replace(question, predicted=question.predicted[order], hits=question.hits[order], weight=weight)
    return question_noise(ordered, smooth_error(ordered))


def _subset_noise(sample: Sample, max_size: int | None) -> Noise:
    """The error of the worst of all sets of few classes."""
    notion = SubsetSmooth(max_size).repeated(MOST_DRAWS)
    # So that the draws do not depend on the order of the rows.
    ordered = sample.take(
        np.lexsort([np.round(sample.proba[:, c], 9) for c in np.argsort(sample.mean_proba())])
    )
    return Noise(
        notion.estimate(ordered).value, lambda rng: notion.estimate(redraw_labels(ordered, rng)).value
    )


def corrected(
    findings: Sequence[Finding], groups: Sequence[QuestionError], alpha: float, core: float = 1.0
) -> tuple[tuple[Finding, ...], tuple[QuestionError, ...]]:
    """All tests of an audit, corrected for one another; findings that are significant first, the largest error first.

    Holm's correction is over the certificates, and over the tests by all rows; if there are both, with half of alpha
    each. They share `core` of it: the rest is for what else was asked for.
    """
    by_rows = [(f.whole_p_value, f.whole_weight) for f in findings] + [(g.p_value, 1.0) for g in groups]
    known = [(p_value, weight) for p_value, weight in by_rows if p_value is not None]
    adjusted_rows = holm([p_value for p_value, _ in known], [weight for _, weight in known])
    whole = iter(_shared(adjusted_rows, core * (WHOLE_SHARE if findings else 1.0)))
    of_rows = [None if p_value is None else next(whole) for p_value, _ in by_rows]
    certificates = [finding.certificate for finding in findings]
    adjusted = holm([c.p_value for c in certificates], [c.alpha for c in certificates])
    held_out = _shared(adjusted, core * (1.0 - WHOLE_SHARE if known else 1.0))
    judged = [
        _judged(finding, min(p for p in pair if p is not None), alpha)
        for finding, *pair in zip(findings, held_out, of_rows[: len(findings)], strict=True)
    ]
    ranked = sorted(judged, key=lambda f: (not f.significant, -f.certificate.lower_bound, f.adjusted_p_value))
    return tuple(ranked), tuple(
        replace(group, p_value=p_value, smallest_p_value=_smallest(group, core))
        for group, p_value in zip(groups, of_rows[len(findings) :], strict=True)
    )


def shortened(
    ranked: Sequence[Finding], source: str | None
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Of a path of sets the finding to show first, in the place of the largest; and the path, shortest first.

    It is the shortest whose lower bound reaches most of the largest.
    """
    path = sorted((f for f in ranked if f.source == source), key=_size)
    if not path:
        return tuple(ranked), ()
    largest = next(f for f in ranked if f.source == source)
    reached = (f for f in path if f.at_least >= _SHORT_ENOUGH * largest.at_least > 0)
    first = next(reached, largest)
    shown = (first if f is largest else f for f in ranked if f.source != source or f is largest)
    return tuple(shown), tuple(path)


def _size(finding: Finding) -> int:
    return len(finding.witness.subset) if isinstance(finding.witness, SubsetWitness) else 0


def _shared(p_values: Sequence[float], share: float) -> list[float]:
    return [min(p_value / share, 1.0) for p_value in p_values]


def _smallest(group: QuestionError, core: float) -> float | None:
    return None if group.smallest_p_value is None else min(group.smallest_p_value / core, 1.0)


def _judged(finding: Finding, p_value: float, alpha: float) -> Finding:
    return replace(finding, adjusted_p_value=p_value, significant=p_value <= alpha)


def detectable(certificate: Certificate, level: float) -> float:
    """The correlation that a certificate would find at a level with probability about 0.8.

    By the normal approximation: the betting test needs slightly more than the z-test.
    """
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - level) + normal.inv_cdf(_POWER)
    return float(certificate.std_error * quantiles)


def _n_weighted(sample: Sample, rows: Ints) -> int:
    return rows.size if sample.sample_weight is None else int(np.count_nonzero(sample.sample_weight[rows]))


def reading_state(witness: Witness, sketch: Sample) -> ReadingState:
    """What to read off of a witness: the range of its main question that is worst on the sketch."""
    members = main_question(witness, sketch)
    worst = worst_range(ask_members(sketch, members))
    return (
        ReadingState(None, *worst, top=members)
        if isinstance(members, int)
        else ReadingState(members.tolist(), *worst)
    )
