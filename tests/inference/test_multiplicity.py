import numpy as np
import pytest

from polycal.inference.certificate import holm


def by_hand(p_values):
    """Reject the smallest at alpha/m, the next at alpha/(m-1), ... until one is kept."""
    m, adjusted, largest = len(p_values), {}, 0.0
    for rank, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = largest
    return [adjusted[i] for i in range(m)]


def test_equals_the_step_down_procedure():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = list(rng.random(rng.integers(1, 8)) ** 3)
        assert holm(p) == pytest.approx(by_hand(p))


def test_no_tests_no_values():
    assert holm([]) == []


def test_the_chance_of_any_false_rejection_is_kept():
    rng = np.random.default_rng(1)
    errors = np.mean([min(holm(rng.random(10))) <= 0.05 for _ in range(4000)])
    assert errors <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
