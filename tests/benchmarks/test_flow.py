import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference

from benchmarks import cliff, flow


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_the_flow_is_the_linear_program(seed, n, tied):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 5, n) / 4 if tied else rng.random(n)
    residual = (rng.integers(0, 2, n) - u) / n
    assert flow.flow_error(u, residual) == pytest.approx(reference.smooth_error_lp(u, residual), abs=1e-7)


def test_ours_is_the_flow():
    row = flow.compare(3000, repeats=1)
    assert row["off"] < 1e-9
    assert row["ratio"] > 1


@pytest.mark.slow
def test_no_audit_takes_much_longer_than_its_neighbours():
    assert cliff.steps(cliff.seconds(repeats=2)).max() < cliff.LIMIT
