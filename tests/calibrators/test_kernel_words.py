"""What the kernel calibrator says about its fit, in text and in notebooks, and while it is at work."""

import io
import sys
import time

import numpy as np
import pytest
from tests.calibrators.draws import tempered

import polycal as pc
from polycal import _threads
from polycal._threads import late_bar, now_doing, progress_bar
from polycal.calibrators.kernel.words import to_array, to_gains


@pytest.fixture(scope="module")
def few():
    proba, labels, _ = tempered(3.0, n=150, k=3)
    return pc.KernelCalibrator().fit(proba, labels, class_names=["a", "b", "<c>"])


def lines_of(calibrator):
    return dict(line.strip().split("  ", 1) for line in calibrator.summary().splitlines()[1:])


def test_the_pool_is_said_with_shares_and_gains(few):
    lines = lines_of(few)
    assert lines["rows"].strip() == "150"
    assert "a pool, since rows are few" in lines["predicts by"]
    shares = [int(word[:-1]) for word in lines["predicts by"].split() if word.endswith("%")]
    assert sum(shares) == pytest.approx(100, abs=2)
    gain = to_gains(few.gains_)["pool"]
    assert f"saves {gain.log_loss:.4f} ± {gain.error:.4f} of the input's" in lines["the pool"]
    assert "from 2,000 on" in lines["with more rows"]


def test_gains_of_the_members_are_those_of_rows_not_seen(few):
    gains = to_gains(few.gains_)
    assert gains["temperature"].log_loss > 2 * gains["temperature"].error > 0.0
    np.testing.assert_array_equal(to_array(gains), few.gains_)


def test_the_card_says_the_same(few):
    card = few._repr_html_()
    assert "a pool, since rows are few" in card
    assert "<c>" not in card


def test_a_saved_calibrator_says_the_same(few, tmp_path):
    few.save(tmp_path / "model.polycal")
    assert pc.load(tmp_path / "model.polycal").summary() == few.summary()


def test_numbers_of_a_file_that_make_no_sense_are_not_said():
    assert to_gains(np.array([[99.0, 1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, 1.0]])) == {}
    assert to_gains(np.zeros(3)) == {}


def test_what_was_not_used_says_how_many_rows_would_do(fashion_fit):
    lines = lines_of(fashion_fit)
    assert lines["predicts by"].strip().startswith("temperature")
    assert lines["regression on the probabilities of all classes"].endswith(": used")
    assert "rows would show such a gain" in lines["likeness to calibration rows"]


@pytest.fixture(scope="module")
def fashion_fit():
    sample = pc.datasets.load_fashion("calibration")
    return pc.KernelCalibrator().fit(sample.proba[:4000], sample.labels[:4000])


def test_input_that_stays_as_it_is():
    truth, labels, _ = tempered(1.0, n=60, k=2)
    calibrator = pc.KernelCalibrator().fit(truth, labels)
    if calibrator.used_ == "identity":
        assert "the input as it is" in calibrator.summary()


def test_every_calibrator_has_a_summary():
    assert pc.TemperatureScaling().summary().splitlines() == ["TemperatureScaling()", "  fitted  not yet"]
    fitted = pc.TemperatureScaling().fit([[0.2, 0.8], [0.6, 0.4]], [1, 0])
    assert f"temperature_  {fitted.temperature_:.6g}" in fitted.summary()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_when_work_takes_long(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with late_bar("fitting", seconds=0.0):
        now_doing("landmarks", 0.5)
        deadline = time.monotonic() + 10.0
        while "fitting: landmarks" not in terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "fitting: landmarks" in terminal.getvalue()
    assert _threads._late.get() is None


def test_no_bar_for_short_work_within_another_or_without_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with late_bar("short"):
        now_doing("nothing", 0.0)
    with progress_bar("outer", 1, progress=False), late_bar("inner", seconds=0.0):
        time.sleep(0.05)
    assert terminal.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    with late_bar("fitting", seconds=0.0):
        time.sleep(0.05)
    assert plain.getvalue() == ""
