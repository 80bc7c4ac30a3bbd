import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample, to_numpy

PROBA = np.array([[0.25, 0.25, 0.5], [0.125, 0.75, 0.125]])
NAMES = ("cat", "dog", "car")

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def frames():
    columns = dict(zip(NAMES, PROBA.T, strict=True))
    return [pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)]


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "series",
    [
        pandas.Series(["car", "dog"]),
        pandas.Series(["car", "dog"], dtype="category"),
        polars.Series(["car", "dog"]),
        polars.Series(["car", "dog"], dtype=polars.Categorical),
        pyarrow.array(["car", "dog"]),
        pyarrow.chunked_array([["car"], ["dog"]]),
        pandas.Series([2, 1]),
        polars.Series([2, 1]),
        pyarrow.array([2, 1]),
    ],
)
def test_data_frames_bring_their_class_names(frame, series):
    sample = check_sample(series, frame)
    np.testing.assert_array_equal(sample.proba, PROBA)
    np.testing.assert_array_equal(sample.labels, [2, 1])
    assert sample.class_names == NAMES


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "polars", "pyarrow"])
def test_float32_frames_stay_float32(frame):
    if isinstance(frame, pandas.DataFrame):
        frame = frame.astype(np.float32)
    elif isinstance(frame, polars.DataFrame):
        frame = frame.cast(polars.Float32)
    else:
        frame = frame.cast(pyarrow.schema([(name, pyarrow.float32()) for name in NAMES]))
    assert check_sample([0, 1], frame).proba.dtype == np.float32


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors(torch, dtype):
    proba = torch.tensor(PROBA, dtype=getattr(torch, dtype), requires_grad=True)
    sample = check_sample(torch.tensor([2, 1]), proba)
    np.testing.assert_array_equal(sample.proba, PROBA)
    np.testing.assert_array_equal(sample.labels, [2, 1])


def test_tensors_share_memory(torch):
    tensor = torch.tensor(PROBA, dtype=torch.float32)
    assert np.shares_memory(check_sample([0, 1], tensor).proba, tensor.numpy())


def test_tensors_elsewhere_are_refused(torch):
    with pytest.raises(TypeError, match=r"y_proba is a tensor on meta; move it to the CPU first"):
        to_numpy(torch.empty(2, 2, device="meta"), "y_proba")


def test_integer_columns_other_than_positions_are_ambiguous():
    check_sample([0, 1], pandas.DataFrame(PROBA))
    with pytest.raises(ValueError, match="integer columns"):
        check_sample([0, 1], pandas.DataFrame(PROBA, columns=[1, 2, 3]))
    assert (
        check_sample([0, 1], pandas.DataFrame(PROBA, columns=[1, 2, 3]), class_names=NAMES).class_names
        == NAMES
    )


@pytest.mark.parametrize(
    "missing",
    [pandas.Series(["cat", None]), polars.Series(["cat", None]), pyarrow.array(["cat", None])],
    ids=["pandas", "polars", "pyarrow"],
)
def test_missing_labels_are_refused(missing):
    with pytest.raises(ValueError, match=r"y_true\[1\] is missing"):
        check_sample(missing, frames()[0])


def test_missing_probabilities_are_refused():
    for frame in (
        polars.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}),
        pyarrow.table({"a": [0.5, None], "b": [0.5, 0.5]}),
    ):
        with pytest.raises(ValueError, match=r"y_proba\[1\] holds a NaN"):
            pc.accuracy([0, 1], frame)
