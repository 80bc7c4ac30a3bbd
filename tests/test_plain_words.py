"""Mistakes of the first hour get one clear line, and names work wherever objects do."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

import polycal as pc

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.full(4, 0.3), 200)
LABELS = np.array([RNG.choice(4, p=row) for row in PROBA])
NAMES = ["cat", "dog", "cow", "hen"]


# Swapped arguments


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pc.brier_score(PROBA, LABELS), r"did you swap them\? Here the order is \(y_true, y_proba\)"),
        (lambda: pc.audit(PROBA, LABELS), "did you swap them"),
        (lambda: pc.smooth_calibration_error(PROBA[:, 1], LABELS == 1), "did you swap them"),
        (
            lambda: pc.TemperatureScaling().fit(LABELS, PROBA),
            r"did you swap them\? Here fit takes \(proba, y\)",
        ),
        (lambda: pc.TemperatureScaling().fit(np.array(NAMES)[LABELS], PROBA), "did you swap them"),
    ],
)
def test_swapped_arguments_are_recognised(call, said):
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize(
    ("labels", "proba", "said"),
    [
        (np.eye(4)[LABELS], PROBA, "argmax"),
        (LABELS, PROBA * 2, "sum"),
        (LABELS, PROBA[:, :1], "column"),
        (LABELS + 0.5, PROBA, "whole number"),
    ],
)
def test_other_mistakes_are_not_called_so(labels, proba, said):
    with pytest.raises(ValueError, match=said) as told:
        pc.brier_score(labels, proba)
    assert "swap" not in str(told.value)


# Labels


def test_labels_that_are_numbers_but_no_positions():
    y, p = np.array([3, 5, 3]), np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"These are class names: pass them as text, y_true.astype\(str\)"):
        pc.brier_score(y, p, class_names=np.array([3, 5]))
    with pytest.raises(ValueError, match=r"are np.searchsorted\(classifier.classes_, y_true\)"):
        pc.brier_score(y, p)
    assert pc.brier_score(np.searchsorted([3, 5], y), p) == 0.5


def test_labels_counted_from_one():
    with pytest.raises(ValueError, match="They look counted from 1: subtract 1"):
        pc.brier_score(LABELS + 1, PROBA)
    top = PROBA[:, :3].argmax(axis=1)
    proba = np.column_stack([PROBA[:, :3] + 0.01, np.full(200, 0.01)])
    proba /= proba.sum(axis=1, keepdims=True)
    with pytest.warns(pc.CalibrationWarning, match=r"counted from 0, so subtract 1 if yours"):
        pc.brier_score(top + 1, proba)
    # Right as they are, or no better one lower.
    pc.brier_score(top, proba)
    pc.brier_score(np.full(200, 3), proba)


def test_errors_of_fit_name_its_arguments():
    with pytest.raises(ValueError, match=r"^y\[0\] is outside 0..3"):
        pc.TemperatureScaling().fit(PROBA, np.full(200, 9))
    with pytest.raises(ValueError, match=r"^y has 3 entries"):
        pc.TemperatureScaling().fit(PROBA, [0, 1, 2])


def test_a_series_in_another_order_is_refused():
    pd = pytest.importorskip("pandas")
    frame, series = pd.DataFrame(PROBA), pd.Series(LABELS)
    shuffled = series.sample(frac=1.0, random_state=0)
    with pytest.raises(
        ValueError, match=r"y_true has the same index as y_proba, in another order: pass y_true.loc"
    ):
        pc.brier_score(shuffled, frame)
    with pytest.raises(ValueError, match="sample_weight has the same index"):
        pc.brier_score(series, frame, sample_weight=shuffled + 1.0)
    expected = pc.brier_score(LABELS, PROBA)
    assert pc.brier_score(shuffled.loc[frame.index], frame) == expected
    # Other rows say nothing: position counts.
    assert pc.brier_score(series.set_axis(np.arange(200) + 1000), frame) == expected
    assert pc.brier_score(series.set_axis(["a"] * 200), frame.set_axis(["a"] * 200)) == expected


# Names


def test_names_of_notions():
    assert pc.calibration_error(LABELS, PROBA, "confidence") == pc.calibration_error(
        LABELS, PROBA, pc.Confidence()
    )
    by_name = pc.audit(LABELS, PROBA, notions=["confidence:smooth"], auditors=["confidence:smooth", "kernel"])
    assert [error.estimate.notion.name for error in by_name.errors] == ["confidence"]
    assert {finding.source for finding in by_name.findings} == {"confidence:smooth", "kernel"}
    for one in (pc.Confidence(), "confidence"):
        assert len(pc.audit(LABELS, PROBA, notions=one, auditors={"it": "confidence:smooth"}).errors) == 1
    auditors = [pc.SubsetAuditor(), pc.SubsetAuditor(max_size=2)]
    found = pc.audit(LABELS, PROBA, notions="confidence", auditors=auditors).findings
    assert {f.source for f in found} == {repr(auditor) for auditor in auditors}
    with pytest.raises(ValueError, match="notion 'confidenc' is not one of confidence"):
        pc.audit(LABELS, PROBA, notions="confidenc")
    with pytest.raises(TypeError, match=r"auditors\['float'\] must be an auditor"):
        pc.audit(LABELS, PROBA, auditors=[0.5])


def test_names_of_calibrators():
    X, y = load_iris(return_X_y=True)
    by_name = pc.CalibratedClassifier(GaussianNB(), calibrator="temperature").fit(X, y)
    assert isinstance(by_name.calibrator_, pc.TemperatureScaling)
    with pytest.raises(ValueError, match="method 'temprature' is not one of"):
        pc.CalibratedClassifier(GaussianNB(), calibrator="temprature").fit(X, y)
    with pytest.raises(TypeError, match="calibrator must be a calibrator"):
        pc.CalibratedClassifier(GaussianNB(), calibrator=GaussianNB()).fit(X, y)
    halves = LABELS[:100], PROBA[:100], LABELS[100:], PROBA[100:]
    for given in (["identity", "temperature"], [pc.IdentityCalibrator(), "temperature"], "temperature"):
        compared = pc.compare_calibrators(*halves, calibrators=given)
        assert "temperature" in {method.name for method in compared.methods}
    with pytest.raises(TypeError, match=r"calibrators\['x'\] must be a calibrator"):
        pc.compare_calibrators(*halves, calibrators={"x": 3})


# Random states


@pytest.mark.parametrize(
    "make", [lambda: None, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)]
)
def test_random_states_of_every_usual_kind(make):
    assert (
        0.0 <= pc.calibration_test(LABELS, PROBA, "confidence", n_draws=20, random_state=make()).p_value <= 1
    )
    assert isinstance(pc.SubsetAuditor(random_state=make()).random_state, int)
    pc.SubsetAuditor(random_state=make()).find_witness(LABELS, PROBA)
    pc.KernelCalibrator(random_state=make()).fit(PROBA, LABELS)
    pc.audit(LABELS, PROBA, notions="confidence", auditors=["confidence:smooth"], random_state=make())
    pc.datasets.make_calibrated(10, 3, random_state=make())


def test_a_generator_gives_the_same_again():
    def draw():
        return pc.datasets.make_calibrated(20, 3, random_state=np.random.default_rng(7)).proba

    np.testing.assert_array_equal(draw(), draw())
    for bad in (-1, 0.5, "x"):
        with pytest.raises(
            ValueError, match=r"random_state must be an integer, at least 0, or a NumPy Generator"
        ):
            pc.audit(LABELS, PROBA, random_state=bad)


# Logits


def test_logits_may_be_said_at_every_call():
    logits = np.log(PROBA + 1e-9)
    made = pc.TemperatureScaling(from_logits=True).fit(logits, LABELS)
    said = pc.TemperatureScaling().fit(logits, LABELS, from_logits=True)
    np.testing.assert_allclose(
        made.predict_proba(logits), said.predict_proba(logits, from_logits=True), atol=1e-12
    )
    np.testing.assert_allclose(
        made.predict_proba(PROBA, from_logits=False), said.predict_proba(PROBA), atol=1e-12
    )


def test_questions_are_named_in_full():
    proba = RNG.dirichlet(np.full(9, 0.3), 2000)
    proba[:, :6] *= np.linspace(0.2, 0.3, 6)
    proba /= proba.sum(axis=1, keepdims=True)
    labels = np.array([RNG.choice(9, p=row) for row in RNG.dirichlet(np.full(9, 0.3), 2000)])
    audit = pc.audit(labels, proba, auditors={"sets": pc.SubsetAuditor()}, notions="confidence")
    assert len(audit.findings[0].witness.members) >= 3
    assert "more" not in audit.findings[0].question
    assert audit.to_dict()["findings"][0]["question"] == audit.findings[0].question
