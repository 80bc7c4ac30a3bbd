import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from tests.calibrators.draws import tempered

import polycal as pc
from polycal._threads import thread_count
from polycal._validation import check_sample
from polycal.calibrators import base
from polycal.calibrators.base import Calibrator, IdentityCalibrator
from polycal.calibrators.ensemble import EnsembleTemperatureScaling
from polycal.calibrators.one_vs_rest import HistogramCalibrator, IsotonicCalibrator
from polycal.calibrators.rows import counted_rows
from polycal.calibrators.temperature import TemperatureScaling
from polycal.calibrators.vector import VectorScaling
from polycal.sample import row_blocks
from polycal.steps import Affine


class Shifted(Calibrator):
    """A calibrator with an object among its parameters."""

    family = "test-shifted"

    def __init__(self, helper=None, strength=1.0, *, from_logits=False):
        self.helper = helper
        self.strength = strength
        self.from_logits = from_logits

    def _fit(self, sample):
        return (Affine(np.array([1.0]), np.array([-0.1])),)


def test_a_calibrator_must_say_how_it_fits():
    with pytest.raises(TypeError, match="abstract"):
        Calibrator()


def test_answers_are_clipped_and_normalised():
    out = Shifted().fit([[0.5, 0.5]], [0]).predict_proba([[0.05, 0.95]])
    np.testing.assert_array_equal(out, [[0.0, 1.0]])


def test_objects_among_the_parameters_are_not_saved(tmp_path):
    fitted = Shifted(helper=BaseEstimator(), strength=np.float64(2.0)).fit([[0.5, 0.5]], [0])
    fitted.save(tmp_path / "c.polycal")
    again = pc.load(tmp_path / "c.polycal")
    assert again.helper is None
    assert again.strength == 2.0
    np.testing.assert_array_equal(again.predict_proba([[0.3, 0.7]]), fitted.predict_proba([[0.3, 0.7]]))


def test_names_are_forgotten_by_the_next_fit():
    frame = pd.DataFrame([[0.2, 0.8], [0.7, 0.3]], columns=["a", "b"])
    calibrator = IdentityCalibrator().fit(frame, ["b", "a"])
    calibrator.fit(frame.to_numpy(), [1, 0])
    assert calibrator.class_names_ is None
    assert not hasattr(calibrator, "feature_names_in_")
    # A frame keeps its own names where the calibrator knows none.
    assert list(calibrator.predict_proba(frame).columns) == ["a", "b"]


def test_integer_columns_stay_integers():
    frame = pd.DataFrame([[0.2, 0.8], [0.7, 0.3]])
    assert list(IdentityCalibrator().fit(frame, [1, 0]).predict_proba(frame).columns) == [0, 1]


def test_a_bad_row_is_found_in_any_block():
    k = 1000
    n = next(iter(row_blocks(10_000, k))).stop + 5
    proba = np.full((n, k), 1 / k)
    fitted = IdentityCalibrator().fit(proba[:2], [0, 1])
    np.testing.assert_allclose(fitted.predict_proba(proba), proba)
    proba[n - 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"y_proba\[1048:\]\[3\] holds a NaN"):
        fitted.predict_proba(proba)


def test_memory_is_bounded_by_blocks():
    proba, labels, _ = tempered(2.0, n=500, k=10)
    new = np.tile(proba, (2000, 1)).astype(np.float32)
    for calibrator in (TemperatureScaling(), IsotonicCalibrator(), HistogramCalibrator()):
        fitted = calibrator.fit(proba, labels)
        tracemalloc.start()
        out = fitted.predict_proba(new)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # Beside the answer, a handful of float64 blocks of 8 MiB.
        assert peak - out.nbytes < 60 << 20


def test_float32_logits_are_calibrated_in_double_precision():
    logits = np.random.default_rng(0).normal(0, 5, (500, 4)).astype(np.float32)
    labels = logits.argmax(axis=1)
    fitted = TemperatureScaling(from_logits=True).fit(logits, labels)
    expected = softmax(logits.astype(float) / fitted.temperature_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-7)


@pytest.mark.parametrize(
    "calibrator",
    [
        TemperatureScaling(),
        VectorScaling(),
        EnsembleTemperatureScaling(),
        IsotonicCalibrator(),
        HistogramCalibrator(),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:VectorScaling fits:polycal.CalibrationWarning")
def test_a_thousand_classes(calibrator):
    proba, labels, _ = tempered(2.0, n=1000, k=1000)
    out = clone(calibrator).fit(proba.astype(np.float32), labels).predict_proba(proba[:100])
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-9)


COUNTED = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])


def counted(weight):
    return counted_rows(check_sample([0, 1, 1], COUNTED, sample_weight=weight))


def test_whole_weights_are_copies():
    sample = counted([2, 0, 1])
    np.testing.assert_array_equal(sample.proba, COUNTED[[0, 0, 2]])
    np.testing.assert_array_equal(sample.labels, [0, 0, 1])
    assert sample.sample_weight is None


@pytest.mark.parametrize("weight", [[0.5, 0.5, 0.5], [1.0, 2.5, 1.0], [1000, 1, 1]])
def test_other_weights_stay(weight):
    np.testing.assert_array_equal(counted(weight).sample_weight, weight)


def test_rows_without_weight_go():
    np.testing.assert_array_equal(counted([0.5, 0.0, 0.5]).labels, [0, 1])


@pytest.mark.parametrize(("n_jobs", "n_threads"), [(None, 1), (1, 1), (2, 2)])
def test_threads_are_as_many_as_the_caller_says(monkeypatch, n_jobs, n_threads):
    proba = np.full((600, 2000), 1 / 2000)
    fitted = IdentityCalibrator().fit(proba[:2], [0, 1])
    asked = []
    monkeypatch.setattr(
        base, "map_threads", lambda work, items, jobs: asked.append(thread_count(jobs)) or [*map(work, items)]
    )
    np.testing.assert_allclose(fitted.predict_proba(proba, n_jobs=n_jobs), proba)
    assert asked == [n_threads]
