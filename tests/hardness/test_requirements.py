import math

import numpy as np
import pytest
from tests import reference_kernel as kernels

import polycal as pc
from polycal.families.kernel import KernelAuditor
from polycal.hardness import Packing, repeat_probability, required_degree, required_samples
from polycal.kernels.degree import bounded_radius_squared
from polycal.kernels.kernels import Multinomial

SUPPORT = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
TRUTH = np.array([[0.4, 0.3, 0.3], [0.1, 0.6, 0.3]])
MASS = np.array([0.6, 0.4])


def test_degrees_are_those_of_the_kernel_auditor():
    for alpha in (0.05, 0.3, 1.0):
        projected = KernelAuditor.for_projected_smooth(alpha).kernel.degree
        for notion in (pc.ProjectedSmooth(), pc.SubsetSmooth(3), pc.Classwise(smooth=True)):
            assert required_degree(notion, alpha) == projected
        assert required_degree(pc.Sigmoid(4), alpha) == KernelAuditor.for_sigmoid(4, alpha).kernel.degree
    assert required_degree(pc.LowDegree(5), 0.1) == 5


def test_the_number_of_rows_is_the_formula():
    k, alpha, delta = 7, 0.2, 0.01
    deviation = (math.sqrt(2 * k) + math.sqrt(8 * math.log(1 / delta))) ** 2
    low = required_samples(pc.LowDegree(3), alpha, k, delta)
    assert low.n_samples == math.ceil(9 * 4 / alpha**2 * deviation)
    assert low.correlation == pytest.approx(alpha / (3 * 2))
    sigmoid = required_samples(pc.Sigmoid(1), alpha, k, delta)
    r = (1 + alpha / 4) * bounded_radius_squared(sigmoid.degree, k) ** 0.5
    expected = 9 * r**2 * (sigmoid.degree + 1) / (alpha / 2) ** 2 * deviation
    assert sigmoid.n_samples == pytest.approx(expected)
    assert sigmoid.correlation == pytest.approx((alpha / 2) / (3 * r * (sigmoid.degree + 1) ** 0.5))
    assert int(sigmoid) == sigmoid.n_samples


def test_low_degree_errors_are_found_with_that_many_rows():
    degree, delta = 2, 0.1
    cells = (MASS[:, None] * TRUTH).ravel()
    labels, proba = np.tile(np.arange(3), 2), np.repeat(SUPPORT, 3, axis=0)
    alpha = pc.calibration_error(labels, proba, pc.LowDegree(degree), sample_weight=cells)
    requirement = required_samples(pc.LowDegree(degree), alpha, 3, delta)
    auditor = requirement.auditor()
    rng = np.random.default_rng(0)
    reached = []
    for _ in range(100):
        # A sample of a finite support is its counts: rows with weights.
        witness = auditor.find_witness(labels, proba, sample_weight=rng.multinomial(int(requirement), cells))
        correlation = kernels.population_correlation(witness, SUPPORT, MASS, TRUTH)
        reached.append(correlation >= requirement.correlation)
    assert np.mean(reached) >= 1 - delta


def test_the_auditor_of_the_theorem_looks_at_every_row():
    requirement = required_samples(pc.LowDegree(2), 0.1, 10)
    assert requirement.n_samples > KernelAuditor().max_samples
    assert requirement.auditor() == KernelAuditor(Multinomial(2), amplify=False, max_samples=None)
    with pytest.raises(ValueError, match="no auditor is known"):
        required_samples(pc.FullSmooth(), 0.005, 20).auditor()


@pytest.mark.parametrize(
    "notion", [pc.ProjectedSmooth(), pc.ProjectedSmooth(m=1.0), pc.SubsetSmooth(max_size=1), pc.Sigmoid(1)]
)
def test_smooth_errors_are_found_with_endless_rows(notion):
    cells = (MASS[:, None] * TRUTH).ravel()
    labels, proba = np.tile(np.arange(3), 2), np.repeat(SUPPORT, 3, axis=0)
    alpha = pc.calibration_error(labels, proba, notion, sample_weight=cells)
    requirement = required_samples(notion, alpha, 3)
    auditor = KernelAuditor(Multinomial(requirement.degree), amplify=False)
    witness = auditor.find_witness(labels, proba, sample_weight=cells)
    assert kernels.population_correlation(witness, SUPPORT, MASS, TRUTH) >= requirement.correlation > 0


def test_harder_questions_take_more_rows():
    def rows(notion, alpha=0.3, k=10, delta=0.05):
        return required_samples(notion, alpha, k, delta).n_samples

    assert rows(pc.ProjectedSmooth()) < rows(pc.ProjectedSmooth(), alpha=0.2)
    assert rows(pc.ProjectedSmooth()) < rows(pc.ProjectedSmooth(), k=11)
    assert rows(pc.ProjectedSmooth()) < rows(pc.ProjectedSmooth(), delta=0.01)
    assert rows(pc.Classwise(smooth=True)) < rows(pc.SubsetSmooth(2)) < rows(pc.SubsetSmooth())
    assert rows(pc.SubsetSmooth()) == rows(pc.ProjectedSmooth()) == rows(pc.ProjectedSmooth(m=50))
    assert rows(pc.Sigmoid(1)) < rows(pc.Sigmoid(2))
    assert rows(pc.FullSmooth(), alpha=0.01, k=20) < rows(pc.FullSmooth(), alpha=0.01, k=30)


def test_polynomial_in_the_number_of_classes_or_exponential():
    few, many = (required_samples(pc.ProjectedSmooth(m=4), 0.4, k).n_samples for k in (10, 1000))
    assert many / few < 1000
    few, many = (required_samples(pc.FullSmooth(), 0.01, k).n_samples for k in (20, 60))
    assert many / few > 1e10


def test_fewer_rows_than_necessary_do_not_repeat_often_enough():
    delta = 0.1
    requirement = required_samples(pc.FullSmooth(), 0.04, 20, delta)
    assert requirement.kind == "necessary"
    assert requirement.degree is requirement.correlation is None
    size = (1 - 20 * (2 / 3) ** 19) / (2 * 6 * 0.04) ** 19
    packing = Packing(np.empty((math.ceil(size), 0)), 0.24)
    assert repeat_probability(packing, requirement.n_samples - 1) < 1 - 2 * delta
    # The packing shows an error of 1/6, however far its points are apart.
    assert required_samples(pc.FullSmooth(), 0.17, 10).n_samples == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: required_degree(pc.Halfspace(), 0.1),
            r"no degree is known to suffice for Halfspace.*Use Sigmoid",
        ),
        (lambda: required_samples(pc.Decision(), 0.1, 5), "as hard as learning halfspaces"),
        (lambda: required_samples(pc.Canonical(), 0.1, 5), "until predictions repeat"),
        (lambda: required_degree(pc.FullSmooth(), 0.1), "exponentially many rows"),
        (lambda: required_degree(pc.Confidence(), 0.1), "the theorems are about"),
        (lambda: required_degree(pc.Classwise(), 0.1), "the theorems are about"),
        (lambda: required_degree(pc.Sigmoid(), 0), "alpha must be a positive number"),
        (lambda: required_samples(pc.Sigmoid(), 3, 5), "alpha must be a positive number, at most 2; got 3"),
        (lambda: required_samples(pc.Sigmoid(), 0.1, 1), "n_classes must be an integer, at least 2"),
        (lambda: required_samples(pc.Sigmoid(), 0.1, 5, 0.5), "delta must be more than 0 and less than 0.5"),
        (lambda: required_samples(pc.FullSmooth(), 1e-6, 1000), "beyond floats"),
    ],
)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
