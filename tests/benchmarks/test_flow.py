from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference

import polycal as pc
from benchmarks import flow


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_the_flow_is_the_linear_program(seed, n, tied):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 5, n) / 4 if tied else rng.random(n)
    residual = (rng.integers(0, 2, n) - u) / n
    assert flow.flow_error(u, residual) == pytest.approx(reference.smooth_error_lp(u, residual), abs=1e-7)


def test_ours_is_the_flow():
    row = flow.compare(3000)
    assert row["off"] < 1e-12
    assert row["ratio"] > 1


@pytest.mark.parametrize("n", [1, 2, 50])
def test_ours_is_the_public_error(n):
    rng = np.random.default_rng(n)
    u, hits = np.sort(rng.random(n)), rng.random(n) < 0.6
    error = pc.smooth_calibration_error(hits.astype(int), np.column_stack([1 - u, u]), subset=[1])
    assert flow.our_cost(u, (hits - u) / n) == pytest.approx(error, abs=1e-12)
    assert flow.flow_cost(u, (hits - u) / n) == pytest.approx(error, abs=1e-12)


def test_those_who_were_first_are_cited():
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
    assert "https://arxiv.org/abs/2402.13187" in page
    assert "algorithm that is its own" not in page
