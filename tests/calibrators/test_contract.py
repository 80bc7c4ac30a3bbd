"""What every calibrator promises, whatever its method."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.calibrators.catalogue import EVERY, FOREIGN, OWN
from tests.strategies import samples

import polycal as pc
from polycal.calibrators.base import Calibrator
from polycal.storage.model import load_object, save_object
from polycal.storage.saved import find

every_calibrator = pytest.mark.parametrize("calibrator", EVERY, ids=repr)
own_calibrators = pytest.mark.parametrize("calibrator", OWN, ids=repr)
NAMES = ["cat", "dog", "<eel>"]


def draw(n=300, k=3, seed=0):
    """Over-confident predictions with some exact zeros and corners, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.7), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**2 + 1e-3
    proba[rng.random((n, k)) < 0.05] = 0.0
    proba[proba.sum(axis=1) == 0] = 1.0
    proba[0] = np.eye(k)[0]
    return proba / proba.sum(axis=1, keepdims=True), labels


PROBA, LABELS = draw()
NEW, _ = draw(seed=1)


def on_the_simplex(proba):
    return (proba >= 0).all() and np.allclose(proba.sum(axis=1), 1, atol=1e-6)


@every_calibrator
def test_rows_are_on_the_simplex_and_the_input_is_left_alone(calibrator):
    proba, labels, new = PROBA.copy(), LABELS.copy(), NEW.copy()
    proba.flags.writeable = labels.flags.writeable = new.flags.writeable = False
    out = clone(calibrator).fit(proba, labels).predict_proba(new)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-12)
    assert (out >= 0).all()


@every_calibrator
def test_single_precision_stays_single(calibrator):
    fitted = clone(calibrator).fit(PROBA.astype(np.float32), LABELS)
    assert fitted.predict_proba(NEW.astype(np.float32)).dtype == np.float32
    assert fitted.predict_proba(NEW.astype(np.float16)).dtype == np.float32
    assert fitted.predict_proba(NEW.tolist()).dtype == np.float64


@every_calibrator
def test_parameters_are_only_stored(calibrator):
    copy = clone(calibrator)
    parameters = copy.get_params(deep=False)
    assert "from_logits" in parameters
    assert vars(copy) == parameters
    assert clone(copy.set_params(from_logits=True)).from_logits is True
    assert all(p.kind != p.VAR_KEYWORD for p in inspect.signature(type(copy)).parameters.values())


@every_calibrator
def test_predicting_before_fitting_is_an_error(calibrator):
    for method in ("predict_proba", "transform", "predict"):
        with pytest.raises(NotFittedError):
            getattr(clone(calibrator), method)(NEW)


@every_calibrator
def test_transform_and_predict_follow_predict_proba(calibrator):
    fitted = clone(calibrator)
    transformed = fitted.fit_transform(PROBA, LABELS)
    np.testing.assert_array_equal(transformed, fitted.predict_proba(PROBA))
    np.testing.assert_array_equal(fitted.predict(PROBA), transformed.argmax(axis=1))
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])
    assert fitted.n_features_in_ == fitted.n_classes_ == 3


@every_calibrator
def test_calibrators_work_in_pipelines(calibrator):
    pipeline = make_pipeline(clone(calibrator), clone(calibrator)).fit(PROBA, LABELS)
    assert on_the_simplex(pipeline.predict_proba(NEW))
    assert pipeline.predict(NEW).shape == (300,)


@every_calibrator
def test_frames_come_out_as_they_went_in(calibrator):
    frame = pd.DataFrame(PROBA, columns=NAMES, index=np.arange(300) * 3)
    names = np.array(NAMES)[LABELS]
    fitted = clone(calibrator).fit(frame, names)
    assert fitted.class_names_ == tuple(NAMES)
    assert list(fitted.feature_names_in_) == NAMES
    out = fitted.predict_proba(frame)
    assert list(out.columns) == NAMES
    assert out.index.equals(frame.index)
    np.testing.assert_array_equal(out, clone(calibrator).fit(PROBA, LABELS).predict_proba(PROBA))
    assert set(fitted.predict(frame)) <= set(NAMES)
    polars = fitted.transform(pl.DataFrame(PROBA, schema=NAMES))
    assert isinstance(polars, pl.DataFrame)
    assert polars.columns == NAMES
    arrow = fitted.transform(pl.DataFrame(PROBA, schema=NAMES).to_arrow())
    assert arrow.column_names == NAMES
    assert isinstance(fitted.predict_proba(PROBA), np.ndarray)


