import json

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.passes import calibrated_rows

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def data():
    made = pc.datasets.make_calibrated(2000, 3, random_state=0)
    sharp = made.proba**3
    return made.labels, sharp / sharp.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def calibrator(data):
    labels, proba = data
    return pc.TemperatureScaling().fit(proba[:1000], labels[:1000])


@pytest.fixture(scope="module")
def audit(data, calibrator):
    labels, proba = data
    return pc.audit(labels[1000:], proba[1000:], calibrator=calibrator, groups={"ab": [0, 1]})


def test_the_same_rows_are_audited_before_and_after(data, calibrator, audit):
    labels, proba = data
    after = audit.after
    assert audit.calibrator == "TemperatureScaling()"
    assert (after.n_samples, after.n_fit, after.n_judge) == (audit.n_samples, audit.n_fit, audit.n_judge)
    assert after.scores["log_loss"] == pytest.approx(
        pc.log_loss(labels[1000:], calibrator.predict_proba(proba[1000:]))
    )
    assert after.scores["log_loss"] < audit.scores["log_loss"]
    assert after.after is None


def test_before_is_the_audit_without_calibrator(data, audit):
    labels, proba = data
    alone = pc.audit(labels[1000:], proba[1000:], groups={"ab": [0, 1]}).to_dict()
    before = audit.to_dict()
    for key in ("scores", "errors", "findings", "classes", "groups"):
        assert before[key] == alone[key]


def test_pictures_show_both(audit):
    assert all([c.series for c in p.curves] == ["before", "after"] for p in audit.pictures)
    assert {p.about for p in audit.after.pictures} <= {"finding"}
    assert json.loads(json.dumps(audit.to_dict(), allow_nan=False)) == audit.to_dict()


def test_the_text_compares(audit):
    text = " ".join(str(audit).split())
    assert "Before and after TemperatureScaling()" in text


def test_a_calibrator_of_logits_sees_the_same_predictions(data):
    labels, proba = data
    sample = check_sample(labels, proba)
    of_proba = pc.TemperatureScaling().fit(proba, labels)
    of_logits = pc.TemperatureScaling(from_logits=True).fit(np.log(proba), labels)
    expected = calibrated_rows(sample, of_proba).proba
    np.testing.assert_allclose(calibrated_rows(sample, of_logits).proba, expected, atol=1e-9)


def test_weights_and_names_stay(data, calibrator):
    labels, proba = data
    sample = check_sample(labels, proba, sample_weight=np.arange(2000.0), class_names=NAMES)
    after = calibrated_rows(sample, calibrator)
    assert after.class_names == NAMES
    np.testing.assert_array_equal(after.sample_weight, sample.sample_weight)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda y, p: "no", TypeError, "must be a fitted polycal calibrator; got str"),
        (lambda y, p: pc.TemperatureScaling(), ValueError, "not fitted yet"),
        (
            lambda y, p: pc.TemperatureScaling().fit(p, y, class_names=["c", "b", "a"]),
            ValueError,
            "other names, or in another order",
        ),
        (lambda y, p: pc.TemperatureScaling().fit(p[:, 0], y == 0), ValueError, "3 classes"),
    ],
)
def test_what_cannot_be_applied_is_refused(data, make, error, message):
    labels, proba = data
    with pytest.raises(error, match=message):
        pc.audit(labels, proba, class_names=NAMES, calibrator=make(labels, proba))
