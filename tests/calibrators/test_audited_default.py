"""The default auditor of an `AuditedCalibrator`, and what the calibrator does with it, run to its end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calibrators.draws import tempered
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.audited import AuditedCalibrator
from polycal.calibrators.audited.rounds import NOTHING_PROVED, multiplicative
from polycal.calibrators.audited.sharpness import (
    SharpnessFirst,
    SharpnessWitness,
    is_temperature,
    sharpness_witness,
)
from polycal.steps import FLOOR

PROBA, LABELS, _ = tempered(3.0, n=900, k=3)


def test_a_temperature_is_repaired_nearly_as_well_as_by_temperature_scaling():
    for seed in range(3):
        proba, labels, _ = tempered(2.5, n=2400, k=6, seed=seed)
        new, new_labels, _ = tempered(2.5, n=20_000, k=6, seed=seed + 100)
        ours, theirs = (
            pc.brier_score(new_labels, calibrator.fit(proba, labels).predict_proba(new))
            for calibrator in (AuditedCalibrator(), pc.TemperatureScaling())
        )
        assert pc.brier_score(new_labels, new) > theirs + 0.05
        assert ours < theirs + 0.005


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.5, 2.5, 4.0])
@pytest.mark.parametrize("k", [3, 6, 12])
def test_no_default_run_ends_on_a_proved_error(temperature, k):
    for seed in range(3):
        proba, labels, _ = tempered(temperature, n=2400, k=k, seed=seed)
        fitted = AuditedCalibrator().fit(proba, labels)
        *accepted, last = fitted.rounds_
        assert fitted.used_ == "audited"
        assert fitted.stopped_because_ == NOTHING_PROVED
        assert last.lower_bound <= fitted.tolerance
        assert all(r.lower_bound > fitted.tolerance and r.loss_after < r.loss_before for r in accepted)


@pytest.mark.slow
def test_calibrated_predictions_stay_as_they_are_in_95_of_100_default_runs():
    used = []
    for seed in range(200):
        proba, labels, _ = tempered(1.0, n=100, k=3, seed=seed)
        fitted = AuditedCalibrator(random_state=seed).fit(proba, labels)
        used.append(fitted.used_)
        assert fitted.stopped_because_ == NOTHING_PROVED
    assert used.count("identity") >= 190


@settings(max_examples=30, deadline=None)
@given(samples(), st.sampled_from([-3.0, -0.1, 0.4]))
def test_a_sharpness_witness_is_what_it_says(sample, slope):
    _, proba, _ = sample
    witness = SharpnessWitness(slope, proba.shape[1])
    expected = np.clip(slope * np.log(proba.shape[1] * np.maximum(proba, FLOOR)), -1, 1)
    np.testing.assert_allclose(witness.evaluate(proba), expected, atol=1e-12)
    assert ("too sure" in witness.describe()) == (slope < 0)


def test_a_step_along_sharpness_is_a_temperature():
    sample = check_sample(LABELS, PROBA)
    witness = sharpness_witness(sample)
    assert witness.slope < 0
    inside = np.abs(np.log(3 * PROBA)).max(axis=1) <= 1 / abs(witness.slope)
    assert inside.mean() > 0.8
    moved = multiplicative().moved(PROBA, witness.evaluate(PROBA), witness.longest_step)
    expected = PROBA**0.25 / (PROBA**0.25).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved[inside], expected[inside], atol=1e-12)


def test_only_temperatures_are_taken_for_temperatures():
    nearly = check_sample(LABELS, PROBA)
    assert is_temperature(sharpness_witness(nearly), nearly)
    # Wrong classes are too sure as well, and flattening would hide that they are wrong.
    rolled = check_sample(LABELS, np.roll(PROBA, 1, axis=1))
    assert sharpness_witness(rolled).slope < 0
    assert not is_temperature(sharpness_witness(rolled), rolled)
    flat_proba, flat_labels, _ = tempered(0.4, n=900, k=3)
    flat = check_sample(flat_labels, flat_proba)
    assert sharpness_witness(flat).slope > 0
    assert is_temperature(sharpness_witness(flat), flat)
    even = check_sample([0, 1, 2], np.full((3, 3), 1 / 3))
    assert np.isfinite(sharpness_witness(even).slope)


def test_sharpness_comes_first_where_it_is_seen():
    then = pc.NotionAuditor(pc.Confidence(smooth=True))
    sample = check_sample(LABELS, PROBA)
    calm_proba, calm_labels, _ = tempered(1.0, n=900, k=3)
    assert isinstance(SharpnessFirst(then).find(sample), SharpnessWitness)
    for auditor, rows in (
        (SharpnessFirst(then, tolerance=0.3), sample),
        (SharpnessFirst(then), check_sample(calm_labels, calm_proba)),
        (SharpnessFirst(then), check_sample(LABELS, np.roll(PROBA, 1, axis=1))),
        (SharpnessFirst(then), sample.take(slice(1))),
    ):
        assert auditor.find(rows).describe() == then.find(rows).describe()