@every_calibrator
def test_logits_are_probabilities_in_other_words(calibrator):
    logits = np.log(np.maximum(PROBA, 1e-12)) + np.random.default_rng(0).normal(size=(300, 1))
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    by_logits = clone(calibrator).set_params(from_logits=True).fit(logits, LABELS).predict_proba(logits[:50])
    by_proba = clone(calibrator).fit(proba, LABELS).predict_proba(proba[:50])
    np.testing.assert_allclose(by_logits, by_proba, atol=1e-5)


@every_calibrator
def test_weight_two_is_the_row_twice(calibrator):
    weight = np.random.default_rng(2).integers(0, 4, 300)
    weighted = clone(calibrator).fit(PROBA, LABELS, sample_weight=weight)
    repeated = clone(calibrator).fit(PROBA.repeat(weight, axis=0), LABELS.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(NEW), repeated.predict_proba(NEW), atol=1e-5)


@every_calibrator
def test_row_order_does_not_matter(calibrator):
    order = np.random.default_rng(3).permutation(300)
    one = clone(calibrator).fit(PROBA, LABELS).predict_proba(NEW)
    other = clone(calibrator).fit(PROBA[order], LABELS[order]).predict_proba(NEW)
    np.testing.assert_allclose(one, other, atol=1e-5)


@every_calibrator
def test_relabelling_the_classes_relabels_the_answer(calibrator):
    new = np.array([2, 0, 1])
    one = clone(calibrator).fit(PROBA, LABELS).predict_proba(NEW)
    other = clone(calibrator).fit(PROBA[:, new], np.argsort(new)[LABELS]).predict_proba(NEW[:, new])
    np.testing.assert_allclose(one[:, new], other, atol=1e-5)


@every_calibrator
def test_rows_are_calibrated_one_by_one(calibrator):
    fitted = clone(calibrator).fit(PROBA, LABELS)
    whole = fitted.predict_proba(NEW)
    parts = np.concatenate([fitted.predict_proba(NEW[:1]), fitted.predict_proba(NEW[1:])])
    np.testing.assert_allclose(whole, parts, atol=1e-14)


@every_calibrator
def test_classes_that_do_not_occur_are_no_trouble(calibrator):
    proba, labels = draw(k=5)
    labels[labels == 3] = 1
    out = clone(calibrator).fit(proba, labels).predict_proba(proba)
    assert np.isfinite(out).all()
    assert on_the_simplex(out)
    alone = clone(calibrator).fit(proba, np.full(300, 2)).predict_proba(proba)
    assert on_the_simplex(alone)


@every_calibrator
def test_two_classes(calibrator):
    proba, labels = draw(k=2)
    fitted = clone(calibrator).fit(proba[:, 1], labels)
    out = fitted.predict_proba(proba[:, 1])
    assert on_the_simplex(out)
    np.testing.assert_allclose(out, clone(calibrator).fit(proba, labels).predict_proba(proba), atol=1e-6)


@every_calibrator
def test_degenerate_samples_give_finite_predictions(calibrator):
    one_hot = np.eye(3)[np.arange(30) % 3]
    for proba in (one_hot, np.full((30, 3), 1 / 3)):
        for labels in (np.arange(30) % 3, (np.arange(30) + 1) % 3):
            out = clone(calibrator).fit(proba, labels).predict_proba(NEW)
            assert np.isfinite(out).all()
            assert on_the_simplex(out)


@own_calibrators
@pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
@settings(max_examples=20, deadline=None)
@given(sample=samples())
def test_any_sample_gives_probabilities(calibrator, sample):
    labels, proba, weight = sample
    out = clone(calibrator).fit(proba, labels, sample_weight=weight).predict_proba(proba)
    assert np.isfinite(out).all()
    assert on_the_simplex(out)


