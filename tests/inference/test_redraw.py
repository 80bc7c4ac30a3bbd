import io
import sys

import numpy as np
import pytest
from scipy.stats import chisquare

import polycal as pc
from polycal._threads import progress_bar
from polycal._validation import check_sample
from polycal.datasets import make_calibrated, make_cat_and_dog, make_temperature
from polycal.inference.redraw import calibration_test, draw_labels, redraw_labels
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset

CALIBRATED = make_calibrated(300, 4, random_state=1)


def cat_or_dog(sample):
    return smooth_error(ask_subset(sample, np.array([0, 1])))


def worst_class(sample):
    """Smooth class-wise error, without threads of its own."""
    return max(smooth_error(ask_subset(sample, np.array([c]))) for c in range(sample.n_classes))


def test_labels_follow_the_predictions():
    proba = np.tile([0.1, 0.0, 0.6, 0.3], (20_000, 1))
    counts = np.bincount(draw_labels(proba, np.random.default_rng(0)), minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3]], 20_000 * np.array([0.1, 0.6, 0.3])).pvalue > 0.01


def test_only_labels_are_redrawn():
    sample = check_sample([0, 1], [[0.5, 0.5]] * 2, sample_weight=[1, 3], class_names=["a", "b"])
    again = redraw_labels(sample, np.random.default_rng(0))
    assert again.proba is sample.proba
    assert again.sample_weight is sample.sample_weight
    assert again.class_names == ("a", "b")


@pytest.mark.parametrize("notion", [pc.Confidence(smooth=True), pc.Classwise()], ids=repr)
def test_threads_do_not_change_the_result(notion):
    one, many = (
        calibration_test(CALIBRATED.labels, CALIBRATED.proba, notion, n_draws=20, n_jobs=n_jobs)
        for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.draws, many.draws)
    assert one.p_value == many.p_value
    other = calibration_test(CALIBRATED.labels, CALIBRATED.proba, notion, n_draws=20, random_state=1)
    assert not np.array_equal(one.draws, other.draws)


def test_what_is_reported():
    test = calibration_test(CALIBRATED.labels, CALIBRATED.proba, pc.Confidence(), n_draws=39, alpha=0.1)
    assert test.statistic == pc.calibration_error(CALIBRATED.labels, CALIBRATED.proba, pc.Confidence())
    assert test.p_value == (1 + np.sum(test.draws >= test.statistic)) / 40
    assert test.null_mean == pytest.approx(test.draws.mean())
    assert test.null_std == pytest.approx(test.draws.std(ddof=1))
    assert list(test.null_quantiles) == [0.1, 0.5, 0.9]
    assert test.null_quantiles[0.5] == np.median(test.draws)
    assert test.excess == test.statistic - test.null_mean
    assert str(test).startswith("no miscalibration shown: error 0.")
    assert "notion=Confidence" in repr(test)


def test_a_function_of_the_sample_is_a_statistic():
    notion = pc.Classwise(reduce="sum")
    arguments = (CALIBRATED.labels, CALIBRATED.proba)
    by_notion = calibration_test(*arguments, notion, n_draws=5)
    by_function = calibration_test(*arguments, lambda sample: notion.errors(sample).sum(), n_draws=5)
    np.testing.assert_allclose(by_notion.draws, by_function.draws)


def test_certain_predictions_that_come_true_are_calibrated():
    test = calibration_test([0, 1, 2], np.eye(3), pc.Confidence(), n_draws=9)
    assert (test.p_value, test.null_std, test.statistic) == (1.0, 0.0, 0.0)


def test_one_draw_is_enough_to_run():
    assert calibration_test([0, 1], [[0.5, 0.5]] * 2, pc.Confidence(), n_draws=1).null_std == 0


def test_weights_count():
    generated = make_temperature(400, 5)
    weight = np.where(np.arange(400) < 200, 1.0, 0.0)
    weighted = calibration_test(
        generated.labels, generated.proba, pc.Confidence(smooth=True), n_draws=50, sample_weight=weight
    )
    half = calibration_test(
        generated.labels[:200], generated.proba[:200], pc.Confidence(smooth=True), n_draws=50
    )
    assert weighted.statistic == pytest.approx(half.statistic)
    assert weighted.null_mean == pytest.approx(half.null_mean, rel=0.3)


def test_the_cat_and_dog_example_is_caught_only_by_its_subset():
    generated = make_cat_and_dog(10_000, random_state=1)
    by_class = calibration_test(generated.labels, generated.proba, pc.Classwise(smooth=True), n_draws=99)
    by_subset = calibration_test(generated.labels, generated.proba, cat_or_dog, n_draws=99)
    assert by_class.p_value > 0.05
    assert by_subset.p_value == 0.01
    assert str(by_subset).startswith("not calibrated")


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"notion": 3}, TypeError, "notion must be a notion such as"),
        ({"n_draws": 0}, ValueError, "n_draws must be an integer, at least 1"),
        ({"alpha": 0}, ValueError, "alpha must be a number"),
        ({"random_state": "x"}, ValueError, "random_state must be an integer"),
    ],
)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        calibration_test([0, 1], [[0.5, 0.5]] * 2, **({"notion": pc.Confidence()} | bad))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "drawn"),
    [(Terminal, None, True), (Terminal, False, False), (io.StringIO, None, False), (io.StringIO, True, True)],
)
def test_progress_is_drawn_for_people(monkeypatch, stream, progress, drawn):
    monkeypatch.setattr(sys, "stderr", stream())
    with progress_bar("Drawing", 2, progress) as advance:
        advance()
        advance()
    assert ("Drawing" in sys.stderr.getvalue()) is drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "notion"),
    [
        (3, pc.Confidence(smooth=True)),
        (3, worst_class),
        (10, pc.Confidence(smooth=True)),
        (10, worst_class),
        (100, pc.Confidence()),
    ],
    ids=["3-confidence", "3-classwise", "10-confidence", "10-classwise", "100-confidence"],
)
def test_calibrated_predictions_are_rejected_at_the_stated_rate(n_classes, notion):
    rejected = 0
    for seed in range(400):
        generated = make_calibrated(100, n_classes, concentration=0.5, random_state=seed)
        test = calibration_test(generated.labels, generated.proba, notion, n_draws=39, random_state=seed)
        rejected += test.is_significant
    assert 0.02 <= rejected / 400 <= 0.08
