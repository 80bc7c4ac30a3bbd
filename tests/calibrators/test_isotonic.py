import numpy as np
from hypothesis import given, settings
from tests.calibrators.draws import tempered
from tests.reference_calibrators import isotonic
from tests.strategies import samples

from polycal.calibrators.one_vs_rest import IsotonicCalibrator
from polycal.calibrators.sklearn_adapter import SklearnCalibrator


@settings(max_examples=30, deadline=None)
@given(samples(weighted=False, max_rows=15, min_classes=3))
def test_each_class_is_the_min_max_formula(sample):
    labels, proba, _ = sample
    # Ties are averaged by everybody, but the formula on sorted points does not.
    proba = proba + np.random.default_rng(0).uniform(0, 1e-3, proba.shape)
    proba /= proba.sum(axis=1, keepdims=True)
    columns = [
        isotonic(column, labels == label) if (labels == label).any() else column
        for label, column in enumerate(proba.T)
    ]
    expected = np.column_stack(columns)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        IsotonicCalibrator().fit(proba, labels).predict_proba(proba), expected, atol=1e-9
    )


def test_scikit_learn_gives_the_same():
    proba, labels, _ = tempered(2.0, n=500)
    new, _, _ = tempered(2.0, n=500, seed=1)
    theirs = SklearnCalibrator("isotonic").fit(proba, labels).predict_proba(new)
    np.testing.assert_allclose(IsotonicCalibrator().fit(proba, labels).predict_proba(new), theirs, atol=1e-6)


def test_a_row_of_zeros_becomes_uniform():
    proba = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    out = IsotonicCalibrator().fit(proba, [0, 1, 2]).predict_proba([[0.0, 0.0, 1.0], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(out, [[0, 0, 1], [0, 0, 1]], atol=1e-12)
    wrong = IsotonicCalibrator().fit([[0.9, 0.1], [0.1, 0.9]], [1, 0]).predict_proba([[0.5, 0.5]])
    np.testing.assert_allclose(wrong, [[0.5, 0.5]])


def test_a_class_that_does_not_occur_stays_as_predicted():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    fitted = IsotonicCalibrator().fit(proba, rng.integers(0, 2, 200))
    before_normalising = fitted.steps_[0](proba)
    np.testing.assert_allclose(before_normalising[:, 2], proba[:, 2])
