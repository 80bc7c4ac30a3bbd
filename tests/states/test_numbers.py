"""Each state finishes with the numbers that its in-memory counterpart gives on all rows together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import samples

import polycal as pc
from polycal.families.kernel import KernelAuditor
from polycal.inference.betting import mixture_lower_bound, mixture_p_value
from polycal.kernels.kernels import Multinomial
from polycal.measures.scores import sample_scores
from polycal.sample import Sample
from polycal.states.certificate import CertificateState
from polycal.states.kernel import KernelState, choose_landmarks
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import BinnedState, ScoreState


@settings(max_examples=50, deadline=None)
@given(data=samples())
def test_scores(data):
    labels, proba, weight = data
    expected = sample_scores(Sample(proba, labels, weight))
    assert ScoreState().update(labels, proba, weight).finish() == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(data=samples(), n_bins=st.integers(1, 20))
def test_binned(data, n_bins):
    labels, proba, weight = data
    found = BinnedState(n_bins).update(labels, proba, weight).finish()
    for norm in ("l1", "l2", "max"):
        confidence = pc.Confidence(n_bins, norm=norm)
        expected = pc.calibration_error(labels, proba, confidence, sample_weight=weight)
        assert found.confidence_error(norm) == pytest.approx(expected, abs=1e-12)
        by_class = pc.Classwise(n_bins, norm=norm).errors(Sample(proba, labels, weight))
        np.testing.assert_allclose(found.class_errors(norm), by_class, atol=1e-12)
    curve = pc.reliability_curve(labels, proba, subset=[0], n_bins=n_bins, sample_weight=weight)
    np.testing.assert_array_equal(found.classes[0].count, curve.count)
    assert found.classes[0].question == curve.question


@settings(max_examples=50, deadline=None)
@given(data=samples(), resolution=st.sampled_from([0.0, 0.001, 0.03, 0.2, 0.5]))
def test_questions_within_their_bound(data, resolution):
    labels, proba, weight = data
    sample = Sample(proba, labels, weight)
    subset = [0, proba.shape[1] - 1]
    exact = pc.smooth_calibration_error(labels, proba, subset=subset, sample_weight=weight)
    found = QuestionState(subset, resolution=resolution).update(labels, proba, weight).finish()
    assert abs(found.value - exact) <= found.bound + 1e-12
    assert found.bound <= resolution / 2 + 1e-12
    assert found.predicted == pytest.approx(sample.mass @ proba[:, subset].sum(axis=1))
    assert found.frequency == pytest.approx(sample.mass @ np.isin(labels, subset))
    confidence = QuestionState(resolution=resolution).update(labels, proba, weight).finish()
    exact = pc.calibration_error(labels, proba, pc.Confidence(smooth=True), sample_weight=weight)
    assert abs(confidence.value - exact) <= confidence.bound + 1e-12


@settings(max_examples=30, deadline=None)
@given(data=samples())
def test_classes_within_their_bound(data):
    labels, proba, weight = data
    exact = pc.Classwise(smooth=True).errors(Sample(proba, labels, weight))
    for found, expected in zip(
        ClassesState(resolution=0.01).update(labels, proba, weight).finish(), exact, strict=True
    ):
        assert abs(found.value - expected) <= found.bound + 1e-12
        assert found.bound <= 0.005 + 1e-12


def test_the_bound_is_the_mean_of_residual_times_move():
    # 0.1 is moved to 0.25, and 0.6 to 0.75.
    found = QuestionState([1], resolution=0.5).update([1, 0], [0.1, 0.6]).finish()
    assert found.bound == pytest.approx((0.9 * 0.15 + 0.6 * 0.15) / 2)


def test_a_subset_may_be_named():
    state = QuestionState(["dog"], class_names=["cat", "dog"])
    state.update(["dog", "cat"], [0.3, 0.6], class_names=["cat", "dog"])
    assert state.parameters()["subset"] == [1]
    assert state.finish().value == pytest.approx(pc.smooth_calibration_error([1, 0], [0.3, 0.6]))
    with pytest.raises(ValueError, match="not one of the class names"):
        QuestionState(["bus"], class_names=["cat", "dog"]).update([1], [0.3])


def test_noise_is_what_redrawn_labels_show():
    rng = np.random.default_rng(0)
    predicted = rng.beta(0.5, 2.0, 4000)
    labels = (rng.random(4000) < predicted).astype(int)
    state = QuestionState([1], resolution=1 / 256).update(labels, predicted)
    normal = state.noise(200, seed=1)
    redrawn = [
        pc.smooth_calibration_error((rng.random(4000) < predicted).astype(int), predicted) for _ in range(200)
    ]
    assert normal.mean() == pytest.approx(np.mean(redrawn), rel=0.1)
    assert np.quantile(normal, 0.9) == pytest.approx(np.quantile(redrawn, 0.9), rel=0.15)
    coarse = state.in_cells(32)
    assert coarse.middles.size <= 32
    assert coarse.error() == pytest.approx(state.finish().value, abs=1 / 64)
    assert np.mean([coarse.draw(rng) for _ in range(200)]) == pytest.approx(normal.mean(), rel=0.1)
    with pytest.raises(ValueError, match="resolution"):
        QuestionState().noise(3)


@pytest.mark.parametrize("weighted", [False, True])
def test_certificate_is_that_of_certify(weighted):
    data = pc.datasets.load_fashion("calibration")
    fresh = pc.datasets.load_fashion("evaluation")
    weight = np.random.default_rng(0).integers(0, 4, fresh.n_samples).astype(float) if weighted else None
    for notion in (pc.Confidence(smooth=True), pc.Sigmoid(4)):
        witness = pc.estimate_error(data.labels[:2000], data.proba[:2000], notion).witness
        state = CertificateState(witness, alpha=0.01)
        for start in range(0, fresh.n_samples, 2999):
            part = slice(start, start + 2999)
            state.update(fresh.labels[part], fresh.proba[part], None if weight is None else weight[part])
        found = state.finish()
        expected = pc.certify(witness, fresh.labels, fresh.proba, alpha=0.01, sample_weight=weight)
        assert found.estimate == pytest.approx(expected.estimate, abs=1e-12)
        assert found.std_error == pytest.approx(expected.std_error, rel=1e-9)
        assert found.lower_bound == pytest.approx(expected.lower_bound, abs=2e-5 + 0.01 * expected.std_error)
        assert found.p_value == pytest.approx(expected.p_value, rel=0.05)
        assert found.n_samples == fresh.n_samples


def test_mixture_of_bets_is_valid_and_not_too_wide():
    rng = np.random.default_rng(0)
    missed, widths, n = 0, [], 400
    one = np.ones(n)
    for _ in range(300):
        values = rng.beta(2.0, 3.0, n)
        lower = mixture_lower_bound(values, one, one, 0.1)
        missed += lower > 0.4
        widths.append((values.mean() - lower) / (1.28 * values.std() / np.sqrt(n)))
    assert missed <= 0.1 * 300
    assert np.mean(widths) < 2.5
    # The bound and the p-value are one test.
    lower = mixture_lower_bound(values, one, one, 0.1)
    assert (
        mixture_p_value(values, one, one, lower - 1e-6)
        <= 0.1
        <= mixture_p_value(values, one, one, lower + 1e-6)
    )
    # A count stands for as many rows.
    twice = mixture_lower_bound(np.tile(values, 2), np.ones(2 * n), np.ones(2 * n), 0.1)
    assert mixture_lower_bound(values, one, 2 * one, 0.1) == pytest.approx(twice, abs=1e-8)


def test_many_rows_are_judged_by_the_mixture(monkeypatch):
    monkeypatch.setattr("polycal.states.certificate.MOST_PLAYED", 100)
    fresh = pc.datasets.load_fashion("evaluation")
    witness = pc.estimate_error(fresh.labels, fresh.proba, pc.Confidence(smooth=True)).witness
    mixed = CertificateState(witness).update(fresh.labels, fresh.proba).finish()
    played = pc.certify(witness, fresh.labels, fresh.proba)
    assert mixed.estimate == pytest.approx(played.estimate)
    assert 0 < mixed.lower_bound < played.lower_bound
    assert mixed.p_value < 0.001


def test_certificates_want_witnesses():
    with pytest.raises(TypeError, match="witness must be"):
        CertificateState("no witness")


def test_sketch_is_a_fair_draw():
    labels = np.tile([0, 1], 500)
    places = np.zeros(1000)
    for seed in range(200):
        # Every row is told by its prediction.
        proba = (np.arange(1000) + 0.5) / 1000
        kept = SketchState(100, random_state=seed).update(labels, proba).finish()
        rows = np.round(kept.proba[:, 1] * 1000 - 0.5).astype(int)
        assert np.unique(rows).size == 100
        np.testing.assert_array_equal(kept.labels, labels[rows])
        places[rows] += 1
    # Each is kept with probability 1/10: the mean of squares is that of a binomial.
    assert np.var(places) == pytest.approx(200 * 0.1 * 0.9, rel=0.2)


def test_kernel_state_on_all_rows_as_landmarks_is_the_kernel_auditor():
    rng = np.random.default_rng(0)
    labels, proba = rng.integers(0, 4, 60), rng.dirichlet(np.ones(4), 60)
    expected = KernelAuditor(pc.Gaussian(0.2), amplify=False).find_witness(labels, proba)
    found = KernelState(proba, n_held_back=0).update(labels, proba).finish()
    at = rng.dirichlet(np.ones(4), 20)
    np.testing.assert_allclose(found.evaluate(at), expected.evaluate(at), atol=2e-3)
    np.testing.assert_allclose(found.strengths, expected.strengths, rtol=1e-2)


@settings(max_examples=30, deadline=None)
@given(data=samples())
def test_kernel_state_stays_in_range_before_clipping(data):
    labels, proba, weight = data
    for kernel in (pc.Gaussian(0.3), Multinomial(4)):
        witness = KernelState(proba[:5], kernel, n_held_back=0).update(labels, proba, weight).finish()
        values = kernel.block(np.eye(proba.shape[1]), witness.points) @ witness.coefficients
        assert np.abs(values).max() <= 1 + 1e-9


@settings(max_examples=30, deadline=None)
@given(data=samples())
def test_landmarks_are_the_means_of_the_most_likely_classes_and_rows(data):
    labels, proba, weight = data
    sample = Sample(proba, labels, weight)
    landmarks = choose_landmarks(sample, 3)
    top = sample.proba.argmax(axis=1)
    means = [sample.proba[top == c].mean(axis=0) for c in sorted(set(top.tolist()))]
    np.testing.assert_allclose(landmarks, [*means, *sample.proba[:3]], atol=1e-6)


def test_kernel_state_keeps_most_of_the_exact_correlation():
    fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    exact = KernelAuditor(max_samples=None).find(fit.take(slice(0, 8000))).correlation(fresh)
    state = KernelState(choose_landmarks(fit.take(slice(0, 1000))))
    for start in range(0, 8000, 1999):
        state.absorb(
            fit.take(slice(start, min(start + 1999, 8000))), np.arange(start, min(start + 1999, 8000))
        )
    assert state.finish().correlation(fresh) > 0.9 * exact


def test_kernel_state_refuses_what_it_cannot_use():
    with pytest.raises(TypeError, match="kernel must be"):
        KernelState(np.eye(3), "gaussian")
    with pytest.raises(ValueError, match="landmarks have 3"):
        KernelState(np.eye(3)).update([0], [0.5])
