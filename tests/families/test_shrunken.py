import numpy as np
import pytest
from scipy.optimize import minimize
from tests import reference_subset

from polycal._validation import check_sample
from polycal.families._landscape import FullLandscape, expected_labels
from polycal.families._landscape_lists import plain_landscape, shrunken_landscape


def powers_of(proba, a, b):
    """softmax(a log v + b log pi)."""
    unscaled = proba**a * proba.mean(axis=0) ** b
    return unscaled / unscaled.sum(axis=1, keepdims=True)


def share_of_signal(residual, mass):
    return FullLandscape(np.zeros_like(residual), residual, mass).share_of_signal()


def case(n_rows, seed, truth=lambda proba: proba, n_classes=30):
    """Predictions that prefer some classes, and labels drawn from a function of them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.linspace(0.05, 0.3, n_classes), n_rows).astype(np.float32)
    proba = np.maximum(proba, np.float32(1e-6))
    proba /= proba.sum(axis=1, keepdims=True)
    return check_sample(reference_subset.draw_labels(truth(proba.astype(float)), rng), proba)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_powers_are_the_most_likely(weighted):
    sample = case(500, 0, lambda v: powers_of(v, 0.7, 0.4))
    mass = np.random.default_rng(1).dirichlet(np.ones(500)) if weighted else sample.mass
    proba = sample.proba.astype(float)
    use = mass @ proba

    def loss(powers):
        p = proba ** powers[0] * use ** powers[1]
        p /= p.sum(axis=1, keepdims=True)
        return -mass @ np.log(p[np.arange(500), sample.labels])

    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    expected = proba ** best.x[0] * use ** best.x[1]
    expected /= expected.sum(axis=1, keepdims=True)
    assert expected_labels(sample.proba, sample.labels, mass) == pytest.approx(expected, abs=1e-4)


def test_known_powers_are_found():
    sample = case(20_000, 1, lambda v: powers_of(v, 0.6, 0.5))
    truth = powers_of(sample.proba.astype(float), 0.6, 0.5)
    assert np.abs(expected_labels(sample.proba, sample.labels, sample.mass) - truth).mean() < 1e-3


def test_certain_and_right_predictions_stay_finite():
    sample = check_sample([0, 1, 2, 0], np.eye(3)[[0, 1, 2, 0]].astype(np.float32))
    expected = expected_labels(sample.proba, sample.labels, sample.mass)
    assert expected == pytest.approx(np.eye(3)[[0, 1, 2, 0]], abs=1e-6)


def test_noise_is_shrunk_and_signal_is_not():
    def share(n_rows, seed, truth=lambda v: v):
        sample = case(n_rows, seed, truth)
        return plain_landscape(sample).share_of_signal()

    def biased(proba):
        tilted = proba * np.where(np.arange(30) % 2, 1.5, 1 / 1.5)
        return tilted / tilted.sum(axis=1, keepdims=True)

    noise = [share(2000, seed) for seed in range(20)]
    assert np.mean(noise) < 0.25
    shares = [np.mean([share(n, seed, biased) for seed in range(5)]) for n in (300, 3000, 30_000)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.97


def test_nothing_to_shrink():
    assert share_of_signal(np.zeros((5, 3), dtype=np.float32), np.full(5, 0.2)) == 1.0


def test_class_totals_are_shrunk_and_the_rest_is_kept_in_part():
    sample = case(400, 2)
    mass, plain = sample.mass, plain_landscape(sample)
    expected = (expected_labels(sample.proba, sample.labels, mass) - sample.proba) * mass[:, None]
    surprise = plain.residual - expected
    share = max(0.25, share_of_signal(surprise, mass))
    wanted = 0
    for part, kept in ((expected, 1.0), (surprise, share)):
        mean = part.sum(axis=0)
        wanted = wanted + kept * (part - mass[:, None] * mean)
        wanted = wanted + share_of_signal(part, mass) * mass[:, None] * mean
    found = shrunken_landscape(sample)
    assert found.residual == pytest.approx(wanted, abs=1e-7)
    # A set and its complement remain one question.
    assert found.residual.sum(axis=1) == pytest.approx(np.zeros(400), abs=1e-7)
    assert (found.proba == plain.proba).all()


def test_with_enough_rows_nothing_is_shrunk():
    def biased(proba):
        tilted = proba * np.where(np.arange(5) % 2, 2.0, 0.5)
        return tilted / tilted.sum(axis=1, keepdims=True)

    sample = case(20_000, 3, biased, n_classes=5)
    assert shrunken_landscape(sample).residual == pytest.approx(plain_landscape(sample).residual, abs=2e-6)
