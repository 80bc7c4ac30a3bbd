import numpy as np
import pytest
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_linear, log_loss

from polycal.calibrators.matrix import MatrixScaling
from polycal.calibrators.vector import VectorScaling

PROBA, LABELS, _ = tempered(2.0, n=200, k=3)


def test_the_minimum_is_found():
    fitted = MatrixScaling(off_diagonal=30.0, diagonal=5.0).fit(PROBA, LABELS)

    def penalty(W, b):
        diagonal = np.diag(W)
        off = W - np.diag(diagonal)
        return 15.0 * (off**2).sum() + 2.5 * (((diagonal - diagonal.mean()) ** 2).sum() + (b**2).sum())

    W, b = log_linear(PROBA, LABELS, penalty, 3)
    np.testing.assert_allclose(fitted.weight_, W, atol=3e-3)
    np.testing.assert_allclose(fitted.bias_, b, atol=3e-3)


def test_a_strong_ridge_is_vector_scaling():
    fitted = MatrixScaling(off_diagonal=1e9, diagonal=3.0).fit(PROBA, LABELS)
    vector = VectorScaling(ridge=3.0).fit(PROBA, LABELS)
    np.testing.assert_allclose(fitted.predict_proba(PROBA), vector.predict_proba(PROBA), atol=1e-4)


def test_swapped_classes_are_swapped_back():
    proba, labels, _ = tempered(1.0, n=5000)
    swapped = proba[:, [1, 0, 2, 3]]
    fitted = MatrixScaling(off_diagonal=1.0, diagonal=1.0).fit(swapped, labels)
    assert log_loss(fitted.predict_proba(swapped), labels) == pytest.approx(log_loss(proba, labels), abs=0.01)


@pytest.mark.parametrize("name", ["off_diagonal", "diagonal"])
def test_bad_strengths_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be a number from 0"):
        MatrixScaling(**{name: "strong"}).fit(PROBA, LABELS)
