import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.findings import MIN_ROWS, detectable, half_rows
from polycal.inference.certificate import certify_sample


def test_halves_share_no_row():
    made = pc.datasets.make_calibrated(101, 3)
    fit, judge = half_rows(check_sample(made.labels, made.proba), 0)
    assert sorted([*fit, *judge]) == list(range(101))


@pytest.mark.parametrize("n", [1, 2 * MIN_ROWS - 2])
def test_too_few_rows_have_no_halves(n):
    made = pc.datasets.make_calibrated(n, 3)
    assert half_rows(check_sample(made.labels, made.proba), 0) is None


def test_rows_without_weight_do_not_count():
    made = pc.datasets.make_calibrated(100, 3)
    weight = np.zeros(100)
    weight[:15] = 1
    assert half_rows(check_sample(made.labels, made.proba, sample_weight=weight), 0) is None


@pytest.mark.slow
def test_what_is_called_detectable_is_detected_four_times_in_five():
    # A constant shift of u by its own detectable size: how often is it significant?
    rng = np.random.default_rng(0)
    witness = pc.NotionAuditor(pc.Classwise(smooth=True)).find_witness([1] * 50, [0.5] * 50)
    n, found = 2000, []
    for _ in range(300):
        u = rng.uniform(0.2, 0.8, n)
        null = certify_sample(witness, check_sample((rng.random(n) < u).astype(int), u), 0.05)
        size = detectable(null, 0.05)
        hits = (rng.random(n) < u + size).astype(int)
        found.append(certify_sample(witness, check_sample(hits, u), 0.05).is_significant)
    assert 0.7 <= np.mean(found) <= 0.9
