import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_subset
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families import subset as subset_smooth
from polycal.families.subset import SubsetSmooth


@settings(max_examples=50, deadline=None)
@given(samples(), st.one_of(st.none(), st.integers(1, 6)))
def test_exact_by_enumeration(data, max_size):
    labels, proba, weight = data
    estimate = pc.estimate_error(labels, proba, SubsetSmooth(max_size), sample_weight=weight)
    sample = check_sample(labels, proba, sample_weight=weight)
    assert estimate.kind == "exact"
    assert estimate.value == pytest.approx(reference_subset.largest_error(sample, max_size), abs=1e-12)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-9)
    assert len(estimate.witness.members) <= (max_size or proba.shape[1])


@pytest.mark.parametrize("max_size", [None, 2])
def test_a_lower_bound_by_search_beyond(max_size, monkeypatch):
    rng = np.random.default_rng(0)
    labels, proba = reference_subset.random_case(rng, 9, 300, "confusion")
    exact = pc.estimate_error(labels, proba, SubsetSmooth(max_size))
    monkeypatch.setattr(subset_smooth, "affordable", lambda *_: False)
    found = pc.estimate_error(labels, proba, SubsetSmooth(max_size))
    assert (exact.kind, found.kind) == ("exact", "lower bound")
    assert found.value <= exact.value + 1e-12
    assert found.value == pytest.approx(exact.value, abs=1e-9)
    assert found.witness.correlation(check_sample(labels, proba)) == pytest.approx(found.value, abs=1e-9)


def test_the_method_says_what_was_done():
    labels, proba = reference_subset.random_case(np.random.default_rng(1), 5, 50, "noise")
    estimate = pc.estimate_error(labels, proba, SubsetSmooth())
    assert (estimate.method, estimate.n_steps, estimate.n_samples) == ("all 15 subsets", 15, 50)
    limited = pc.estimate_error(labels, proba, SubsetSmooth(max_size=1))
    assert limited.method == "all 5 subsets of at most 1 classes"
    labels, proba = reference_subset.random_case(np.random.default_rng(1), 40, 50, "noise")
    estimate = pc.estimate_error(labels, proba, SubsetSmooth())
    assert estimate.method == f"search over {estimate.n_steps} subsets"


@settings(max_examples=30, deadline=None)
@given(samples(max_classes=5))
def test_one_class_is_class_wise_and_more_classes_never_less(data):
    labels, proba, weight = data
    values = [
        pc.calibration_error(labels, proba, SubsetSmooth(m), sample_weight=weight) for m in (1, 2, None)
    ]
    classwise = pc.calibration_error(labels, proba, pc.Classwise(smooth=True), sample_weight=weight)
    assert values[0] == pytest.approx(classwise, abs=1e-12)
    assert values[0] <= values[1] + 1e-12
    assert values[1] <= values[2] + 1e-12


def test_it_sees_what_single_classes_hide():
    # Of two kinds of rows, class 0 is too rare in one and too frequent in the other, and class 1 the other way.
    proba = np.repeat([[0.5, 0.25, 0.25, 0.0], [0.5, 0.25, 0.0, 0.25]], 4, axis=0)
    labels = [0, 0, 0, 2, 0, 1, 1, 3]
    assert pc.calibration_error(labels, proba, SubsetSmooth(1)) == pytest.approx(0, abs=1e-12)
    # "0 or 2" is predicted .75 and happens always, or is predicted .5 and happens once in four.
    assert pc.calibration_error(labels, proba, SubsetSmooth()) == pytest.approx(0.25 * 0.25 / 2)


def test_no_class_at_all_is_the_empty_set_and_has_no_error():
    rng = np.random.default_rng(0)
    labels, proba = rng.integers(0, 5, 50), rng.dirichlet(np.ones(5), 50)
    estimate = pc.estimate_error(labels, proba, SubsetSmooth(0))
    assert (estimate.value, estimate.kind, estimate.witness) == (0.0, "exact", None)
    assert estimate.value <= pc.calibration_error(labels, proba, pc.ProjectedSmooth(0))


@pytest.mark.parametrize("max_size", [-1, 2.5, "two", True])
def test_bad_sizes_are_refused(max_size):
    with pytest.raises(ValueError, match="max_size must be an integer, at least 0"):
        SubsetSmooth(max_size)
