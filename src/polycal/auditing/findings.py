"""Search on one part of the rows, judge on the other: findings with certificates."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from polycal._threads import thread_budget
from polycal._typing import Ints
from polycal.auditing.result import Finding
from polycal.families.auditor import Auditor
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading, certify_sample, holm, read_witness
from polycal.sample import Sample, split_rows

# Fewer rows than this on either side prove nothing.
MIN_ROWS = 10
_POWER = 0.8

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
) -> tuple[Finding, ...]:
    """One finding per auditor of a sample that is held, the largest proven error first."""
    if halves is None:
        return ()
    searched, judging = (sample.take(rows) for rows in halves)
    found = dict(zip(auditors, search_all(auditors, searched, n_jobs), strict=True))
    judged = [
        Judged(certify_sample(witness, judging, alpha, seed), read_witness(witness, searched, judging))
        for witness in found.values()
    ]
    return findings_of(found, judged, alpha)


def search_all(auditors: Mapping[str, Auditor], searched: Sample, n_jobs: int | None) -> list[Witness]:
    """What each auditor finds."""
    with thread_budget(n_jobs):
        # One after the other: a search uses all threads, and often one of them takes most of the time.
        return [auditor.look(searched) for auditor in auditors.values()]


def findings_of(found: Mapping[str, Witness], judged: Sequence[Judged], alpha: float) -> tuple[Finding, ...]:
    """Findings corrected for one another, the largest proven error first."""
    adjusted = holm([certificate.p_value for certificate, _ in judged])
    findings = [
        Finding(
            source=source,
            witness=witness,
            certificate=certificate,
            adjusted_p_value=p_value,
            significant=p_value <= alpha,
            reading=reading,
            detectable=detectable(certificate, len(judged)),
        )
        for (source, witness), (certificate, reading), p_value in zip(
            found.items(), judged, adjusted, strict=True
        )
    ]
    return tuple(sorted(findings, key=lambda f: (-f.certificate.lower_bound, f.adjusted_p_value)))


def detectable(certificate: Certificate, n_tests: int) -> float:
    """The correlation that would be significant with probability about 0.8, by the normal approximation.

    Approximate: the betting test needs slightly more than the z-test, and Holm's first step is at alpha / m.
    """
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - certificate.alpha / n_tests) + normal.inv_cdf(_POWER)
    return float(certificate.std_error * quantiles)


def _n_weighted(sample: Sample, rows: Ints) -> int:
    return rows.size if sample.sample_weight is None else int(np.count_nonzero(sample.sample_weight[rows]))
