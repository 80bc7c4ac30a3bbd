import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.strategies import samples

import polycal as pc


@settings(max_examples=100, deadline=None)
@given(samples(), st.sampled_from(["max", "mean", "sum"]))
def test_smooth(sample, reduce):
    labels, proba, weight = sample
    errors = [reference.smooth_error(labels, proba, [c], weight) for c in range(proba.shape[1])]
    value = pc.calibration_error(
        labels, proba, pc.Classwise(smooth=True, reduce=reduce), sample_weight=weight
    )
    assert value == pytest.approx(getattr(np, reduce)(errors), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(samples(), st.integers(1, 20), st.sampled_from(["max", "mean", "sum"]))
def test_binned(sample, n_bins, reduce):
    labels, proba, weight = sample
    weights = np.ones(len(labels)) if weight is None else weight
    errors = []
    for c in range(proba.shape[1]):
        bins = [reference.equal_width_bin(p, n_bins) for p in proba[:, c]]
        errors.append(
            reference.reduce_gaps(reference.binned_gaps(proba[:, c], labels == c, weights, bins), "l1")
        )
    value = pc.calibration_error(
        labels, proba, pc.Classwise(n_bins=n_bins, reduce=reduce), sample_weight=weight
    )
    assert value == pytest.approx(getattr(np, reduce)(errors), abs=1e-12)


def test_wrong_reduce_is_refused():
    with pytest.raises(ValueError, match="reduce must be one of"):
        pc.Classwise(reduce="median")