@every_calibrator
def test_bad_input_stops_at_the_gate(calibrator):
    fitted = clone(calibrator).fit(PROBA, LABELS, class_names=NAMES)
    bad = PROBA.copy()
    bad[7, 0] = np.nan
    with pytest.raises(ValueError, match=r"y_proba\[7\] holds a NaN"):
        clone(calibrator).fit(bad, LABELS)
    with pytest.raises(ValueError, match=r"y_proba\[7\] holds a NaN"):
        fitted.predict_proba(bad)
    with pytest.raises(ValueError, match="y_proba is empty"):
        fitted.predict_proba(PROBA[:0])
    with pytest.raises(ValueError, match="y_proba has 2 classes but the calibrator was fitted on 3"):
        fitted.predict_proba([[0.5, 0.5]])
    with pytest.raises(ValueError, match="must have shape"):
        fitted.predict_proba(PROBA[None])
    with pytest.raises(ValueError, match="column 'dog' where the calibrator was fitted on 'cat'"):
        fitted.predict_proba(pd.DataFrame(PROBA, columns=["dog", "cat", "<eel>"]))


@own_calibrators
@pytest.mark.parametrize("from_logits", [False, True])
def test_saved_calibrators_predict_the_same(calibrator, from_logits, tmp_path):
    fitted = clone(calibrator).set_params(from_logits=from_logits).fit(PROBA, LABELS, class_names=NAMES)
    fitted.save(tmp_path / "c.polycal")
    again = pc.load(tmp_path / "c.polycal")
    assert type(again) is type(fitted)
    assert again.get_params() == fitted.get_params()
    assert again.class_names_ == tuple(NAMES)
    np.testing.assert_array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))
    for name in fitted.saved_attributes:
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))


@own_calibrators
def test_every_fitted_attribute_is_saved_or_described(calibrator):
    fitted = clone(calibrator).fit(PROBA, LABELS)
    common = {"steps_", "n_classes_", "n_features_in_", "class_names_"}
    assert {name for name in vars(fitted) if name.endswith("_")} == common | set(fitted.saved_attributes)
    assert all(f"{name}" in type(fitted).__doc__ for name in fitted.saved_attributes)


@own_calibrators
@pytest.mark.parametrize("place", [b'"format"', b'"steps"', b"\x93NUMPY"])
def test_damaged_files_are_refused(calibrator, place, tmp_path):
    path = tmp_path / "c.polycal"
    clone(calibrator).fit(PROBA, LABELS).save(path)
    content = bytearray(path.read_bytes())
    content[content.rindex(place) + 1] ^= 0x01
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"c\.polycal: "):
        pc.load(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"is": "calibrator/nobody"},
        {"n_classes": 4},
        {"class_names": ["a"]},
        {"params": {"of": {"spell": 1}}},
        {"steps": [{"is": "step/spell"}]},
        {"steps": [{"is": "step/log"}]},
        {
            "steps": [
                {"is": "step/linear", "weight": {"array": "steps.1.scale"}, "bias": {"array": "missing"}}
            ]
        },
    ],
)
def test_hostile_headers_are_refused(wrong, tmp_path):
    path = tmp_path / "c.polycal"
    OWN[-1].fit(PROBA, LABELS).save(path)
    tree, arrays = load_object(path)
    save_object(path, tree | wrong, arrays)
    with pytest.raises(ValueError, match="cannot be read as a calibrator"):
        pc.load(path)


