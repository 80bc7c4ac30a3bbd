import numpy as np
from hypothesis import given, settings
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.families import _ascent as module
from polycal.families._ascent import distinct_points


def distinct_use(rng, k, n):
    """Predictions in which no two classes are used alike."""
    proba = rng.dirichlet(np.arange(1, k + 1), n)
    return rng.integers(0, k, n), proba


@settings(max_examples=60, deadline=None)
@given(drawn=samples())
def test_points_hold_every_distinct_prediction_with_its_residual(drawn):
    labels, proba, weight = drawn
    points = distinct_points(check_sample(labels, proba, sample_weight=weight))
    mass = np.ones(len(labels)) if weight is None else weight
    expected = {}
    for v, y, m in zip(proba, labels, mass / mass.sum(), strict=True):
        if m > 0:
            expected[tuple(v)] = expected.get(tuple(v), 0) + m * (np.eye(proba.shape[1])[y] - v)
    found = dict(
        zip(map(tuple, points.by_class(points.proba)), points.by_class(points.residual), strict=True)
    )
    assert len(found) == points.n_points == len(expected)
    by_value = sorted(found.items()), sorted(expected.items())
    for (v, z), (w, r) in zip(*by_value, strict=True):
        np.testing.assert_allclose(v, w, rtol=1e-15)
        np.testing.assert_allclose(z, r, atol=1e-11)


def test_neither_order_nor_how_often_a_row_is_written_matters():
    rng = np.random.default_rng(0)
    labels, proba = distinct_use(rng, 4, 60)
    weight = rng.integers(1, 4, 60)
    points = distinct_points(check_sample(labels, proba, sample_weight=weight))
    rows, new = rng.permutation(60), rng.permutation(4)
    shuffled = check_sample(
        np.argsort(new)[labels[rows]], proba[rows][:, new], sample_weight=weight[rows] * 0.7
    )
    repeated = check_sample(np.repeat(labels, weight), np.repeat(proba, weight, axis=0))
    for other in (distinct_points(shuffled), distinct_points(repeated)):
        np.testing.assert_array_equal(other.proba, points.proba)
        np.testing.assert_array_equal(other.residual, points.residual)


def test_rows_and_columns_come_back_in_the_order_of_the_sample():
    labels, proba = distinct_use(np.random.default_rng(0), 4, 60)
    points = distinct_points(check_sample(labels, proba[:, [2, 0, 3, 1]]))
    np.testing.assert_allclose(points.by_class(points.proba).mean(0), proba[:, [2, 0, 3, 1]].mean(0))
    np.testing.assert_allclose(
        points.by_class_square(points.proba.T @ points.proba),
        points.by_class(points.proba).T @ points.by_class(points.proba),
        rtol=1e-12,
    )


def test_minus_zero_is_zero():
    points = distinct_points(check_sample([0, 1], np.array([[0.0, 1.0], [-0.0, 1.0]])))
    assert points.n_points == 1


def test_a_large_sample_is_thinned_by_content(monkeypatch):
    labels, proba = distinct_use(np.random.default_rng(0), 3, 500)
    monkeypatch.setattr(module, "_MAX_POINTS", 50)
    points = distinct_points(check_sample(labels, proba))
    order = np.random.default_rng(1).permutation(500)
    again = distinct_points(check_sample(labels[order], proba[order]))
    assert points.n_points == 50
    np.testing.assert_array_equal(again.proba, points.proba)
    # Twelve predictions, however often they are repeated, all fit.
    few = check_sample(np.resize(labels, 5000), np.resize(proba[:12], (5000, 3)))
    assert distinct_points(few).n_points == 12


def test_single_precision_rows_are_made_to_sum_to_one():
    labels, proba = distinct_use(np.random.default_rng(0), 7, 50)
    points = distinct_points(check_sample(labels, proba.astype(np.float32)))
    np.testing.assert_allclose(points.proba.sum(axis=1), 1, rtol=1e-15)


def test_some_points():
    labels, proba = distinct_use(np.random.default_rng(0), 3, 20)
    points = distinct_points(check_sample(labels, proba))
    assert points.take(np.arange(20) < 5).n_points == 5
    assert points.n_classes == 3
