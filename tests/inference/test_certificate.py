import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_inference as reference
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.datasets import make_calibrated, make_cat_and_dog, make_shifted_subset, make_temperature
from polycal.families.witness import Witness
from polycal.inference.bounds import mean_lower_bound, mean_p_value
from polycal.inference.certificate import certify, correlation_bound
from polycal.states.certificate import CertificateState


class Constant(Witness):
    """The same weights whatever the prediction."""

    family = "constant for tests"

    def __init__(self, weights):
        self.weights = np.asarray(weights, float)
        self.n_classes, self.class_names = self.weights.size, None

    def evaluate(self, proba):
        return np.broadcast_to(self.weights, proba.shape).copy()

    def describe(self):
        return "constant:"


def subset_witness(generated):
    """The best weight for the generated subset, from the whole distribution."""
    labels, proba, weight = generated.population()
    curve = pc.smooth_calibration_curve(labels, proba, subset=generated.subset, sample_weight=weight)
    return pc.SubsetWitness(np.array(generated.subset), curve.phi, proba.shape[1], generated.class_names)


@settings(max_examples=60, deadline=None)
@given(samples(max_classes=4))
def test_estimate_and_error_against_loops(drawn):
    labels, proba, weight = drawn
    witness = Constant(np.linspace(-1, 1, proba.shape[1]))
    certificate = certify(witness, labels, proba, sample_weight=weight)
    values = witness.correlations(check_sample(labels, proba))
    w = np.ones(len(labels)) if weight is None else weight
    assert certificate.estimate == pytest.approx(np.average(values, weights=w), abs=1e-12)
    assert -2 <= certificate.lower_bound <= certificate.estimate + 1e-9
    if np.count_nonzero(w) > 1:
        expected = reference.standard_error(values[w > 0], w[w > 0])
        assert certificate.std_error == pytest.approx(expected, abs=1e-12)
    assert certificate.n_samples == len(labels)


@pytest.mark.parametrize("weighted", [False, True])
def test_bound_and_p_value_are_those_of_the_correlations(weighted):
    generated = make_shifted_subset(300, 5, error=0.1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300) if weighted else None
    witness = subset_witness(generated)
    certificate = certify(witness, generated.labels, generated.proba, sample_weight=weight, alpha=0.1)
    values = witness.correlations(check_sample(generated.labels, generated.proba))
    options = {"low": -1, "high": 1, "weight": weight}
    assert certificate.lower_bound == pytest.approx(mean_lower_bound(values, alpha=0.1, **options), abs=1e-9)
    assert certificate.p_value == pytest.approx(mean_p_value(values, **options), rel=1e-6)


def test_the_range_is_smaller_for_a_single_question():
    witness = subset_witness(make_cat_and_dog(10))
    assert correlation_bound(witness) == 1
    assert correlation_bound(Constant([1, -1])) == 2
    extreme = Constant([1, -1]).correlations(check_sample([0], [[0.0, 1.0]]))
    np.testing.assert_array_equal(extreme, [2.0])


def test_a_certificate_reads_as_a_sentence():
    generated = make_cat_and_dog(20_000)
    witness = subset_witness(generated)
    found = certify(witness, generated.labels, generated.proba)
    assert str(found).startswith("is it cat or dog? miscalibrated by at least 0.0")
    assert "at 0.95 confidence" in str(found)
    assert found.is_significant
    calibrated = make_cat_and_dog(2000, error=0.0)
    nothing = certify(witness, calibrated.labels, calibrated.proba)
    assert "no miscalibration shown" in str(nothing)
    assert not nothing.is_significant


def test_class_names_and_logits():
    witness = Constant([1, -1, 0])
    by_name = certify(
        witness, ["b", "a"], np.log([[0.2, 0.3, 0.5]] * 2), class_names=["a", "b", "c"], from_logits=True
    )
    assert by_name.estimate == pytest.approx(certify(witness, [1, 0], [[0.2, 0.3, 0.5]] * 2).estimate)


def test_classes_in_another_order_are_refused():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    labels = np.arange(50) % 3
    witness = pc.SubsetAuditor().find_witness(labels, proba, class_names=["a", "b", "c"])
    with pytest.raises(
        ValueError, match="class 0 of the predictions is 'c', which was class 2 where the witness was found"
    ):
        certify(witness, labels, proba, class_names=["c", "b", "a"])
    with pytest.raises(ValueError, match="class 0 of the predictions is 'c'"):
        CertificateState(witness).update(labels, proba, class_names=["c", "b", "a"])
    named = certify(witness, labels, proba, class_names=["a", "b", "c"])
    assert named.estimate == certify(witness, labels, proba).estimate


def test_bad_input():
    good = ([0, 1], [[0.5, 0.5]] * 2)
    with pytest.raises(TypeError, match="witness must be a witness"):
        certify("cat", *good)
    with pytest.raises(ValueError, match="alpha must be a number"):
        certify(Constant([1, 0]), *good, alpha=1.5)
    with pytest.raises(ValueError, match="the witness was found on 3"):
        certify(Constant([1, 0, 0]), *good)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.0, 0.2])
def test_the_bound_exceeds_the_truth_as_rarely_as_stated(error):
    witness = subset_witness(make_cat_and_dog(10))
    population = check_sample(*(p := make_cat_and_dog(10, error=error).population())[:2], sample_weight=p[2])
    truth = witness.correlation(population)
    assert truth == pytest.approx(0.12 * error, abs=1e-12)
    wrong, rejected = 0, 0
    for seed in range(1000):
        generated = make_cat_and_dog(400, error=error, random_state=seed)
        certificate = certify(witness, generated.labels, generated.proba, alpha=0.1, random_state=seed)
        wrong += certificate.lower_bound > truth
        rejected += certificate.is_significant
    assert wrong / 1000 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 1000)
    assert rejected / 1000 > 0.4 if error else rejected / 1000 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 1000)


@pytest.mark.slow
def test_a_witness_found_on_calibrated_rows_proves_nothing_on_new_ones():
    significant = 0
    for seed in range(300):
        fit, new = (
            make_calibrated(500, 6, random_state=2 * seed),
            make_calibrated(500, 6, random_state=2 * seed + 1),
        )
        witness = pc.estimate_error(fit.labels, fit.proba, pc.Classwise(smooth=True)).witness
        significant += certify(witness, new.labels, new.proba).is_significant
    assert significant / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_overconfidence_is_proven():
    generated = make_temperature(2000, 10, temperature=0.5)
    notion = pc.Confidence(smooth=True)
    witness = pc.estimate_error(generated.labels[:1000], generated.proba[:1000], notion).witness
    certificate = certify(witness, generated.labels[1000:], generated.proba[1000:])
    labels, proba, weight = generated.population()
    truth = pc.calibration_error(labels, proba, notion, sample_weight=weight)
    assert 0.5 * truth < certificate.lower_bound < truth
    assert certificate.p_value < 1e-6
