"""Statements of the paper that a sample can check and that no single module owns. See docs/paper-map.md."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polycal as pc
from polycal.families.decision import DecisionWitness
from polycal.families.defaults import NOTIONS
from polycal.families.reduction import lift
from polycal.hardness import lift_clauses, make_random_xor, required_samples, xor_sigmoid
from polycal.hardness.xor import interpolate
from polycal.kernels.kernels import Multinomial, ball_norms, ball_scale
from polycal.kernels.products import quadratic_forms
from tests.calibrators.draws import tempered

seeds = st.integers(0, 10**6)


def finite(seed, n_points=6, k=4):
    """A random finite distribution: predictions, conditional means, masses."""
    rng = np.random.default_rng(seed)
    support, truth = rng.dirichlet(np.ones(k), n_points), rng.dirichlet(np.ones(k), n_points)
    return support, truth, rng.dirichlet(np.ones(n_points))


def hilbert(kernel, left, right, u, w):
    """The inner products of ``sum_i u_il ker(v_i, .)`` and ``sum_j w_jl ker(v_j, .)`` for every class l."""
    return np.einsum("il,ij,jl->l", u, kernel.block(left, right), w)


def norms(kernel, points, values):
    """The norms of ``sum_i values_il ker(v_i, .)``, as the auditor computes them."""
    return ball_norms(kernel, values, quadratic_forms(kernel, points, values))


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(0, 5))
def test_correlation_is_an_inner_product(seed, degree):
    # lem:corr1: for w = sum_j c_j ker(x_j, .), E w(v) z = <w, w_0>; and |w_0| <= s.
    support, truth, mass = finite(seed)
    kernel, rng = Multinomial(degree), np.random.default_rng(seed)
    z = (mass[:, None] * (truth - support))[:, :1]
    anchors, c = rng.dirichlet(np.ones(4), 5), rng.standard_normal((5, 1))
    values = kernel.block(support, anchors) @ c
    np.testing.assert_allclose(np.sum(values * z), hilbert(kernel, anchors, support, c, z)[0], atol=1e-10)
    norm = norms(kernel, support, z)
    np.testing.assert_allclose(norm**2, hilbert(kernel, support, support, z, z), atol=1e-12)
    assert norm[0] <= kernel.bound**0.5
    # So the largest correlation in the unit ball is the norm of w_0, which w_0 itself reaches.
    best = kernel.block(support, support) @ z / norm
    assert np.sum(best * z) == pytest.approx(norm[0])
    assert np.sum(values * z) <= norm[0] * norms(kernel, anchors, c)[0] + 1e-10


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(0, 5), st.sampled_from([0.01, 0.3, 3.0]))
def test_a_direction_close_to_the_right_one_is_good(seed, degree, noise):
    # lm:inner-lower, for w_0 and the direction that the auditor takes from a disturbed one, of length 1/s.
    support, truth, mass = finite(seed)
    kernel, rng = Multinomial(degree), np.random.default_rng(seed)
    z = mass[:, None] * (truth - support)
    near = z + noise * np.abs(z).mean() * rng.standard_normal(z.shape)
    w, length, distance = (
        norms(kernel, support, z),
        norms(kernel, support, near),
        norms(kernel, support, z - near),
    )
    reached = kernel.bound**0.5 * hilbert(kernel, support, support, z, near * ball_scale(kernel, length))
    assert np.all(reached >= length - distance - 1e-12)
    assert np.all(length - distance >= w - 2 * distance - 1e-12)


def deviations(kernel, n, n_draws, seed):
    """For each class, the distance of the sample's mean embedding from the population's, over draws: (draws, k)."""
    support, truth, mass = finite(seed)
    k, rng = support.shape[1], np.random.default_rng(seed)
    cells = (mass[:, None] * truth).ravel()
    residual = np.tile(np.eye(k), (len(support), 1)) - np.repeat(support, k, axis=0)
    points = np.repeat(support, k, axis=0)
    counts = rng.multinomial(n, cells, size=n_draws) / n - cells
    forms = [quadratic_forms(kernel, points, c[:, None] * residual) for c in counts]
    return np.sqrt(np.maximum(forms, 0))


@pytest.mark.parametrize("degree", [1, 4])
@pytest.mark.parametrize("n", [20, 500])
def test_means_in_the_hilbert_space_concentrate(degree, n):
    # lm:hilbert-concentration, with its constants: mean 2 s / sqrt(n), and McDiarmid with steps of 2 s / n.
    kernel, delta = Multinomial(degree), 0.05
    s = kernel.bound**0.5
    one_class = deviations(kernel, n, 400, seed=0)[:, 0]
    assert one_class.mean() <= 2 * s / n**0.5
    assert np.mean(one_class <= s / n**0.5 * (2 + (2 * np.log(1 / delta)) ** 0.5)) >= 1 - delta


@pytest.mark.parametrize("degree", [1, 4])
@pytest.mark.parametrize("n", [20, 500])
def test_the_sum_over_classes_concentrates_without_a_factor_k(degree, n):
    # lm:concentration-audit, with the constants of `required_samples`.
    kernel, delta = Multinomial(degree), 0.05
    s, k = kernel.bound**0.5, 4
    total = deviations(kernel, n, 400, seed=1).sum(axis=1)
    assert total.mean() <= s * (2 * k / n) ** 0.5
    bound = s * ((2 * k / n) ** 0.5 + (8 * np.log(1 / delta) / n) ** 0.5)
    assert np.mean(total <= bound) >= 1 - delta


@pytest.mark.parametrize("degree", [1, 4])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_with_the_rows_required_the_sum_over_classes_is_small_enough(degree, alpha):
    # lm:concentration-audit: a sum of at most alpha / (3 r), with r = 1 for low degrees, is what the auditor needs.
    delta = 0.05
    requirement = required_samples(pc.LowDegree(degree), alpha, 4, delta)
    total = deviations(Multinomial(degree), int(requirement), 400, seed=1).sum(axis=1)
    assert np.mean(total <= alpha / 3) >= 1 - delta


@pytest.mark.parametrize("beta", [0.1, 0.03])
def test_an_auditor_recalibrates_in_few_rounds(beta):
    # lem:audit, by the calibrator itself. Predictions are those of the wrong classes, so that rounds are many.
    k, notion = 3, pc.Classwise(smooth=True)
    (proba, labels, _), (new, new_labels, _) = (tempered(3.0, n=6000, k=k, seed=seed) for seed in (0, 1))
    proba, new = np.roll(proba, 1, axis=1), np.roll(new, 1, axis=1)
    # Each round lowers the squared loss, which is at most 2, by three quarters of beta^2 / k at least.
    gain = 0.75 * beta**2 / k
    calibrator = pc.AuditedCalibrator(
        pc.NotionAuditor(notion), update="additive", keep=0.0, tolerance=beta, max_rounds=int(2 / gain) + 1
    ).fit(proba, labels)
    *accepted, last = calibrator.rounds_
    assert calibrator.stopped_because_ == "no error above the tolerance was proved"
    assert len(accepted) > 1
    assert all(r.lower_bound > beta and r.loss_before - r.loss_after > gain for r in accepted)
    assert last.lower_bound <= beta
    # On new rows: nothing above beta is left but what 2,000 rows cannot prove, and the squared loss has fallen.
    out = calibrator.predict_proba(new)
    assert pc.calibration_error(new_labels, new, notion) > 0.2
    assert pc.calibration_error(new_labels, out, notion) < beta + 0.02
    assert pc.brier_score(new_labels, out) < pc.brier_score(new_labels, new) - len(accepted) * gain


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(2, 6))
def test_affine_functions_survive_the_lift(seed, k):
    # claim:closed, and through it the sigmoids (lm:sigmoid-reduction): slope 3 L on lifted points is slope L before.
    rng = np.random.default_rng(seed)
    x, a, b = rng.dirichlet(np.ones(k), 20), rng.uniform(-1, 1, k), rng.normal()
    shift = b - a[0] - a[1]
    np.testing.assert_allclose(lift(x) @ (3 * a) + shift, x @ a + b, atol=1e-12)
    slope = rng.uniform(1, 10)
    lifted = np.tanh(3 * slope * (lift(x) @ a) + b - slope * (a[0] + a[1]))
    np.testing.assert_allclose(lifted, np.tanh(slope * (x @ a) + b), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_an_auditor_for_sigmoids_learns_a_sigmoid_of_a_third_of_the_slope(seed):
    # lm:sigmoid-reduction: targets follow tanh(2 <a, x>); the auditor looks for slope 6 on lifted points.
    rng = np.random.default_rng(seed)
    x, a = rng.dirichlet(np.ones(3), 4000), np.array([1.0, -1.0, 0.0])
    mean = np.tanh(2 * (x @ a))
    targets = np.where(rng.random(4000) < (1 + mean) / 2, 1.0, -1.0)
    learner = pc.LearnerFromAuditor(pc.SigmoidAuditor(slope=6), random_state=seed).fit(x, targets)
    # The auditor promises 2/3 of alpha, and the learner has 3/2 of what the witness has: of the best there is, most.
    assert np.mean(mean * learner.predict(x)) >= 0.8 * np.mean(mean**2)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 6))
def test_a_decision_on_lifted_points_is_any_halfspace(seed, k):
    # thm:hardness-dec: g = e_1 and g' = -e_1, so that w_1 - w_2 is the sign.
    rng = np.random.default_rng(seed)
    x, a, b = rng.dirichlet(np.ones(k), 30), rng.standard_normal(k), 0.1 * rng.normal()
    # Losses <r_1, v> and <r_2, v>: action 1 where <3 a, v> > b', as <1, v> = 1.
    threshold = b + a[0] + a[1]
    losses = np.stack([threshold - 3 * a, np.zeros(k)])
    weights = np.stack([np.eye(k)[0], -np.eye(k)[0]])
    witness = DecisionWitness(losses, weights, np.zeros(2), k)
    values = witness(lift(x))
    np.testing.assert_array_equal(values[:, 0] - values[:, 1], np.where(x @ a > b, 1.0, -1.0))


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(0, 3), st.integers(2, 4))
def test_low_degree_polynomials_lie_in_the_unit_ball(seed, degree, k):
    # cor:low-deg: features are products over tuples of classes; weights with absolute sum 1 have norm at most 1.
    rng = np.random.default_rng(seed)
    tuples = [t for size in range(degree + 1) for t in product(range(k), repeat=size)]
    weights = rng.standard_normal(len(tuples))
    weights /= np.abs(weights).sum()
    points = rng.dirichlet(np.ones(k), 300)
    features = np.stack([points[:, list(t)].prod(axis=1) for t in tuples], axis=1)
    np.testing.assert_allclose(features @ features.T, Multinomial(degree).block(points, points), atol=1e-10)
    assert np.linalg.norm(weights) <= 1
    assert np.abs(features @ weights).max() <= 1


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_signs_of_whole_numbers_are_polynomials(d):
    # The lemma stated without proof: every g on {-d, ..., d} is a polynomial of degree 2 d, coefficients exp(d log d).
    points = list(range(-d, d + 1))
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.choice([-1.0, 1.0], len(points)).tolist()
        polynomial = interpolate(points, values)
        assert polynomial.degree() <= 2 * d
        np.testing.assert_allclose(polynomial(np.array(points)), values, atol=1e-7)
        assert np.abs(polynomial.coef).max() <= np.exp(2 * d * np.log(d) + 2)


@pytest.mark.parametrize("t", [2, 3, 4])
def test_the_sigmoid_of_products_interpolates_their_signs(t):
    # The same lemma as it is used: a product of t signs is a function of their sum, which takes t + 1 values.
    instance = make_random_xor(5, t, 60, random_state=t)
    z = np.random.default_rng(t).choice([-1, 1], 5)
    lifted = lift_clauses(instance, t)
    sigmoid = xor_sigmoid(lifted, z, t, steepness=1.0)
    np.testing.assert_allclose(np.arctanh(sigmoid(lifted.points)), instance.products(z), atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(NOTIONS) - {"low-degree"}))
def test_calibrated_distributions_have_no_error_of_any_kind(name):
    # After def:weighted: canonical calibration implies calibration for every family of weights.
    support, _, mass = finite(3, n_points=5, k=3)
    labels, proba = np.tile(np.arange(3), 5), np.repeat(support, 3, axis=0)
    notion = {"canonical": pc.Canonical(min_repeats=1), "full-smooth": pc.FullSmooth(n_floor_draws=0)}.get(
        name, NOTIONS[name]()
    )
    weight = (mass[:, None] * support).ravel()
    if name in ("confidence", "top-label", "classwise"):
        notion = type(notion)(smooth=True)
    assert pc.calibration_error(labels, proba, notion, sample_weight=weight) < 1e-9
