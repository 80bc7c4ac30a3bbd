import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_kernel as reference
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families.low_degree import LowDegree
from polycal.storage.saved import packed, unpacked


@settings(max_examples=60, deadline=None)
@given(samples(max_classes=4), st.integers(0, 3))
def test_the_error_is_that_of_all_monomials(drawn, degree):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, LowDegree(degree), sample_weight=weight)
    assert estimate.value == pytest.approx(
        reference.low_degree_error(labels, proba, degree, weight), abs=1e-12
    )
    assert estimate.kind == "exact"
    sample = check_sample(labels, proba, sample_weight=weight)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-12)
    assert np.abs(estimate.witness(proba)).max() <= 1


@settings(max_examples=60, deadline=None)
@given(samples(max_classes=4, max_rows=15), st.integers(0, 3))
def test_the_upper_bound_is_the_kernel_ball(drawn, degree):
    labels, proba, weight = drawn
    upper = pc.estimate_error(labels, proba, LowDegree(degree, bound="upper"), sample_weight=weight)
    z = reference.residual(labels, proba, weight) / (len(labels) if weight is None else weight.sum())
    features = np.array([reference.multinomial_features(v, degree) for v in proba])
    assert upper.value == pytest.approx(np.linalg.norm(features.T @ z, axis=0).sum(), abs=1e-6)
    assert upper.kind == "upper bound"
    assert upper.value >= reference.low_degree_error(labels, proba, degree, weight) - 1e-6
    sample = check_sample(labels, proba, sample_weight=weight)
    assert upper.witness.correlation(sample) == pytest.approx(upper.value / np.sqrt(degree + 1), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(samples())
def test_larger_degrees_see_more(drawn):
    labels, proba, weight = drawn
    errors = [pc.calibration_error(labels, proba, LowDegree(d), sample_weight=weight) for d in range(4)]
    assert np.all(np.diff(errors) >= -1e-12)
    assert errors[-1] <= 2 + 1e-12


def test_a_search_cut_short_is_a_lower_bound():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(8), 50), rng.integers(0, 8, 50)
    short = pc.estimate_error(labels, proba, LowDegree(3, max_terms=2))
    assert short.kind == "lower bound"
    assert short.value <= pc.calibration_error(labels, proba, LowDegree(3))


def test_float32_rows_above_one_stay_in_range():
    proba = np.array([[1 + 2**-23, 0], [0.5, 0.5]], dtype=np.float32)
    witness = pc.estimate_error([1, 0], proba, LowDegree(3)).witness
    assert np.abs(witness(proba)).max() <= 1


def test_the_witness_names_its_monomials_and_can_be_rebuilt():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 100)
    witness = pc.estimate_error(
        np.argmax(proba, axis=1), proba, LowDegree(2), class_names=["cat", "dog", "cow"]
    ).witness
    assert "p(cat)" in witness.describe()
    again = unpacked(*packed(witness))
    np.testing.assert_array_equal(again(proba), witness(proba))
    assert again.describe() == witness.describe()
    perfect = pc.estimate_error([0, 1], np.eye(2), LowDegree(2)).witness
    assert perfect.describe() == "no class"
    shifted = pc.estimate_error([1, 1], [[0.5, 0.5]] * 2, LowDegree(0)).witness
    assert shifted.describe() == "-1 for 0, 1 for 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": -1}, "degree"),
        ({"bound": "both"}, "bound must be one of"),
        ({"max_terms": 0}, "max_terms"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LowDegree(**options)
