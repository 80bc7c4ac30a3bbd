import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from polycal.io import read_predictions, read_probabilities, write_predictions

SUFFIXES = [".npz", ".npy", ".csv", ".parquet", ".feather"]
PROBA = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"preds{request.param}"


@pytest.mark.parametrize("n_samples", [1, 30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roundtrip(path, dtype, n_samples, make_predictions):
    expected = make_predictions(n_samples, dtype=dtype, seed=n_samples)
    write_predictions(
        path, expected.labels, expected.proba, sample_weight=expected.weight, class_names=expected.names
    )
    assert expected.agree_with(read_predictions(path))
    proba, names = read_probabilities(path)
    np.testing.assert_array_equal(proba, expected.proba)
    assert names == expected.names
    write_predictions(
        path,
        expected.labels,
        expected.proba[:, ::-1],
        sample_weight=expected.weight,
        class_names=expected.names,
    )
    np.testing.assert_array_equal(read_predictions(path).proba, expected.proba[:, ::-1])


def test_roundtrip_without_names_and_weights(path):
    write_predictions(path, [1, 0, 0], PROBA)
    sample = read_predictions(path)
    np.testing.assert_array_equal(sample.proba, PROBA)
    np.testing.assert_array_equal(sample.labels, [1, 0, 0])
    assert sample.class_names is None
    assert sample.sample_weight is None


def test_roundtrip_without_labels(path):
    write_predictions(path, None, PROBA, sample_weight=[1, 2, 3], class_names=["a", "b"])
    proba, names = read_probabilities(str(path))
    np.testing.assert_array_equal(proba, PROBA)
    assert names == ("a", "b")
    with pytest.raises(ValueError, match=r"the file has no labels; give it an? .*label.*, or pass labels="):
        read_predictions(path)
    sample = read_predictions(path, labels=["b", "a", "a"])
    np.testing.assert_array_equal(sample.labels, [1, 0, 0])
    np.testing.assert_array_equal(sample.sample_weight, [1, 2, 3])


def test_labels_from_another_file(tmp_path, path):
    write_predictions(path, None, PROBA)
    np.save(tmp_path / "truth.npy", np.array([1, 0, 0]))
    np.testing.assert_array_equal(read_predictions(path, labels=tmp_path / "truth.npy").labels, [1, 0, 0])
    np.save(tmp_path / "truth.npy", np.array([1, 0]))
    with pytest.raises(ValueError, match=r"preds\.\w+: y_true has 2 entries"):
        read_predictions(path, labels=str(tmp_path / "truth.npy"))
    with pytest.raises(
        FileNotFoundError, match=r"truth\.np: there is no such file; did you mean truth\.npy\?"
    ):
        read_predictions(path, labels=tmp_path / "truth.np")
    (tmp_path / "truth.txt").touch()
    with pytest.raises(ValueError, match=r"truth\.txt' must be an .npy file"):
        read_predictions(path, labels=tmp_path / "truth.txt")


def test_labels_given_twice(path):
    write_predictions(path, [1, 0, 0], PROBA)
    with pytest.raises(ValueError, match="the file has labels of its own; leave out labels="):
        read_predictions(path, labels=[1, 0, 0])


def test_a_data_frame_gives_its_names(path):
    write_predictions(path, ["no", "yes", "yes"], pd.DataFrame(PROBA, columns=["yes", "no"]))
    sample = read_predictions(path)
    assert sample.class_names == ("yes", "no")
    np.testing.assert_array_equal(sample.labels, [1, 0, 0])


def test_the_suffix_may_be_in_capitals(tmp_path):
    write_predictions(tmp_path / "A.CSV", [1, 0, 0], PROBA)
    assert read_predictions(tmp_path / "A.CSV").n_samples == 3


@pytest.mark.parametrize(
    ("y_true", "y_proba", "options", "message"),
    [
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, r"y_proba\[0\] does not sum to 1"),
        ([0, 2], PROBA[:2], {}, r"y_true\[1\] is outside 0..1"),
        ([0], PROBA, {}, "y_true has 1 entries"),
        (None, PROBA, {"sample_weight": [1.0]}, "sample_weight has 1 entries"),
        (None, PROBA, {"sample_weight": [0.0, 0.0, 0.0]}, "sample_weight sums to 0"),
        (None, PROBA, {"class_names": ["a"]}, "class_names has 1 names"),
    ],
)
def test_nothing_invalid_is_written(path, y_true, y_proba, options, message):
    with pytest.raises(ValueError, match=message):
        write_predictions(path, y_true, y_proba, **options)
    assert not list(path.parent.iterdir())


WRITERS = {
    ".npz": ("numpy.lib.format", "write_array"),
    ".npy": ("numpy", "save"),
    ".csv": ("polycal.io.csv_table", "_shortest"),
    ".parquet": ("polycal.io.parquet", "batches_of"),
    ".feather": ("polycal.io.arrow", "batches_of"),
}


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    write_predictions(path, None, PROBA)
    old = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("the disk is full")

    module, name = WRITERS[path.suffix]
    monkeypatch.setattr(importlib.import_module(module), name, fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_predictions(path, None, PROBA[::-1])
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".feather"])
def test_parts_need_marks(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_predictions(path, [1, 0, 0], PROBA)
    with pytest.raises(ValueError, match="does not mark its parts, so part='evaluation' cannot be read; a"):
        read_predictions(path, part="evaluation")


def test_parts(tmp_path):
    path = tmp_path / "a.npz"
    weight, marks = np.array([1.0, 2.0, 0.0]), np.array([True, False, False])

    def save(evaluation):
        np.savez(path, proba=PROBA, labels=[1, 0, 0], weight=weight, evaluation=evaluation)

    save(marks)
    assert read_predictions(path).n_samples == 3
    chosen = read_predictions(path, part="calibration")
    np.testing.assert_array_equal(chosen.proba, PROBA[1:])
    np.testing.assert_array_equal(chosen.sample_weight, [2, 0])
    assert read_predictions(path, part="evaluation").n_samples == 1
    with pytest.raises(
        ValueError, match="part must be one of 'all', 'calibration', 'evaluation'; got 'test'"
    ):
        read_predictions(path, part="test")
    for evaluation, message in (
        (np.zeros(3, bool), "marks no row of the evaluation part"),
        (np.array([False, False, True]), "sample_weight sums to 0"),
        (np.zeros(2, bool), r"one boolean per row, 3 in all; got shape \(2,\)"),
        (np.array([1, 0, 0]), "one boolean per row, 3 in all; .*int64"),
    ):
        save(evaluation)
        with pytest.raises(ValueError, match=message):
            read_predictions(path, part="evaluation")


def test_unknown_suffixes(tmp_path):
    (tmp_path / "a.pkl").touch()
    known = r"'\.pkl' is not one of \.npz, \.npy, \.csv, \.csv\.gz, .*\.parquet, \.feather.*format="
    with pytest.raises(ValueError, match=known):
        read_predictions(tmp_path / "a.pkl")
    with pytest.raises(ValueError, match=known):
        write_predictions(tmp_path / "b.pkl", [1, 0, 0], PROBA)


def test_missing_files_and_folders(tmp_path, path):
    path.touch()
    with pytest.raises(FileNotFoundError, match=rf"pred\{path.suffix}: .*did you mean preds\{path.suffix}\?"):
        read_predictions(tmp_path / f"pred{path.suffix}")
    with pytest.raises(FileNotFoundError, match=r"there is no such file$"):
        read_predictions(tmp_path / "something else.npz")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        read_predictions(tmp_path / "missing" / "a.npz")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        write_predictions(tmp_path / "missing" / "a.npz", [1, 0, 0], PROBA)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_predictions(tmp_path / "folder.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_predictions(tmp_path / "folder.npz", [1, 0, 0], PROBA)


def test_empty_files(path):
    path.touch()
    with pytest.raises(
        ValueError, match=r"preds\.\w+: (cannot be read as .*: the file is truncated|the file is empty)"
    ):
        read_predictions(path)


@pytest.mark.parametrize("limit", [0, -1, 2.5, None])
def test_the_limit_must_be_a_number_of_bytes(path, limit):
    path.touch()
    with pytest.raises(ValueError, match="max_bytes must be an integer"):
        read_probabilities(path, max_bytes=limit)


def test_type_errors_name_the_file_too(tmp_path):
    np.savez(tmp_path / "a.npz", proba=np.array([["a", "b"]]))
    with pytest.raises(TypeError, match=r"a\.npz: y_proba must hold real numbers"):
        read_probabilities(tmp_path / "a.npz")


def test_importing_does_not_import_pyarrow():
    code = "import polycal.io, sys; sys.exit('pyarrow' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
