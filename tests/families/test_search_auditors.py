"""The auditors that search families of weights, and cross-fit what they find."""

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.families.auditor import cross_fit, worth_keeping
from polycal.families.decision import DecisionAuditor
from polycal.families.projected import ProjectionAuditor
from polycal.families.questions import SubsetWitness
from polycal.families.sigmoid import SigmoidAuditor
from polycal.measures.functions import LipschitzFunction
from polycal.sample import Sample

AUDITORS = [
    ProjectionAuditor(),
    ProjectionAuditor(m=1),
    SigmoidAuditor(4),
    DecisionAuditor(),
    DecisionAuditor(3),
]
every_auditor = pytest.mark.parametrize("auditor", AUDITORS, ids=repr)


def draw(rng, true):
    return (np.cumsum(true, axis=1) > rng.random((len(true), 1))).argmax(axis=1)


def overconfident(n, seed, k=5):
    """Predictions sharper than the truth."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(k, 0.7), n)
    proba = true**2 + 1e-6
    return check_sample(draw(rng, true), proba / proba.sum(axis=1, keepdims=True))


def calibrated(n, seed, k=5):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.7), n)
    return check_sample(draw(rng, proba), proba)


@every_auditor
def test_what_is_found_holds_up_on_fresh_rows(auditor):
    found, fresh = overconfident(1500, 0), overconfident(20_000, 1)
    witness = auditor.find_witness(found.labels, found.proba)
    correlations = witness.correlations(fresh)
    assert correlations.mean() > 20 * correlations.std() / np.sqrt(fresh.n_samples)
    # What was seen flatters, but not by much.
    assert correlations.mean() > 0.6 * witness.correlation(found)


@every_auditor
def test_calibrated_predictions_leave_nothing_that_holds_up(auditor):
    fresh = calibrated(20_000, 100)
    scores = []
    for seed in range(4):
        sample = calibrated(600, seed)
        correlations = auditor.find(sample).correlations(fresh)
        scores.append(correlations.mean() / max(correlations.std(), 1e-12) * np.sqrt(fresh.n_samples))
    assert np.abs(np.mean(scores)) < 3


@every_auditor
def test_the_order_of_rows_and_rows_of_weight_zero_do_not_matter(auditor):
    sample = overconfident(300, 2)
    order = np.random.default_rng(0).permutation(300)
    extra = overconfident(40, 3)
    weight = np.concatenate([np.ones(300), np.zeros(40)])
    value = auditor.find(sample).correlation(sample)
    shuffled = auditor.find_witness(sample.labels[order], sample.proba[order])
    padded = auditor.find_witness(
        np.concatenate([sample.labels, extra.labels]),
        np.vstack([sample.proba, extra.proba]),
        sample_weight=weight,
    )
    assert shuffled.correlation(sample) == pytest.approx(value, abs=1e-9)
    assert padded.correlation(sample) == pytest.approx(value, abs=1e-9)


@every_auditor
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_rows(auditor, n):
    proba = np.eye(3)[np.arange(n) % 3] * 0.7 + 0.1
    witness = auditor.find_witness(np.zeros(n, dtype=int), proba, class_names=["a", "b", "c"])
    assert np.abs(witness(np.vstack([proba, np.eye(3)]))).max() <= 1
    assert isinstance(witness.describe(), str)


@every_auditor
def test_two_classes(auditor):
    rng = np.random.default_rng(0)
    p = rng.random(800)
    witness = auditor.find_witness((rng.random(800) < p**2).astype(int), p)
    fresh = rng.random(20_000)
    sample = check_sample((rng.random(20_000) < fresh**2).astype(int), fresh)
    assert witness.correlation(sample) > 0.1


def test_a_smooth_class_is_told_from_a_noisy_one():
    rng = np.random.default_rng(0)
    errors = np.full(50, 0.01)
    few = rng.normal(0, 0.01, 50)
    few[:3] += 0.2
    assert worth_keeping(few, errors)[:3].all()
    assert worth_keeping(few, errors).sum() < 35
    # Where all are off by a little, a negative reading is no reason to leave a class out.
    all_a_little = rng.normal(0.01, 0.01, 50)
    assert (all_a_little < 0).any()
    assert worth_keeping(all_a_little, errors).all()
    assert not worth_keeping(rng.normal(-0.02, 0.01, 50), errors).any()


def test_classes_without_noise_say_nothing():
    assert worth_keeping(np.zeros(3), np.zeros(3)).tolist() == [False] * 3
    assert worth_keeping(np.array([0.0, 0.5]), np.array([0.0, 0.1])).tolist() == [False, True]


def test_each_half_judges_what_was_found_on_the_other():
    sample = overconfident(200, 4)
    seen = []

    def levels(part: Sample):
        seen.append(part)
        overfit = LipschitzFunction(np.zeros(1), np.array([0.0]))
        honest = LipschitzFunction(np.array([0.0, 1.0]), np.array([0.5, -0.5]))
        return [SubsetWitness(np.array([0]), phi, 5) for phi in (overfit, honest)]

    verdict = cross_fit(sample, levels, seed=0)
    assert verdict.level == 1
    assert verdict.kept.tolist() == [True, False, False, False, False]
    rows = np.vstack([part.proba for part in seen])
    assert [part.n_samples for part in seen] == [100, 100]
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(sample.proba, axis=0))


def test_the_same_seed_gives_the_same_witness():
    sample = overconfident(400, 5)
    first, again = (ProjectionAuditor(random_state=1).find(sample) for _ in range(2))
    np.testing.assert_array_equal(first(sample.proba), again(sample.proba))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProjectionAuditor(m=-1), "m must be a number"),
        (lambda: SigmoidAuditor(0.1), "slope must be a number from 1"),
        (lambda: DecisionAuditor(1), "actions must be an integer, at least 2"),
        (lambda: ProjectionAuditor(n_starts=-1), "n_starts must be an integer, at least 0"),
        (lambda: SigmoidAuditor(n_starts=1.5), "n_starts must be an integer"),
        (lambda: DecisionAuditor(random_state="x"), "random_state must be an integer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_shipped_example():
    fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    part = fit.take(slice(0, 3000))
    assert SigmoidAuditor(4).find(part).correlation(fresh) > 0.05
