import json

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.pictures import MAX_POINTS, calibrated_band, chance_spread, draw
from polycal.measures.smooth import smooth_curve
from polycal.sample import Question, ask_subset


def question(n=2000, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    predicted = rng.random(n)
    return Question(predicted, rng.random(n) < predicted, weight, "is it a?")


def test_the_curve_is_thinned_and_keeps_its_ends():
    whole = smooth_curve(question(20_000))
    (curve,) = draw({"as given": question(20_000)}, 0.95)
    assert curve.predicted.size <= MAX_POINTS + 2
    assert curve.smooth_error == whole.value
    assert (curve.cumulative[0], curve.cumulative[-1]) == (0.0, whole.mean_residual)
    assert curve.cumulative.max() == whole.cumulative.max()


def test_the_dictionary_is_short_json():
    (curve,) = draw({"as given": question(20_000)}, 0.95)
    plain = curve.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert len(json.dumps(plain)) < 12_000
    bins = plain["bins"]
    assert all(
        low <= f <= high for low, f, high in zip(bins["low"], bins["frequency"], bins["high"], strict=True)
    )
    assert sum(bins["count"]) == 20_000


def test_chance_is_the_spread_of_the_mean_residual():
    fixed = question(500)
    rng = np.random.default_rng(1)
    residuals = [np.mean((rng.random(500) < fixed.predicted) - fixed.predicted) for _ in range(4000)]
    assert np.std(residuals) == pytest.approx(chance_spread(fixed), rel=0.05)


def test_weight_two_is_the_row_twice_in_the_curve_but_one_observation_in_its_spread():
    one = question(300)
    doubled = Question(one.predicted, one.hits, np.full(300, 2.0), "")
    assert chance_spread(doubled) == pytest.approx(chance_spread(one))
    assert draw({"w": doubled}, 0.95)[0].smooth_error == pytest.approx(draw({"w": one}, 0.95)[0].smooth_error)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_calibrated_curves_stay_in_the_band_as_often_as_said(level):
    rng = np.random.default_rng(0)
    predicted = np.sort(rng.random(400))
    band = calibrated_band(Question(predicted, predicted > 0.5, None, ""), level)
    hits = rng.random((4000, 400)) < predicted
    inside = np.abs(np.cumsum(hits - predicted, axis=1) / 400).max(axis=1) <= band
    # The band is a little wide: a walk in steps reaches less far than Brownian motion.
    assert level - 0.01 <= inside.mean() <= level + 0.04


def test_any_level_can_be_drawn():
    sample = check_sample([0, 1, 1], [0.2, 0.7, 0.6])
    (curve,) = draw({"as given": ask_subset(sample, np.array([1]))}, 1 - 1e-12)
    assert curve.level < 1


def test_series_keep_their_names_and_order():
    curves = draw({"before": question(50, 0), "after": question(50, 1)}, 0.9)
    assert [c.series for c in curves] == ["before", "after"]


def test_few_rows_are_drawn_as_they_are():
    audit = pc.audit([0, 1, 1], [0.2, 0.7, 0.6])
    (picture,) = audit.pictures
    assert picture.about == "confidence"
    assert picture.to_dict()["curves"][0]["bins"]["count"] == [1, 1, 1]
