import numpy as np
import pytest
from tests.export.programs import PROGRAMS, WIDTHS, K, predictions

from polycal.export.onnx import write_onnx
from polycal.steps import Boosted, Step, run

onnxruntime = pytest.importorskip("onnxruntime")


def answer(path, proba, **others):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"proba": proba, **others})[0]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if WIDTHS[name] == K])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 200])
def test_the_graph_computes_the_steps(name, dtype, n, tmp_path):
    write_onnx(tmp_path / "m.onnx", PROGRAMS[name], K, dtype)
    proba = predictions(n, dtype)
    out = answer(tmp_path / "m.onnx", proba)
    assert out.dtype == dtype
    expected = run(PROGRAMS[name], proba.astype(np.float64))
    np.testing.assert_allclose(out, expected, atol=1e-12 if dtype == "float64" else 1e-6, rtol=1e-6)


def trees(depth, n_trees=7):
    """Trees of three features and two classes: a number, a date in seconds, and codes of five categories."""
    rng = np.random.default_rng(depth)
    shape = n_trees, 2**depth - 1
    feature = rng.integers(-1, 5, shape)
    threshold = np.choose(
        np.maximum(feature, 0),
        [
            rng.integers(-2, 3, shape) / 10,
            1.7e9 + rng.integers(0, 9, shape),
            rng.integers(0, 5, shape),
            *rng.uniform(-4, 0, (2, *shape)),
        ],
    )
    threshold[rng.random(shape) < 0.1] = np.inf
    values = rng.normal(0, 0.2, (n_trees, 2**depth, 4))
    classes = np.array([1, 4]), np.array([0, 2, 3])
    return Boosted(
        ((PROGRAMS["softmax"]),),
        K,
        3,
        *classes,
        feature,
        threshold,
        feature == 2,
        rng.random(shape) < 0.5,
        values,
    )


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trees_take_features_at_thresholds_missing_values_and_categories(depth, dtype, tmp_path):
    step, n = trees(depth), 400
    write_onnx(tmp_path / "m.onnx", (step,), K, dtype, n_features=3, notes={"columns": "a, b, c"})
    rng = np.random.default_rng(9)
    columns = [rng.integers(-3, 4, n) / 10, 1.7e9 + rng.integers(-1, 10, n), rng.integers(0, 6, n)]
    features = np.stack(columns, axis=1).astype(np.float64)
    features[rng.random(features.shape) < 0.2] = np.nan
    proba = predictions(n, dtype)
    out = answer(tmp_path / "m.onnx", proba, features=features)
    expected = step(np.hstack([proba.astype(np.float64), features]))
    np.testing.assert_allclose(out, expected, atol=1e-12 if dtype == "float64" else 1e-6, rtol=1e-6)


def test_other_types_are_refused(tmp_path):
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64'"):
        write_onnx(tmp_path / "m.onnx", (), K, "float16")


class Strange(Step):
    """A step that no translation knows."""

    def __call__(self, rows):
        return rows


def test_unknown_steps_are_refused(tmp_path):
    with pytest.raises(TypeError, match="a Strange cannot be written as ONNX"):
        write_onnx(tmp_path / "m.onnx", (Strange(),), K, "float32")
    assert list(tmp_path.iterdir()) == []
