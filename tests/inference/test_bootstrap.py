import warnings

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.datasets import (
    make_calibrated,
    make_cat_and_dog,
    make_finite,
    make_shifted_subset,
    make_temperature,
)
from polycal.inference.bootstrap import bootstrap_interval, resample
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset

OVERCONFIDENT = make_temperature(500, 10, temperature=0.5)
CONFIDENCE = pc.Confidence(smooth=True)


def first_two(sample):
    return smooth_error(ask_subset(sample, np.array([0, 1])))


def test_resampling_keeps_the_number_of_rows_and_their_weights():
    sample = check_sample([0, 1, 0, 1], [[0.5, 0.5]] * 4, sample_weight=[1.0, 0.0, 2.0, 3.0])
    rows = np.array([0, 2, 3])
    for seed in range(20):
        drawn = resample(sample, rows, np.random.default_rng(seed)).sample_weight
        assert drawn[1] == 0
        assert np.sum(drawn[rows] / sample.sample_weight[rows]) == pytest.approx(3)


def test_what_is_reported():
    interval = bootstrap_interval(OVERCONFIDENT.labels, OVERCONFIDENT.proba, CONFIDENCE)
    assert interval.estimate == pc.calibration_error(OVERCONFIDENT.labels, OVERCONFIDENT.proba, CONFIDENCE)
    assert interval.low < interval.estimate < interval.high
    assert interval.high - interval.estimate == pytest.approx(1.95996 * interval.std_error, rel=1e-4)
    assert interval.estimate - interval.low >= interval.high - interval.estimate
    assert 0 < interval.noise_floor < interval.low
    assert str(interval).startswith(f"{interval.estimate:.4f} [")


def test_threads_do_not_change_the_result():
    arguments = (OVERCONFIDENT.labels, OVERCONFIDENT.proba, CONFIDENCE)
    one, many = (bootstrap_interval(*arguments, n_draws=20, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert (one.low, one.high) == (many.low, many.high)


def test_a_higher_level_is_wider():
    arguments = (OVERCONFIDENT.labels, OVERCONFIDENT.proba, CONFIDENCE)
    narrow, wide = (bootstrap_interval(*arguments, level=level, n_draws=30) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_rows_of_weight_zero_do_not_count():
    weight = np.where(np.arange(500) < 250, 2.0, 0.0)
    weighted = bootstrap_interval(OVERCONFIDENT.labels, OVERCONFIDENT.proba, CONFIDENCE, sample_weight=weight)
    half = bootstrap_interval(OVERCONFIDENT.labels[:250], OVERCONFIDENT.proba[:250], CONFIDENCE)
    assert weighted.estimate == pytest.approx(half.estimate)
    assert weighted.std_error == pytest.approx(half.std_error, rel=0.3)


def test_warns_near_the_noise_floor():
    calibrated = make_calibrated(300, 5, random_state=1)
    with pytest.warns(pc.CalibrationWarning, match="not clearly above its noise floor"):
        interval = bootstrap_interval(calibrated.labels, calibrated.proba, CONFIDENCE, n_draws=20)
    assert interval.low >= 0


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"notion": 3}, TypeError, "notion must be a notion such as"),
        ({"n_draws": 1}, ValueError, "n_draws must be an integer, at least 20"),
        ({"level": 1}, ValueError, "level must be a number"),
        ({"random_state": -1}, ValueError, "random_state must be an integer"),
    ],
)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        bootstrap_interval([0, 1], [[0.5, 0.5]] * 2, **({"notion": CONFIDENCE} | bad))


def temperature_run(n_classes, temperature):
    """(draw a sample, the distribution as a weighted sample) for one fixed set of predictions."""
    base = make_temperature(1, n_classes, temperature=temperature, random_state=3)
    parts = (base.support, base.conditionals, base.probabilities)
    return lambda seed: make_finite(*parts, 500, random_state=seed), base.population()


CASES = {
    "overconfident": (*temperature_run(10, 0.5), CONFIDENCE.estimate),
    "slightly overconfident": (*temperature_run(10, 0.8), CONFIDENCE.estimate),
    "binned": (*temperature_run(10, 0.8), pc.Confidence().estimate),
    "cat and dog": (
        lambda seed: make_cat_and_dog(500, random_state=seed),
        make_cat_and_dog(1).population(),
        first_two,
    ),
    "shifted": (
        lambda seed: make_shifted_subset(500, 4, random_state=seed),
        make_shifted_subset(100, 4).population(),
        first_two,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_coverage_where_the_error_is_known(case):
    draw, (labels, proba, weight), statistic = CASES[case]
    truth = float(statistic(check_sample(labels, proba, sample_weight=weight)))
    held = 0
    for seed in range(200):
        generated = draw(seed)
        with warnings.catch_warnings():
            # Of small errors, a few samples are warned about: they count all the same.
            warnings.simplefilter("ignore", pc.CalibrationWarning)
            interval = bootstrap_interval(
                generated.labels, generated.proba, lambda s: float(statistic(s)), n_draws=60, n_jobs=1
            )
        held += interval.low <= truth <= interval.high
    assert held / 200 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)
