import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polycal._validation import check_sample
from polycal.families._targets import best_targets, distinct_atoms, rounding_cost


def gain(atoms, price, u):
    """sum_y u_y max over atoms of label y of price - distance, by loops."""
    total = 0.0
    for y, label in enumerate(atoms.classes):
        heights = [
            p - np.abs(u - v).sum() - o
            for p, v, o, own in zip(price, atoms.position, atoms.outside, atoms.labels == label, strict=True)
            if own
        ]
        total += u[y] * max(heights)
    return total


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from([0.0, 0.1, 1.0]))
def test_no_target_gains_more_than_the_bound(seed, k, spread):
    rng = np.random.default_rng(seed)
    atoms = distinct_atoms(check_sample(rng.integers(0, k, 15), rng.dirichlet(np.ones(k), 15)))
    price = rng.normal(0, spread, atoms.mass.size)
    m = atoms.classes.size
    top, clusters = best_targets(atoms, price, 8, np.full((1, m), 1 / m))
    bound = top + rounding_cost(m, 8)
    near_grid = np.clip(
        rng.multinomial(8, np.full(m, 1 / m), 30) / 8 + rng.normal(0, 0.03, (30, m)), 1e-9, None
    )
    points = np.vstack([rng.dirichlet(np.ones(m), 30), near_grid / near_grid.sum(axis=1, keepdims=True)])
    assert max(gain(atoms, price, u) for u in points) <= bound + 1e-12
    reached = clusters.worth(price) - clusters.cost
    assert max(0, reached.max(initial=0)) == pytest.approx(top, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_rounding_cost_is_the_largest(k):
    fractions = [np.full(k, s / k) for s in range(k + 1)]
    worst = max(float((2 * f * (1 - f)).sum()) for f in fractions)
    assert rounding_cost(k, 1) == pytest.approx(worst)
    assert rounding_cost(k, 16) == pytest.approx(worst / 16)
