"""The rows that calibrators learn from: more of them, and groups."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.calibrators.catalogue import EVERY, OWN
from tests.calibrators.draws import confused, tempered

import polycal as pc
from polycal.calibrators.kernel.trial import Gain

FEW = pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")


@FEW
@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_rows_in_two_calls_are_rows_in_one(calibrator):
    proba, labels, _ = tempered(2.0, n=120, k=3)
    whole = clone(calibrator).fit(proba, labels).predict_proba(proba)
    parts = clone(calibrator).partial_fit(proba[:100], labels[:100]).partial_fit(proba[100:], labels[100:])
    np.testing.assert_allclose(parts.predict_proba(proba), whole, atol=0.02)


def test_a_fit_forgets_the_rows_before():
    proba, labels, _ = tempered(2.0, n=200, k=3)
    fitted = pc.TemperatureScaling().fit(proba[:100], labels[:100]).fit(proba[100:], labels[100:])
    again = pc.TemperatureScaling().fit(proba[100:], labels[100:])
    assert fitted.temperature_ == again.temperature_


def test_weights_names_and_groups_of_two_calls():
    proba, labels, _ = tempered(2.0, n=60, k=3)
    names, weight = ["a", "b", "c"], np.linspace(0.5, 2.0, 30)
    fitted = pc.KernelCalibrator().fit(proba[:30], labels[:30], class_names=names, groups=np.arange(30) // 2)
    fitted.partial_fit(proba[30:], np.array(names)[labels[30:]], weight, groups=np.arange(30) // 2)
    assert fitted.class_names_ == ("a", "b", "c")
    rows = fitted._rows
    np.testing.assert_array_equal(rows.sample.labels, labels)
    np.testing.assert_array_equal(rows.sample.sample_weight, [*np.ones(30), *weight])
    # The same label is the same group, in whatever call.
    assert rows.group_numbers().max() == 14


def test_rows_are_neither_pickled_nor_saved(tmp_path):
    proba, labels, _ = tempered(2.0, n=60, k=3)
    fitted = pc.TemperatureScaling().fit(proba, labels)
    fitted.save(tmp_path / "model.polycal")
    for other in (pickle.loads(pickle.dumps(fitted)), pc.load(tmp_path / "model.polycal")):
        np.testing.assert_array_equal(other.predict_proba(proba), fitted.predict_proba(proba))
        with pytest.raises(ValueError, match="partial_fit needs the rows of the first fit"):
            other.partial_fit(proba, labels)


@pytest.mark.parametrize("calibrator", [c for c in OWN if not c.takes_groups], ids=repr)
def test_groups_are_refused_where_they_are_not_used(calibrator):
    with pytest.raises(ValueError, match="does not hold groups of rows out; leave out groups"):
        clone(calibrator).fit([[0.2, 0.8], [0.7, 0.3]], [1, 0], groups=[0, 1])


def test_more_rows_must_fit_to_those_before():
    fitted = pc.KernelCalibrator().fit([[0.2, 0.8], [0.7, 0.3]], [1, 0], class_names=["a", "b"])
    with pytest.raises(ValueError, match="y_proba has 3 classes but the rows before have 2"):
        fitted.partial_fit([[0.2, 0.3, 0.5]], [1], class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="class 0 is called 'b' but 'a' in the rows before"):
        fitted.partial_fit([[0.2, 0.8]], [1], class_names=["b", "a"])
    with pytest.raises(ValueError, match="groups must be given for all rows or for none"):
        fitted.partial_fit([[0.2, 0.8]], [1], groups=[1])


def log_loss(fitted, sample):
    return -np.log(fitted.predict_proba(sample.proba)[np.arange(sample.n_samples), sample.labels]).mean()


@pytest.mark.parametrize("n", [1200, 2500])
def test_the_kernel_goes_on_from_its_models(n, monkeypatch):
    sample, new = confused(n=n), confused(n=4000, seed=1)
    first = int(n / 1.1)
    going = pc.KernelCalibrator().fit(sample.proba[:first], sample.labels[:first])
    whole = pc.KernelCalibrator().fit(sample.proba, sample.labels)
    folds = going._last.fold_of
    monkeypatch.setattr("polycal.calibrators.kernel.calibrator.search", None)
    going.partial_fit(sample.proba[first:], sample.labels[first:])
    # No row moves to another fold: models start from ones that have not seen the rows they are judged by.
    np.testing.assert_array_equal(going._last.fold_of[:first], folds)
    if first > 2000:
        # The lots are those of a fit to all rows.
        np.testing.assert_array_equal(going._last.fold_of, whole._last.fold_of)
    assert log_loss(going, new) < log_loss(whole, new) + 0.001


def test_many_more_rows_are_searched_again():
    sample = confused(n=600)
    going = pc.KernelCalibrator().fit(sample.proba[:300], sample.labels[:300])
    assert going._last.n_searched == 300
    going.partial_fit(sample.proba[300:], sample.labels[300:])
    assert going._last.n_searched == 600
    whole = pc.KernelCalibrator().fit(sample.proba, sample.labels)
    np.testing.assert_array_equal(going.predict_proba(sample.proba), whole.predict_proba(sample.proba))


def test_rows_that_would_show_a_gain_are_searched_again():
    sample = confused(n=2500)
    last = pc.KernelCalibrator().fit(sample.proba, sample.labels)._last
    assert not replace(last, gains={}).is_outgrown(3000)
    for needed, n_rows, outgrown in [
        (3000.0, 2700, True),
        (3000.0, 2550, False),  # hardly any new rows
        (9000.0, 2700, False),
        (100.0, 2700, False),  # shown already
        (np.inf, 2700, False),
        (np.nan, 2700, False),
    ]:
        known = replace(last, gains={"landmarks": Gain(0.01, 0.01, needed)})
        assert known.is_outgrown(n_rows) is outgrown


def test_new_rows_of_a_group_go_to_its_fold():
    sample = confused(n=400)
    groups = np.arange(400) % 60
    going = pc.KernelCalibrator().fit(sample.proba[:350], sample.labels[:350], groups=groups[:350])
    going.partial_fit(sample.proba[350:], sample.labels[350:], groups=groups[350:])
    folds = going._last.fold_of
    assert all(np.unique(folds[groups == group]).size == 1 for group in range(60))
