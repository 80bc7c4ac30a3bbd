"""Search on one part of the rows, judge on the other: findings with certificates."""

from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from polycal._audit.result import Finding
from polycal._threads import thread_budget
from polycal._typing import Ints
from polycal.families.auditor import Auditor
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, certify_sample, holm, read_witness
from polycal.sample import Sample, split_rows

# Fewer rows than this on either side prove nothing.
MIN_ROWS = 10
_POWER = 0.8


def half_rows(sample: Sample, seed: int) -> tuple[Ints, Ints] | None:
    """Random halves of the rows to search on and to judge on; None if there are too few."""
    fit, judge = split_rows(sample, (0.5, 0.5), seed)
    usable = all(_n_weighted(sample, rows) >= MIN_ROWS for rows in (fit, judge))
    return (fit, judge) if usable else None


def find_all(
    auditors: Mapping[str, Auditor], fit: Sample, judge: Sample, alpha: float, seed: int, n_jobs: int | None
) -> tuple[Finding, ...]:
    """One finding per auditor, the largest proven error first."""
    with thread_budget(n_jobs):
        # One after the other: a search uses all threads, and often one of them takes most of the time.
        witnesses: list[Witness] = [auditor.find(fit) for auditor in auditors.values()]
    certificates = [certify_sample(w, judge, alpha, seed) for w in witnesses]
    adjusted = holm([c.p_value for c in certificates])
    findings = [
        Finding(
            source=source,
            witness=witness,
            certificate=certificate,
            adjusted_p_value=p_value,
            significant=p_value <= alpha,
            reading=read_witness(witness, fit, judge),
            detectable=detectable(certificate, len(certificates)),
        )
        for source, witness, certificate, p_value in zip(
            auditors, witnesses, certificates, adjusted, strict=True
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
