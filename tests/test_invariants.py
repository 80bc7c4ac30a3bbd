"""What every error must satisfy, whatever its definition."""

import numpy as np
import pytest
from hypothesis import given, settings

import polycal as pc
from tests.strategies import samples

ERRORS = {
    "smooth": lambda y, p, w: pc.smooth_calibration_error(y, p, subset=[0], sample_weight=w),
    "brier": lambda y, p, w: pc.brier_score(y, p, sample_weight=w),
    "log_loss": lambda y, p, w: pc.log_loss(y, p, sample_weight=w),
}
NOTIONS = [
    pc.Confidence(),
    pc.Confidence(strategy="quantile", norm="l2"),
    pc.Confidence(smooth=True),
    pc.TopLabel(),
    pc.TopSet(2),
    pc.TopLabel(strategy="quantile"),
    pc.TopLabel(smooth=True),
    pc.Classwise(),
    pc.Classwise(strategy="quantile", reduce="mean"),
    pc.Classwise(smooth=True),
    pc.Canonical(min_repeats=1),
    pc.SubsetSmooth(),
    pc.SubsetSmooth(max_size=2),
    pc.LowDegree(2),
    pc.FullSmooth(n_floor_draws=0),
]
# Searches: seeded starts make them depend a little on the order of classes, and on rounding.
SEARCHED = [pc.ProjectedSmooth(), pc.Sigmoid(4), pc.Decision(), pc.Halfspace()]
ERRORS |= {repr(n): lambda y, p, w, n=n: pc.calibration_error(y, p, n, sample_weight=w) for n in NOTIONS}
SEARCHES = {repr(n): lambda y, p, w, n=n: pc.calibration_error(y, p, n, sample_weight=w) for n in SEARCHED}
RELABELLED = [name for name in ERRORS if name != "smooth"]
ZERO_WHEN_CALIBRATED = [name for name in ERRORS if name not in ("brier", "log_loss")]


@pytest.mark.parametrize("name", ERRORS)
@settings(max_examples=30, deadline=None)
@given(sample=samples())
def test_row_order_does_not_matter(name, sample):
    labels, proba, weight = sample
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = ERRORS[name](labels[order], proba[order], None if weight is None else weight[order])
    assert shuffled == pytest.approx(ERRORS[name](labels, proba, weight), abs=1e-12)


@pytest.mark.parametrize("name", RELABELLED)
@settings(max_examples=30, deadline=None)
@given(sample=samples())
def test_relabelling_classes_changes_nothing(name, sample):
    labels, proba, weight = sample
    # Ties for the largest probability go to the first class, so they depend on the order of classes.
    proba = proba + 1e-9 * np.arange(proba.shape[1])
    proba /= proba.sum(axis=1, keepdims=True)
    new = np.random.default_rng(0).permutation(proba.shape[1])
    relabelled = ERRORS[name](np.argsort(new)[labels], proba[:, new], weight)
    assert relabelled == pytest.approx(ERRORS[name](labels, proba, weight), abs=1e-12)


@pytest.mark.parametrize("name", ERRORS)
@settings(max_examples=30, deadline=None)
@given(sample=samples(weighted=True))
def test_weight_two_is_the_row_twice(name, sample):
    labels, proba, weight = sample
    times = weight.astype(int)
    repeated = ERRORS[name](np.repeat(labels, times), np.repeat(proba, times, axis=0), None)
    assert repeated == pytest.approx(ERRORS[name](labels, proba, weight), abs=1e-12)


@pytest.mark.parametrize("name", ERRORS)
@settings(max_examples=20, deadline=None)
@given(sample=samples(weighted=True))
def test_the_scale_of_weights_does_not_matter(name, sample):
    labels, proba, weight = sample
    assert ERRORS[name](labels, proba, 1e6 * weight) == pytest.approx(
        ERRORS[name](labels, proba, weight), abs=1e-12
    )


@pytest.mark.parametrize("name", SEARCHES)
@settings(max_examples=8, deadline=None)
@given(sample=samples(max_classes=4, max_rows=25))
def test_searches_do_not_depend_on_row_order(name, sample):
    labels, proba, weight = sample
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = SEARCHES[name](labels[order], proba[order], None if weight is None else weight[order])
    assert shuffled == pytest.approx(SEARCHES[name](labels, proba, weight), abs=1e-6)


@pytest.mark.parametrize("name", [*ZERO_WHEN_CALIBRATED, *SEARCHES])
def test_zero_when_every_repeated_prediction_is_exactly_right(name):
    counts = np.array([[1, 3, 4], [4, 2, 2], [0, 5, 3], [8, 0, 0]])
    proba = np.repeat(counts / 8, 8, axis=0)
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    assert (ERRORS | SEARCHES)[name](labels, proba, None) == pytest.approx(0, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(sample=samples(max_classes=4, max_rows=25))
def test_richer_families_have_larger_errors(sample):
    labels, proba, weight = sample

    def error(notion):
        return pc.calibration_error(labels, proba, notion, sample_weight=weight)

    full = error(pc.FullSmooth(n_floor_draws=0))
    k = proba.shape[1]
    subset, projected = error(pc.SubsetSmooth()), error(pc.ProjectedSmooth(m=k))
    # The projected error is a lower bound: it is compared as what was found, from starts that hold all small subsets.
    assert subset <= projected + 1e-6
    assert projected <= full + 1e-6
    assert error(pc.SubsetSmooth(max_size=1)) <= subset + 1e-12
    assert error(pc.Classwise(smooth=True)) <= subset + 1e-12
    assert full <= error(pc.Canonical(min_repeats=1)) + 1e-6
    assert error(pc.LowDegree(1)) <= error(pc.LowDegree(1, bound="upper")) + 1e-6
