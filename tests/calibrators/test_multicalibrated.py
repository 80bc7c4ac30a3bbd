"""Calibrated for rows that differ: better where they do, and never worse than the flagship beyond noise."""

import json
from copy import copy

import numpy as np
import pytest
from tests import reference_slices as reference

import polycal as pc
from polycal.calibrators.boosting import Binning, Booster, Rows
from polycal.steps import Boosted
from polycal.storage.saved import packed, unpacked


@pytest.fixture(scope="module")
def data():
    return pc.datasets.make_slices(4500, temperature=0.3, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    part = data.take(slice(0, 1500))
    return pc.MulticalibratedCalibrator(n_folds=2).fit(part.proba, part.labels, features=part.features)


def test_it_predicts_new_rows_better_than_without_features(data, fitted):
    fit, fresh = data.take(slice(0, 1500)), data.take(slice(1500, 4500))
    kernel = pc.KernelCalibrator(n_folds=2).fit(fit.proba, fit.labels)
    losses = [
        pc.log_loss(fresh.labels, proba)
        for proba in (
            kernel.predict_proba(fresh.proba),
            fitted.predict_proba(fresh.proba, features=fresh.features),
        )
    ]
    assert fitted.used_ == "boosted"
    assert losses[1] < losses[0] - 0.005


def test_without_anything_to_gain_it_is_the_flagship():
    data = pc.datasets.make_slices(700, temperature=1.0, random_state=2)
    multi = pc.MulticalibratedCalibrator(n_folds=2).fit(data.proba, data.labels, features=data.features)
    kernel = pc.KernelCalibrator(n_folds=2).fit(data.proba, data.labels)
    assert multi.used_ == "kernel"
    with pytest.raises(ValueError, match="looks at no features"):
        multi.encode_features(data.features)
    np.testing.assert_allclose(multi.predict_proba(data.proba), kernel.predict_proba(data.proba))


def test_it_is_saved_without_pickle(data, fitted, tmp_path):
    fresh = data.take(slice(1500, 1800))
    fitted.save(tmp_path / "model.polycal")
    again = pc.load(tmp_path / "model.polycal")
    np.testing.assert_array_equal(
        again.predict_proba(fresh.proba, features=fresh.features),
        fitted.predict_proba(fresh.proba, features=fresh.features),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("from_logits", [False, True])
def test_onnx_takes_features_as_a_second_input(data, fitted, dtype, from_logits, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = copy(fitted)
    model.from_logits = from_logits
    model.to_onnx(tmp_path / "model.onnx", dtype=dtype)
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    columns = json.loads(session.get_modelmeta().custom_metadata_map["polycal.features"])
    assert columns[0] == ["device", "category", ["laptop", "phone", "tablet"]]
    # Rows of the fit as well: many lie where the trees were cut.
    proba = (np.log(data.proba[:3000]) if from_logits else data.proba[:3000]).astype(dtype)
    values = data.features.values[:3000].copy()
    values[::7, 2] = values[::5, 0] = np.nan
    features = {name: values[:, place] for place, name in enumerate(data.features.names)}
    for name in ("device", "region"):
        texts = np.array([*data.features.column(name)[0].categories, "new"])
        features[name] = [None if np.isnan(code) else texts[int(code)] for code in features[name]]
    features["device"][1] = "new"
    features["is_new"] = features["is_new"] == 1.0
    coded = model.encode_features(features)
    assert np.isnan(coded[1, 0])
    (out,) = session.run(None, {"proba": proba, "features": coded})
    np.testing.assert_allclose(out, model.predict_proba(proba, features=features), atol=1e-6, rtol=1e-6)


def test_rows_are_predicted_one_by_one_and_in_any_order(data, fitted):
    fresh = data.take(slice(1500, 1560))
    whole = fitted.predict_proba(fresh.proba, features=fresh.features)
    order = np.random.default_rng(0).permutation(60)
    shuffled = fresh.take(order)
    np.testing.assert_allclose(fitted.predict_proba(shuffled.proba, features=shuffled.features), whole[order])
    one = fresh.take(slice(7, 8))
    np.testing.assert_allclose(fitted.predict_proba(one.proba, features=one.features), whole[7:8])


def test_missing_and_new_values_are_predicted(data, fitted):
    columns = {
        "device": ["fridge", None],
        "region": ["north", "moon"],
        "age": [None, 200.0],
        "is_new": [True, None],
    }
    proba = fitted.predict_proba(data.proba[:2], features=columns)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_what_is_missing_is_said(data, fitted):
    with pytest.raises(ValueError, match="looks at the features device, region"):
        fitted.predict_proba(data.proba[:2])
    with pytest.raises(ValueError, match="no column 'region'"):
        fitted.predict_proba(data.proba[:2], features={"device": ["phone", "phone"]})
    with pytest.raises(TypeError, match="cannot be written as torch: use to_onnx"):
        fitted.to_torch()


def test_an_audit_takes_it_with_its_features(data, fitted):
    part = data.take(slice(1500, 2500))
    audit = pc.audit(
        part.labels, part.proba, features=part.features, calibrator=fitted, auditors={}, notions=[]
    )
    assert audit.after.scores["log_loss"] < audit.scores["log_loss"]


def test_the_step_is_that_of_trees_walked_by_hand(data, fitted):
    (step,) = fitted.steps_
    rows = np.hstack([data.proba[:40], data.features.values[:40]])
    np.testing.assert_allclose(step(rows), reference.boosted(step, rows), rtol=1e-9)
    again = unpacked(*packed(step))
    np.testing.assert_array_equal(again(rows), step(rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": lambda a: a + 100}, "look at a column"),
        ({"feature": lambda a: a[:, :-1]}, "shape|complete"),
        ({"values": lambda a: a * 1e6}, "values must lie"),
        ({"shifted": lambda a: a[:-1]}, "a value for each class"),
    ],
)
def test_trees_that_are_none_are_refused(fitted, change, message):
    (step,) = fitted.steps_
    fields = {name: getattr(step, name) for name in Boosted._rules}
    fields |= {name: edit(fields[name]) for name, edit in change.items()}
    with pytest.raises(ValueError, match=message):
        Boosted(**fields)


def test_a_tree_splits_where_the_residuals_differ():
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, 1.0, np.nan], 2000)
    log_proba = np.log(np.full((2000, 2), 0.5))
    labels = (rng.random(2000) < np.where(x == 1.0, 0.9, 0.5)).astype(np.int64)
    rows = Rows(log_proba, x[:, None], labels, np.ones(2000))
    classes = np.array([0, 1])
    binning = Binning.of(np.hstack([x[:, None], log_proba]), np.array([False, False, False]))
    booster = Booster(1, binning, classes, classes)
    ((tree, _),) = list(booster.boost(rows, None, 1))
    assert tree.feature.tolist() == [0]
    assert bool(tree.missing_left[0])
    assert tree.values[1, 1] > 0.1 > abs(tree.values[0, 1])


@pytest.mark.parametrize("known", [np.random.default_rng(1).normal(size=2000), np.full(2000, 3.0)])
def test_missing_values_alone_are_a_side_of_a_split(known):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(2000) < 0.3, np.nan, known)
    labels = (rng.random(2000) < np.where(np.isnan(x), 0.9, 0.5)).astype(np.int64)
    rows = Rows(np.log(np.full((2000, 2), 0.5)), x[:, None], labels, np.ones(2000))
    classes = np.array([0, 1])
    binning = Binning.of(np.hstack([x[:, None], rows.log_proba]), np.zeros(3, dtype=bool))
    booster = Booster(1, binning, classes, classes)
    trees, shown = zip(*booster.boost(rows, rows, 3), strict=True)
    step = unpacked(*packed(booster.step((), list(trees), 2, 1)))
    np.testing.assert_allclose(step(np.hstack([np.full((2000, 2), 0.5), x[:, None]])), shown[-1])


def test_cuts_are_half_way_between_values():
    (cuts,) = Binning.of(np.repeat([1.0, 2.0, 4.0, np.nan], 50)[:, None], np.array([False])).edges
    np.testing.assert_array_equal(cuts, [1.5, 3.0])
    close = np.array([1.0, np.nextafter(1.0, 2.0)])
    (cuts,) = Binning.of(np.repeat(close, 50)[:, None], np.array([False])).edges
    np.testing.assert_array_equal(cuts, close[1:])
