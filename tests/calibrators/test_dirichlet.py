import numpy as np
import pytest
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_linear

from polycal.calibrators.dirichlet import DirichletCalibrator

PROBA, LABELS, _ = tempered(2.0, n=200, k=3)


def test_the_minimum_is_found():
    fitted = DirichletCalibrator(off_diagonal=30.0, intercept=5.0).fit(PROBA, LABELS)

    def penalty(W, b):
        diagonal = np.diag(W)
        off = W - np.diag(diagonal)
        return 15.0 * (off**2).sum() + 0.5 * ((diagonal - diagonal.mean()) ** 2).sum() + 2.5 * (b**2).sum()

    W, b = log_linear(PROBA, LABELS, penalty, 3)
    np.testing.assert_allclose(fitted.weight_, W, atol=3e-3)
    np.testing.assert_allclose(fitted.bias_, b, atol=3e-3)


def test_dirichlet_densities_are_undone():
    """With Dirichlet predictions in each class, the family holds the truth (Kull et al., theorem 1)."""
    rng = np.random.default_rng(0)
    alpha = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 1.0], [1.0, 2.0, 3.0]])
    labels = rng.integers(0, 3, 20_000)
    proba = np.array([rng.dirichlet(alpha[label]) for label in labels])
    fitted = DirichletCalibrator(off_diagonal=0.1, intercept=0.1).fit(proba, labels)
    # log-odds of the classes are linear in log v with slopes alpha; rows of W count up to a shift.
    difference = fitted.weight_ - fitted.weight_.mean(axis=1, keepdims=True)
    expected = alpha.T - alpha.T.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(difference, expected, atol=0.25)


@pytest.mark.parametrize("name", ["off_diagonal", "intercept"])
def test_bad_strengths_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be a number from 0"):
        DirichletCalibrator(**{name: -1.0}).fit(PROBA, LABELS)
