"""Search on one part of the rows, judge on the other: findings with certificates, and tests by all rows beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from polycal._threads import thread_budget
from polycal._typing import Ints
from polycal.auditing.questions import FOUND_SHARE, WHOLE_SHARE
from polycal.auditing.result import Finding, QuestionError
from polycal.families.auditor import Auditor, NotionAuditor
from polycal.families.kernel import KernelAuditor
from polycal.families.questions import Confidence
from polycal.families.subset import SubsetAuditor, SubsetSmooth
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading, certify_sample, holm, read_witness
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
from polycal.sample import Sample, ask_confidence, split_rows

# Fewer rows than this on either side prove nothing.
MIN_ROWS = 10
_POWER = 0.8
# Redrawn errors above the one seen after which it will not be significant.
_ENOUGH = 5
# Rows times sets of classes up to which these are measured in milliseconds, and so on redrawn labels too.
_FEW_SETS = 1 << 21

Halves = tuple[Ints, Ints] | None


class Judged(NamedTuple):
    """A witness on the rows that judge it."""

    certificate: Certificate
    reading: Reading


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
    """One finding per auditor of a sample that is held, before tests are corrected for one another."""
    if halves is None:
        return ()
    searched, judging = (sample.take(rows) for rows in halves)
    found = dict(zip(auditors, search_all(auditors, searched, n_jobs), strict=True))
    level = found_level(alpha, len(auditors))
    judged = [
        Judged(certify_sample(witness, judging, level, seed), read_witness(witness, searched, judging))
        for witness in found.values()
    ]
    noises = {name: partial(whole_noise, auditor, sample, seed) for name, auditor in auditors.items()}
    return findings_of(found, judged, noises, alpha, seed, n_groups)


def found_level(alpha: float, n_findings: int) -> float:
    """The level of each lower bound, so that all hold together with all else that an audit shows."""
    return FOUND_SHARE * alpha / max(n_findings, 1)


def search_all(auditors: Mapping[str, Auditor], searched: Sample, n_jobs: int | None) -> list[Witness]:
    """What each auditor finds."""
    with thread_budget(n_jobs):
        # One after the other: a search uses all threads, and often one of them takes most of the time.
        return [auditor.look(searched) for auditor in auditors.values()]


def findings_of(
    found: Mapping[str, Witness],
    judged: Sequence[Judged],
    noises: Mapping[str, Callable[[], Noise | None]],
    alpha: float,
    seed: int,
    n_groups: int,
) -> tuple[Finding, ...]:
    """Findings, before tests are corrected for one another."""
    seeds = np.random.SeedSequence(seed).spawn(len(found))
    level = found_level(alpha, len(judged))
    n_draws = draws_wanted(len(found) + n_groups, WHOLE_SHARE * alpha)

    def whole(
        certificate: Certificate, noise: Callable[[], Noise | None], own: np.random.SeedSequence
    ) -> float | None:
        # What the certificate shows needs no other test.
        if certificate.p_value <= level:
            return 1.0
        drawn = noise()
        return None if drawn is None else noise_test(drawn, n_draws, own, fewest=1, enough=_ENOUGH)[1]

    return tuple(
        Finding(
            source=source,
            witness=witness,
            certificate=certificate,
            whole_p_value=whole(certificate, noises[source], own_seed),
            adjusted_p_value=1.0,
            significant=False,
            reading=reading,
            detectable=detectable(certificate, level),
        )
        for (source, witness), (certificate, reading), own_seed in zip(
            found.items(), judged, seeds, strict=True
        )
    )


def whole_noise(auditor: Auditor, sample: Sample, seed: int) -> Noise | None:
    """A test by all rows of what an auditor looks at: nobody needs to search for confidence, or for all at once.

    Where all sets of classes can be tried again and again, that needs no other rows to judge it either.
    """
    if sample.is_listed:
        return None
    if isinstance(auditor, NotionAuditor) and auditor.notion == Confidence(smooth=True):
        question = ask_confidence(sample)
        # In increasing order, so that the draws do not depend on that of the rows.
        order = np.argsort(question.predicted, kind="stable")
        weight = None if question.weight is None else question.weight[order]
        ordered = replace(
            question, predicted=question.predicted[order], hits=question.hits[order], weight=weight
        )
        return question_noise(ordered, smooth_error(ordered))
    if isinstance(auditor, KernelAuditor) and sample.n_samples <= MOST_ROWS:
        return kernel_noise(sample, (auditor.kernel, Laplace()), seed)
    if isinstance(auditor, SubsetAuditor) and sample.n_samples << min(sample.n_classes, 30) <= _FEW_SETS:
        return _subset_noise(sample, auditor.max_size)
    return None


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
    findings: Sequence[Finding], groups: Sequence[QuestionError], alpha: float
) -> tuple[tuple[Finding, ...], tuple[QuestionError, ...]]:
    """All tests of an audit, corrected for one another; findings that are significant first, the largest error first.

    Holm's correction is over the certificates, and over the tests by all rows; if there are both, with half of alpha.
    """
    by_rows = [f.whole_p_value for f in findings] + [g.p_value for g in groups]
    known = [p_value for p_value in by_rows if p_value is not None]
    whole = iter(_shared(holm(known), 1.0 if not findings else WHOLE_SHARE))
    of_rows = [None if p_value is None else next(whole) for p_value in by_rows]
    held_out = _shared(holm([f.certificate.p_value for f in findings]), 1.0 - WHOLE_SHARE if known else 1.0)
    judged = [
        _judged(finding, min(p for p in pair if p is not None), alpha)
        for finding, *pair in zip(findings, held_out, of_rows[: len(findings)], strict=True)
    ]
    ranked = sorted(judged, key=lambda f: (not f.significant, -f.certificate.lower_bound, f.adjusted_p_value))
    return tuple(ranked), tuple(
        replace(group, p_value=p_value)
        for group, p_value in zip(groups, of_rows[len(findings) :], strict=True)
    )


def _shared(p_values: Sequence[float], share: float) -> list[float]:
    return [min(p_value / share, 1.0) for p_value in p_values]


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
