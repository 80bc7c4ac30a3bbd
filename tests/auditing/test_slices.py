"""Slices of an audit: found on one half and judged on the other, or named."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests import reference_slices as reference

import polycal as pc
from polycal._validation import check_features
from polycal.auditing.slicing import (
    JudgedSlice,
    Prior,
    evidence,
    find_slices,
    found_slices,
    judge_witness,
    prior_of,
    slice_levels,
)
from polycal.families.questions import SubsetWitness
from polycal.families.slices import Condition, SliceWitness, column_importance
from polycal.features import Features
from polycal.measures.smooth import smooth_curve
from polycal.sample import ask_members


@pytest.fixture(scope="module")
def data():
    return pc.datasets.make_slices(6000, temperature=0.35, random_state=0)


@pytest.fixture(scope="module")
def audit(data):
    masks = {"new users": data.features.column("is_new")[1] == 1.0}
    return pc.audit(
        data.labels, data.proba, features=data.features, slices=masks, groups={"first": [0, 1]}, auditors={}
    )


def test_the_headline_is_the_planted_slice(audit):
    headline = audit.slices[0]
    assert dict(headline.rows) == {"device": "tablet"}
    assert headline.rows.n_rows == headline.certificate.n_samples
    assert 0.08 < headline.rows.share < 0.12
    assert {0, 1} <= set(headline.witness.subset)
    assert headline.certificate.lower_bound > 0.03
    text = str(headline.reading)
    assert text.startswith("where device is tablet (")
    assert "says ." in text
    assert text.endswith("off")


def test_a_learner_says_what_it_looks_at(audit):
    for finding in audit.slices:
        assert bool(finding.looks_at) == finding.is_learnt


def test_where_all_rows_are_off_alike_there_is_no_slice():
    data = pc.datasets.make_temperature(1500, 3, temperature=0.3, random_state=3)
    noise = np.random.default_rng(3).integers(0, 6, (1500, 8))
    sample = pc.Sample(data.proba, data.labels, features=check_features(noise, 1500))
    halves = sample.take(slice(0, 750)), sample.take(slice(750, 1500))
    found = find_slices(halves[0], 0, 1)
    witness = found.learnt
    assert judge_witness(witness, *halves, 0.01, 0).certificate.lower_bound > 0
    assert not any(column_importance(witness, halves[1], 0).values())
    assert found_slices(*halves, 0.01, 0.04, 0, 1) == ()


def test_results_are_plain_data(audit):
    data = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert data["slices"][0]["rows"]["columns"] == {"device": "tablet"}
    assert data["named_slices"][0]["name"] == "new users"


def test_named_slices_have_bounds_on_both_sides(audit, data):
    (new,) = audit.named_slices
    inside = data.features.column("is_new")[1] == 1.0
    assert new.rows.n_rows == inside.sum()
    direct = pc.smooth_calibration_error(data.labels[inside], data.proba[inside], subset=[0, 1])
    assert new.groups[0].smooth_error == pytest.approx(direct)
    assert len(new.questions) == 1 + 4 - 1 + 1 + 10
    assert all(q.at_least <= q.smooth_error <= q.at_most for q in new.questions)


def test_columns_name_slices(data):
    part = data.take(slice(0, 600))
    audit = pc.audit(part.labels, part.proba, features=part.features, slices=["device"], auditors={})
    assert [one.name for one in audit.named_slices] == [
        "device is phone",
        "device is laptop",
        "device is tablet",
    ]


def test_rows_that_go_by_are_measured_by_states(data, tmp_path, monkeypatch):
    path = tmp_path / "p.csv"
    column, codes = data.features.column("device")
    device = np.array(column.categories)[codes.astype(int)]
    frame = pd.DataFrame(data.proba, columns=[f"p{c}" for c in range(10)])
    frame.assign(label=[f"p{c}" for c in data.labels], device=device).to_csv(path, index=False)
    loss = {"loss": np.eye(10)[:2]}
    options = {"slice_by": ["device"], "groups": {"first": [0, 1]}, "losses": loss, "auditors": {}}
    held = pc.audit_stream(path, **options)
    monkeypatch.setattr("polycal.auditing.source.HELD_CELLS", 40_000)
    streamed = pc.audit_stream(path, **options)
    assert dict(streamed.slices[0].rows) == {"device": "tablet"}
    assert streamed.slices[0].at_least > 0.03
    assert streamed.slices[0].elsewhere.predicted > 0
    for one, other in zip(held.named_slices, streamed.named_slices, strict=True):
        assert one.rows == other.rows
        assert one.costs[0].paid.value == pytest.approx(other.costs[0].paid.value)
        for exact, close in zip(one.questions, other.questions, strict=True):
            assert exact.name == close.name
            assert exact.smooth_error == pytest.approx(close.smooth_error, abs=3e-4)
            assert exact.at_least == pytest.approx(close.at_least, abs=3e-4)
            assert exact.at_most == pytest.approx(close.at_most, abs=3e-4)


def test_without_features_nothing_changes(data):
    plain = pc.audit(data.labels, data.proba, auditors={})
    assert plain.slices == plain.named_slices == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slices": ["device"]}, "there are no features"),
        ({"slices": [], "features": {"device": ["a"] * 6000}}, "names no column"),
        ({"feature_names": ["device"]}, "features, which are not given"),
        ({"slices": ["devise"], "features": {"device": ["a"] * 6000}}, "no column 'devise'"),
        ({"slices": {"a": [True] * 6000}, "features": {"a": [1] * 6000}}, "a column of features too"),
    ],
)
def test_what_is_asked_wrongly_is_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        pc.audit(data.labels, data.proba, auditors={}, **options)


def test_columns_without_values_and_of_huge_numbers_do_no_harm(data):
    part = data.take(slice(0, 300))
    features = {"empty": np.full(300, np.nan), "id": np.arange(300) // 100 * 2**40 + 2**60}
    audit = pc.audit(
        part.labels, part.proba, features=features, slices=["empty", "id"], auditors={}, notions=[], n_jobs=1
    )
    assert [one.rows.n_rows for one in audit.named_slices] == [300, 100, 100, 100]


def test_calibrated_predictions_have_no_slice():
    data = pc.datasets.make_slices(2000, temperature=1.0, random_state=5)
    rng = np.random.default_rng(5)
    for _ in range(2):
        order = rng.permutation(2000)
        shuffled = Features(data.features.values[order], data.features.columns)
        sample = pc.Sample(data.proba, data.labels, features=shuffled)
        halves = sample.take(order[:1000]), sample.take(order[1000:])
        assert found_slices(*halves, 0.0075, 0.04, 0, 1) == ()


def test_what_the_others_are_at_most_is_judged_by_rows_with_weight(data):
    condition = Condition("device", "category", "tablet")
    inner = SubsetWitness(np.array([0, 1]), smooth_curve(ask_members(data, np.array([0, 1]))).phi, 10)
    witness = SliceWitness((condition,), inner, 10)
    inside = condition.rows(data.features)
    usual = [
        prior_of(witness, data, replace(data, sample_weight=weight), 0.01, 0).usual
        for weight in (None, np.ones(6000), inside * 1.0)
    ]
    outside = data.take(~inside)
    assert usual[0] == usual[1] > outside.mass @ inner.correlations(outside)
    assert usual[2] == 1.0


def test_levels_add_up_and_evidence_is_no_more_than_a_fair_bet():
    assert slice_levels(7, 0.01).sum() == pytest.approx(0.01)
    rng = np.random.default_rng(0)
    for usual in (0.0, 0.1):
        gains = rng.uniform(-1, 1, 200)
        sums = np.array([200.0, gains.sum(), 200.0, gains.sum(), (gains**2).sum()])
        certificate = type("C", (), {"n_samples": 200})
        judged = JudgedSlice(certificate, None, None, 1.0, sums)
        prior = Prior(0.3, usual)
        stake = min(np.sqrt(2 * np.log(100) / (200 * 0.3)), 0.9)
        assert 0 < evidence(judged, prior, 0.01) <= reference.e_value(gains, usual, stake) * (1 + 1e-9)