@own_calibrators
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_agrees_for_any_batch(calibrator, from_logits, dtype, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted = clone(calibrator).set_params(from_logits=from_logits).fit(PROBA, LABELS)
    fitted.to_onnx(tmp_path / "c.onnx", dtype=dtype)
    session = onnxruntime.InferenceSession(str(tmp_path / "c.onnx"), providers=["CPUExecutionProvider"])
    for n in (1, 1000):
        new, _ = draw(n, seed=4)
        new = (np.log(new + 1e-6) if from_logits else new).astype(dtype)
        (out,) = session.run(None, {"proba": new})
        assert out.dtype == dtype
        np.testing.assert_allclose(out, fitted.predict_proba(new), atol=1e-6, rtol=0)


@own_calibrators
@pytest.mark.parametrize("from_logits", [False, True])
def test_torch_agrees_and_has_gradients(calibrator, from_logits):
    torch = pytest.importorskip("torch")
    fitted = clone(calibrator).set_params(from_logits=from_logits).fit(PROBA, LABELS)
    new = np.log(NEW + 1e-6) if from_logits else NEW
    tensor = torch.tensor(new, requires_grad=True)
    out = fitted.to_torch()(tensor)
    np.testing.assert_allclose(out.detach(), fitted.predict_proba(new), atol=1e-6, rtol=0)
    if not repr(calibrator).startswith("Histogram"):
        out[:, 0].sum().backward()
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().sum() > 0


def draw_certain(n, seed):
    """Logits of rows that are within 1e-15 of 0 and 1, or 1 exactly, many of them; and labels that are often others."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([1.0, 12.0, 30.0, 300.0], n)
    logits = rng.normal(0, 1, (n, 3)) * scale[:, None]
    # The more certain, the more often right: maps must rise, also among the last digits before 1.
    right = rng.uniform(size=n) < 1.0 - 1.0 / np.sqrt(scale + 1.0)
    labels = np.where(right, logits.argmax(axis=1), rng.integers(0, 3, n))
    return logits, labels


def drifting_softmax(logits):
    """Probabilities as GaussianNB makes them, whose sums are off by a few units in the last place."""
    logits = logits - 500.0
    most = logits.max(axis=1, keepdims=True)
    return np.exp(logits - (most + np.log(np.exp(logits - most).sum(axis=1, keepdims=True))))


@own_calibrators
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exports_agree_on_rows_that_are_certain(calibrator, from_logits, dtype, tmp_path):
    onnxruntime, torch = pytest.importorskip("onnxruntime"), pytest.importorskip("torch")
    logits, labels = draw_certain(600, seed=5)
    fitted = clone(calibrator).set_params(from_logits=from_logits)
    fitted.fit(logits if from_logits else drifting_softmax(logits), labels)
    new = np.concatenate([logits, draw_certain(600, seed=6)[0]])
    new = (new if from_logits else drifting_softmax(new)).astype(dtype)
    expected = fitted.predict_proba(new)
    fitted.to_onnx(tmp_path / "c.onnx", dtype=dtype)
    session = onnxruntime.InferenceSession(str(tmp_path / "c.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"proba": new})[0], expected, atol=1e-6, rtol=0)
    np.testing.assert_allclose(fitted.to_torch()(torch.from_numpy(new)), expected, atol=1e-6, rtol=0)


@own_calibrators
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hits", [0.0, 0.5, 1.0])
def test_rows_that_are_all_the_same_and_certain_can_be_fitted(calibrator, n_classes, hits):
    proba = np.tile(np.eye(n_classes)[0], (50, 1))
    labels = (np.arange(50) >= 50 * hits).astype(int)
    out = clone(calibrator).fit(proba, labels).predict_proba(proba)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


@pytest.mark.parametrize("calibrator", FOREIGN, ids=repr)
def test_foreign_calibrators_say_what_they_cannot_do(calibrator, tmp_path):
    fitted = clone(calibrator).fit(PROBA, LABELS)
    with pytest.raises(TypeError, match="Foreign cannot be written without pickle"):
        fitted.save(tmp_path / "c.polycal")
    with pytest.raises(TypeError, match="Foreign cannot be written as ONNX"):
        fitted.to_onnx(tmp_path / "c.onnx")
    assert list(tmp_path.iterdir()) == []
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match="Foreign cannot be written as a torch module"):
        fitted.to_torch()


def test_parameters_are_chosen_by_scikit_learn():
    search = GridSearchCV(OWN[-1], {"ridge": [0.1, 1e6]}, scoring="neg_log_loss", cv=3).fit(PROBA, LABELS)
    assert search.best_params_["ridge"] in (0.1, 1e6)


def test_every_method_is_in_the_catalogue():
    here = {type(calibrator) for calibrator in EVERY}
    assert {find(f"calibrator/{family}") for family in Calibrator.homes} <= here
