import json

import numpy as np
import pytest

import polycal as pc
from tests.calibrators.draws import tempered

METHODS = {"none": pc.IdentityCalibrator(), "T": pc.TemperatureScaling(), "iso": pc.IsotonicCalibrator()}


@pytest.fixture(scope="module")
def parts():
    proba, labels, _ = tempered(2.0, n=2000)
    return labels[:1000], proba[:1000], labels[1000:], proba[1000:]


@pytest.fixture(scope="module")
def compared(parts):
    return pc.compare_calibrators(*parts, calibrators=METHODS)


def test_scores_are_those_of_the_calibrator_on_the_other_rows(parts, compared):
    method = next(m for m in compared.methods if m.name == "T")
    proba = pc.TemperatureScaling().fit(parts[1], parts[0]).predict_proba(parts[3])
    assert method.log_loss == pytest.approx(pc.log_loss(parts[2], proba))
    assert method.brier_score == pytest.approx(pc.brier_score(parts[2], proba))
    assert method.accuracy == pytest.approx(pc.accuracy(parts[2], proba))
    assert method.confidence_error == pytest.approx(pc.calibration_error(parts[2], proba, pc.Confidence()))
    classwise = pc.calibration_error(parts[2], proba, pc.Classwise(reduce="mean"))
    assert method.classwise_error == pytest.approx(classwise)


def test_the_certificate_is_of_rows_the_search_did_not_see(compared):
    raw = next(m for m in compared.methods if m.name == "none")
    assert raw.worst_subset.n_samples == 500
    assert raw.worst_subset.lower_bound > 0


def test_the_best_comes_first_and_its_gap_is_zero(compared):
    assert compared.best.name == "T"
    assert (compared.best.log_loss_gap, compared.best.log_loss_gap_error) == (0.0, 0.0)
    others = compared.methods[1:]
    assert all(
        m.log_loss_gap == pytest.approx(m.log_loss - compared.best.log_loss)
        for m in others
        if m.name == "none"
    )


def test_certain_errors_leave_plain_data_finite(parts):
    labels, proba, new_labels, _ = parts
    sure = np.eye(4)[(new_labels + 1) % 4]
    methods = {"none": pc.IdentityCalibrator(), "T": pc.TemperatureScaling()}
    compared = pc.compare_calibrators(labels, proba, new_labels, sure, calibrators=methods)
    assert compared.methods[-1].name == "none"
    assert json.loads(json.dumps(compared.to_dict(), allow_nan=False))["methods"][-1]["log_loss"] > 30


def test_all_forms_name_all_methods(compared):
    for text in (str(compared), compared._repr_html_(), compared.to_frame().to_string()):
        assert all(name in text for name in METHODS)
    assert repr(compared) == "Comparison(n_methods=3, best='T')"


def test_names_are_escaped(parts):
    compared = pc.compare_calibrators(*parts, calibrators={"<b>": pc.IdentityCalibrator()})
    assert "<b>" not in compared._repr_html_()


def test_bad_input_is_refused(parts):
    with pytest.raises(ValueError, match="calibrators is empty"):
        pc.compare_calibrators(*parts, calibrators={})
    with pytest.raises(ValueError, match="proba_evaluated has 2 classes but proba_fit has 4"):
        pc.compare_calibrators(*parts[:2], [0, 1], [[0.5, 0.5], [0.2, 0.8]], calibrators=METHODS)
    with pytest.raises(ValueError, match="one row"):
        pc.compare_calibrators(*parts[:2], [0], [[0.25] * 4], calibrators=METHODS)
