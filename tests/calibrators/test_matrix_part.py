import numpy as np
import pytest
from scipy.special import softmax

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators import _feature_search
from polycal.calibrators._likelihood import log_proba
from polycal.calibrators._matrix_part import _cross_fit
from polycal.sample import split_rows


def draw(n, seed=0, k=5):
    """Logits that mix those of the truth, and a background that no map of logits can take away."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(k) + np.random.default_rng(99).normal(0, 0.4, (k, k))
    logits = rng.normal(0, 5, (n, k))
    truth = 0.98 * softmax(logits @ mixing, axis=1) + 0.02 / k
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits, axis=1), labels


def test_held_out_logits_do_not_depend_on_labels_that_are_kept_aside(monkeypatch):
    proba, labels = draw(400)
    sample = check_sample(labels, proba)
    parts = split_rows(sample, (1.0,) * 4, 0)
    # The strength, and the start, depend on all labels; they are held. (The start matters within the tolerance only.)
    chosen = pc.calibrators._matrix_part.choose_strength(sample, pc.calibrators._matrix_part.MatrixRidge.held)
    monkeypatch.setattr("polycal.calibrators._matrix_part.choose_strength", lambda *_: chosen)
    logits, points = _cross_fit(sample, parts)
    other = labels.copy()
    other[parts[1]] = (other[parts[1]] + 1) % 5
    changed, _ = _cross_fit(check_sample(other, proba), parts)
    np.testing.assert_array_equal(logits[parts[1]], changed[parts[1]])
    assert not np.allclose(logits[parts[0]], changed[parts[0]])
    logs = log_proba(sample)
    np.testing.assert_allclose(logits[parts[0]], logs[parts[0]] @ points[0][:-1] + points[0][-1], rtol=1e-5)


def test_is_mixed_in_where_it_helps_and_exported(monkeypatch, tmp_path):
    (proba, labels), (new, new_labels) = draw(3000), draw(6000, seed=1)
    mixed = pc.KernelCalibrator().fit(proba, labels)
    assert mixed.mixes_matrix_
    monkeypatch.setattr(_feature_search, "_FULL_BLOCKS", 0)
    plain = pc.KernelCalibrator().fit(proba, labels)
    assert not plain.mixes_matrix_
    losses = [
        -np.log(c.predict_proba(new)[np.arange(new_labels.size), new_labels]).mean() for c in (mixed, plain)
    ]
    assert losses[0] < losses[1]
    mixed.save(tmp_path / "model.polycal")
    np.testing.assert_array_equal(
        pc.load(tmp_path / "model.polycal").predict_proba(new), mixed.predict_proba(new)
    )
    onnxruntime = pytest.importorskip("onnxruntime")
    mixed.to_onnx(tmp_path / "model.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {session.get_inputs()[0].name: new})
    np.testing.assert_allclose(exported, mixed.predict_proba(new), atol=1e-9)
