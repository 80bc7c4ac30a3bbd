"""Promises about the public names as a whole."""

import ast
import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import polycal as pc

SOURCE = Path(pc.__file__).parent
PROBA = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
LABELS = np.array([2, 1])
# Arguments without a default, beside the data.
REQUIRED = {
    "loss": 1 - np.eye(3),
    "notion": pc.Confidence(),
    "witness": pc.estimate_error(LABELS, PROBA, pc.Confidence(smooth=True)).witness,
}


def functions_of_predictions():
    """Every public function that takes labels and predictions, as (name, call)."""
    for name in pc.__all__:
        function = getattr(pc, name)
        if inspect.isclass(function) or not callable(function):
            continue
        parameters = inspect.signature(function).parameters
        if {"y_true", "y_proba"} <= set(parameters) and "path" not in parameters:
            extra = {p: REQUIRED[p] for p, v in parameters.items() if p in REQUIRED and v.default is v.empty}
            yield pytest.param(
                lambda y, p, f=function, e=extra, **kw: f(y_true=y, y_proba=p, **e, **kw), id=name
            )


BAD_INPUT = {
    "NaN": (LABELS, [[np.nan, 0.5, 0.5], [0.1, 0.8, 0.1]], {}),
    "infinity": (LABELS, [[np.inf, 0.5, 0.5], [0.1, 0.8, 0.1]], {}),
    "negative": (LABELS, [[-0.2, 0.7, 0.5], [0.1, 0.8, 0.1]], {}),
    "sum 3.2": (LABELS, [[1.0, 1.0, 1.2], [0.1, 0.8, 0.1]], {}),
    "logits not said": (LABELS, [[0.0, -3.0, 2.0], [0.1, 0.8, 0.1]], {}),
    "text": (LABELS, [["a", "b", "c"], ["a", "b", "c"]], {}),
    "complex": (LABELS, PROBA.astype(complex), {}),
    "three dimensions": (LABELS, PROBA[None], {}),
    "one column": (LABELS, PROBA[:, :1], {}),
    "ragged": (LABELS, [[0.5, 0.5], [1.0]], {}),
    "empty": ([], np.empty((0, 3)), {}),
    "labels too few": (LABELS[:1], PROBA, {}),
    "labels (n, 1)": (LABELS[:, None], PROBA, {}),
    "labels one-hot": (np.eye(3)[LABELS], PROBA, {}),
    "label too large": ([0, 3], PROBA, {}),
    "label negative": ([0, -1], PROBA, {}),
    "label fraction": ([0.5, 1], PROBA, {}),
    "label missing": ([np.nan, 1], PROBA, {}),
    "label names without names": (["a", "b"], PROBA, {}),
    "label name unknown": (["a", "z"], PROBA, {"class_names": ["a", "b", "c"]}),
    "names too few": (LABELS, PROBA, {"class_names": ["a", "b"]}),
    "names twice": (LABELS, PROBA, {"class_names": ["a", "b", "a"]}),
    "names one string": (LABELS, PROBA, {"class_names": "abc"}),
    "weights too few": (LABELS, PROBA, {"sample_weight": [1.0]}),
    "weight negative": (LABELS, PROBA, {"sample_weight": [1.0, -1.0]}),
    "weight NaN": (LABELS, PROBA, {"sample_weight": [1.0, np.nan]}),
    "weights zero": (LABELS, PROBA, {"sample_weight": [0.0, 0.0]}),
    "weights text": (LABELS, PROBA, {"sample_weight": ["a", "b"]}),
}
ARGUMENTS = ("y_true", "y_proba", "class_names", "sample_weight")


@pytest.mark.parametrize("call", list(functions_of_predictions()))
@pytest.mark.parametrize("bad", BAD_INPUT)
def test_bad_input_gets_one_clear_error(call, bad):
    labels, proba, kwargs = BAD_INPUT[bad]
    with pytest.raises((ValueError, TypeError)) as error:
        call(labels, proba, **kwargs)
    message = str(error.value)
    assert message.startswith(ARGUMENTS), message
    assert message.endswith((".", "?")), message


@pytest.mark.parametrize("call", list(functions_of_predictions()))
def test_predictions_are_never_changed(call):
    proba, labels = np.tile(PROBA, (20, 1)), np.tile(LABELS, 20)
    proba.flags.writeable = labels.flags.writeable = False
    with warnings.catch_warnings(category=pc.CalibrationWarning, action="ignore"):
        call(labels, proba)


def test_every_function_of_predictions_is_covered():
    found = {parameter.id for parameter in functions_of_predictions()}
    assert {"smooth_calibration_error", "calibration_error", "audit", "certify", "kernel_test"} <= found


AUDITORS = [
    pc.SubsetAuditor(),
    pc.KernelAuditor(),
    pc.ProjectionAuditor(),
    pc.SigmoidAuditor(),
    pc.DecisionAuditor(),
    pc.NotionAuditor(pc.Confidence()),
    pc.AutoAuditor(),
    pc.LearnerAuditor(LogisticRegression()),
]


@pytest.mark.parametrize("auditor", AUDITORS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("bad", BAD_INPUT)
def test_auditors_refuse_bad_input(auditor, bad):
    labels, proba, kwargs = BAD_INPUT[bad]
    with pytest.raises((ValueError, TypeError)) as error:
        auditor.find_witness(labels, proba, **kwargs)
    assert str(error.value).startswith(ARGUMENTS)


def test_all_is_sorted_and_complete():
    assert list(pc.__all__) == sorted(pc.__all__)
    assert all(hasattr(pc, name) for name in pc.__all__)


def test_every_public_name_is_documented():
    missing = [name for name in pc.__all__ if not name.startswith("__") and not getattr(pc, name).__doc__]
    assert missing == []


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_light():
    heavy = [
        "numba",
        "scipy",
        "sklearn",
        "torch",
        "pandas",
        "polars",
        "pyarrow",
        "dask",
        "matplotlib",
        "rich",
        "typer",
    ]
    loaded = run_python(f"import polycal, sys; print([m for m in {heavy} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_import_costs_little_beyond_numpy():
    code = "import numpy, time; t = time.perf_counter(); import polycal; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.15


def test_numba_kernels_have_no_signatures_and_no_fastmath():
    for file in (SOURCE / "_compiled").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "njit":
                assert not node.args, f"{file.name}: a signature compiles at import"
                assert not {"fastmath", "locals"} & {keyword.arg for keyword in node.keywords}


def test_files_are_short():
    lengths = {
        str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > 425} == {}
