import numpy as np
import pytest
from tests.export.programs import PROGRAMS, WIDTHS, K, predictions

from polycal.export.onnx import write_onnx
from polycal.steps import Step, run

onnxruntime = pytest.importorskip("onnxruntime")


def answer(path, proba):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"proba": proba})[0]


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
