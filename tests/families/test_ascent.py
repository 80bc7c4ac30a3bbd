import numpy as np

from polycal.families._ascent import ascend, spread

CENTRE = np.array([[0.3, -0.2], [2.0, 0.1], [0.0, 0.0]])
CURVATURE = np.array([1.0, 400.0])


def concave(position, rows):
    away = position - CENTRE[rows]
    return -(CURVATURE * away**2).sum(axis=1) / 2, -CURVATURE * away


def box(position):
    return np.clip(position, -1, 1)


def test_the_top_of_the_box_is_reached_from_every_start():
    start = np.array([[-0.9, 0.9], [-0.9, 0.9], [0.0, 0.0]])
    position, value = ascend(concave, box, start, 40, metric=CURVATURE)
    np.testing.assert_allclose(position, [[0.3, -0.2], [1.0, 0.1], [0.0, 0.0]], atol=1e-5)
    np.testing.assert_allclose(value, concave(position, np.arange(3))[0])


def test_values_never_fall():
    rng = np.random.default_rng(0)

    def wild(position, rows):
        return np.sin(7 * position).sum(axis=1), rng.normal(size=position.shape)

    start = rng.uniform(-1, 1, (50, 2))
    before, _ = wild(start, np.arange(50))
    values = [ascend(wild, box, start, n_steps, np.ones(2))[1] for n_steps in (0, 20)]
    np.testing.assert_array_equal(values[0], before)
    assert np.all(values[1] >= before)


def test_only_rows_that_still_move_are_evaluated():
    asked = []

    def flat_but_one(position, rows):
        asked.append(rows.tolist())
        return position[:, 0] * (rows == 1), np.outer(rows == 1, [1.0, 0.0])

    ascend(flat_but_one, box, np.zeros((3, 2)), 2, np.ones(2))
    assert asked == [[0, 1, 2], [1], [1]]


def test_the_spread_of_classes():
    np.testing.assert_allclose(spread(np.array([[0.0, 1.0], [0.0, 0.5]])), [1e-9, 0.625])
