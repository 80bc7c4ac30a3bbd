from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

from polycal._validation import check_sample
from polycal.families import distance as coupling
from polycal.families._targets import distinct_atoms


def test_bounds_hold_whenever_the_search_is_stopped(monkeypatch):
    rng = np.random.default_rng(0)
    atoms = distinct_atoms(check_sample(rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)))
    lower, upper, _, _ = coupling.cheapest_coupling(atoms, 64)
    for rounds in (1, 3, 6, 9):
        monkeypatch.setattr(coupling, "_MAX_ROUNDS", rounds)
        early_lower, early_upper, clusters, amount = coupling.cheapest_coupling(atoms, 64)
        assert early_lower <= upper
        assert early_upper >= lower
        assert amount @ clusters.cost == pytest.approx(early_upper)


def test_a_linear_program_that_fails_says_so(monkeypatch):
    failed = SimpleNamespace(x=None, message="time limit")
    monkeypatch.setattr(optimize, "linprog", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match="not solved: time limit"):
        coupling.cheapest_coupling(distinct_atoms(check_sample([0, 1], [0.2, 0.9])), 4)


def test_certain_predictions_do_not_send_the_search_round_in_circles():
    labels = np.array([0, 0, 0, 0, 1, 0, 1, 1])
    proba = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    atoms = distinct_atoms(check_sample(labels, np.column_stack([proba, 1 - proba])))
    lower, upper, _, _ = coupling.cheapest_coupling(atoms, 32)
    assert (lower, upper) == pytest.approx((0.25 - 1 / 32, 0.25))
