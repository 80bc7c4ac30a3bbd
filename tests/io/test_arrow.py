import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from polycal.io import read_predictions, read_probabilities, write_predictions

SUFFIXES = [".parquet", ".feather"]


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"preds{request.param}"


def save(path, columns, metadata=None, rows=7):
    """Write an Arrow table in pieces of a few rows."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    table = table.replace_schema_metadata(metadata)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        pf.write_feather(table, path, chunksize=rows)
    return path


def two_classes(n=20, **columns):
    p = np.linspace(0, 1, n)
    return {"cat": 1 - p, "dog": p, "label": np.arange(n) % 2, **columns}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roundtrip(path, dtype, make_predictions):
    predictions = make_predictions(n_samples=50, dtype=dtype)
    write_predictions(
        path,
        predictions.labels,
        predictions.proba,
        sample_weight=predictions.weight,
        class_names=predictions.names,
    )
    sample = read_predictions(path)
    assert predictions.agree_with(sample)
    assert sample.proba.flags.c_contiguous


def test_many_batches(path, monkeypatch, make_predictions):
    monkeypatch.setattr("polycal.io.parquet._BATCH_CELLS", 28)
    monkeypatch.setattr("polycal.io.arrow._GROUP_CELLS", 52)
    monkeypatch.setattr("polycal.io.arrow._LEAST_GROUP", 1)
    predictions = make_predictions(n_samples=50)
    write_predictions(
        path,
        predictions.labels,
        predictions.proba,
        sample_weight=predictions.weight,
        class_names=predictions.names,
    )
    assert predictions.agree_with(read_predictions(path))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("categorical", [False, True])
def test_written_by_data_frame_libraries(path, predictions, library, categorical):
    columns = dict(zip(predictions.names, predictions.proba.T, strict=True))
    columns["label"] = [predictions.names[i] for i in predictions.labels]
    columns["weight"] = predictions.weight
    if library == "pandas":
        frame = pd.DataFrame(columns, index=range(5, 5 + len(predictions.labels)))
        frame = frame.astype({"label": "category"}) if categorical else frame
        frame = frame if path.suffix == ".parquet" else frame.reset_index(drop=True)
        getattr(frame, f"to_{path.suffix[1:]}")(path)
    else:
        frame = pl.DataFrame(columns)
        frame = frame.with_columns(pl.col("label").cast(pl.Categorical)) if categorical else frame
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path, compression="zstd")
    assert predictions.agree_with(read_predictions(path))


def test_an_index_stored_by_pandas_is_not_a_class(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame(two_classes(3), index=["x", "y", "z"]).to_parquet(path)
    assert read_predictions(path).class_names == ("cat", "dog")


def test_read_by_data_frame_libraries(path, predictions):
    write_predictions(path, predictions.labels, predictions.proba, class_names=predictions.names)
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_feather(path)
    np.testing.assert_array_equal(frame[list(predictions.names)].to_numpy(), predictions.proba)
    assert list(frame["label"]) == [predictions.names[i] for i in predictions.labels]


def test_only_the_needed_columns_are_read(path):
    lists = pa.array(np.eye(2)[[0, 1, 1]].tolist())
    save(path, {"proba": lists, "label": [0, 1, 1], "text": ["a", None, "c"], "more": [[1], [2], []]})
    assert read_predictions(path).n_samples == 3


def test_unused_categories_are_no_labels(path):
    labels = pd.Categorical(["cat", "dog"] * 10, categories=["cow", "cat", "dog"])
    save(path, two_classes(label=pa.array(labels)))
    np.testing.assert_array_equal(read_predictions(path).labels, [0, 1] * 10)


@pytest.mark.parametrize(
    "labels", [pa.int8(), pa.uint64(), pa.float64(), pa.bool_(), pa.string(), pa.large_string()]
)
def test_types_of_labels(path, labels):
    save(
        path,
        two_classes(label=pa.array([0, 1] * 10).cast(labels) if labels != pa.bool_() else [False, True] * 10),
    )
    np.testing.assert_array_equal(read_predictions(path).labels, [0, 1] * 10)


def test_types_of_probabilities(path):
    one, zero = np.ones(4), np.zeros(4)
    for dtype, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.int8, np.float64)):
        save(path, {"a": one.astype(dtype), "b": zero.astype(dtype)})
        proba, _ = read_probabilities(path)
        assert proba.dtype == expected
    save(path, {"a": one, "b": zero.astype(np.float32)})
    assert read_probabilities(path)[0].dtype == np.float64


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
def test_a_column_of_lists(path, kind):
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 20).astype(np.float32)
    types = {
        "list": pa.list_(pa.float32()),
        "large_list": pa.large_list(pa.float32()),
        "fixed": pa.list_(pa.float32(), 3),
    }
    columns = {
        "proba": pa.array(proba.tolist(), types[kind]),
        "label": ["a", "c"] * 10,
        "weight": np.ones(20),
    }
    save(path, columns, metadata={"class_names": json.dumps(["a", "b", "c"])})
    sample = read_predictions(path)
    np.testing.assert_array_equal(sample.proba, proba)
    np.testing.assert_array_equal(sample.labels, [0, 2] * 10)
    assert sample.class_names == ("a", "b", "c")
    save(path, {**columns, "label": [0, 2] * 10})
    assert read_predictions(path).class_names is None


def test_bad_lists(path):
    for lists, message in (
        ([[0.5, 0.5]] * 9 + [[1.0]], r"proba\[9\] has 1 entries, the first row 2"),
        ([[0.5, 0.5]] * 9 + [None], "row 9, column 'proba' is null"),
        ([[0.5, 0.5]] * 8 + [[0.5, None]], "row 8, column 'proba' is null"),
        ([["a", "b"]], "column 'proba' holds string"),
        (pa.array([[]], pa.list_(pa.float64())), "y_proba has 0 column"),
    ):
        save(path, {"proba": lists})
        with pytest.raises(ValueError, match=message):
            read_probabilities(path)
    save(path, {"proba": [[0.5, 0.5]]}, metadata={"class_names": "["})
    with pytest.raises(ValueError, match="class_names in the schema"):
        read_probabilities(path)
    save(path, {"proba": [[0.5, 0.5]], "label": ["a"]})
    with pytest.raises(ValueError, match=r"label\[0\] is 'a'.*the file has none"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"cat": pa.array([0.5] * 9 + [None] + [0.5] * 10)}, "row 9, column 'cat' is null"),
        ({"label": pa.array([0] * 9 + [None] + [1] * 10)}, "row 9, column 'label' is null"),
        ({"weight": pa.array([1.0] * 19 + [None])}, "row 19, column 'weight' is null"),
        ({"label": ["cat"] * 8 + ["cow"] * 12}, r"label\[8\] is 'cow'"),
        ({"label": [[0]] * 20}, "column 'label' holds list"),
        ({"id": ["x"] * 20}, "column 'id' holds string, not floats.*drop="),
        ({"when": pa.array([0] * 20, pa.timestamp("s"))}, "column 'when' holds timestamp"),
        ({"evaluation": [2] * 20}, r"evaluation\[0\] is 2; use true or false"),
        ({"weight": np.ones(20), "sample_weight": np.ones(20)}, "keep one"),
        ({"more": np.ones(20)}, r"y_proba\[0\] does not sum to 1"),
    ],
)
def test_bad_columns(path, columns, message):
    save(path, two_classes(**columns))
    with pytest.raises(ValueError, match=message) as caught:
        read_predictions(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_bad_tables(path):
    numbers = pa.array([0.5])
    for table, message in (
        (pa.Table.from_arrays([numbers, numbers], ["a", "a"]), "two columns are called 'a'"),
        (pa.table({"label": [1]}), "there is no column of probabilities"),
        (pa.table(two_classes(1)).slice(0, 0), "columns but no row"),
    ):
        save(path, table)
        with pytest.raises(ValueError, match=message):
            read_predictions(path)
    save(path, {"cat": [0.5], "dog": [0.5]})
    with pytest.raises(ValueError, match="give it a column 'label'"):
        read_predictions(path)


def test_columns_with_dots(path):
    save(path, {"a": [0.25], "a.b": [0.75], "label": ["a.b"]})
    sample = read_predictions(path)
    np.testing.assert_array_equal(sample.proba, [[0.25, 0.75]])
    assert sample.class_names == ("a", "a.b")


def test_parts(path):
    save(path, two_classes(evaluation=np.arange(20) < 5))
    assert read_predictions(path, part="evaluation").n_samples == 5
    assert read_predictions(path, part="calibration").n_samples == 15


def test_a_small_file_that_claims_much_is_refused(path):
    n = 3_000_000
    zeros = np.zeros(n, dtype=np.float32)
    table = pa.table({"cat": zeros, "dog": zeros})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pf.write_feather(table, path, compression="zstd", chunksize=n)
    assert path.stat().st_size < n // 10
    with pytest.raises(ValueError, match=r"claims to unpack to .*24,000,000 bytes.*max_bytes=24000000"):
        read_probabilities(path, max_bytes=20_000_000)


def test_truncated_files_are_refused(path, predictions, damaged):
    write_predictions(path, predictions.labels, predictions.proba)
    truncated, _ = damaged(path.read_bytes())
    for data in truncated:
        path.write_bytes(data)
        with pytest.raises(
            ValueError, match=r"preds\.\w+: cannot be read as (Parquet|Feather).*truncated or corrupt"
        ):
            read_predictions(path)


def test_flipped_bytes(path, predictions, damaged):
    write_predictions(
        path,
        predictions.labels,
        predictions.proba,
        sample_weight=predictions.weight,
        class_names=predictions.names,
    )
    _, flipped = damaged(path.read_bytes())
    for data in flipped:
        path.write_bytes(data)
        try:
            sample = read_predictions(path)
        except (ValueError, TypeError, MemoryError) as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            # Parquet pages have checksums. Feather has none: only changes that keep the rows' sums pass.
            assert path.suffix == ".feather" or predictions.agree_with(sample)
            np.testing.assert_allclose(sample.proba, predictions.proba, atol=1e-7)


def test_the_other_format_under_the_wrong_name(path, predictions):
    write_predictions(path, predictions.labels, predictions.proba)
    wrong = path.with_suffix(SUFFIXES[path.suffix == ".parquet"])
    path.rename(wrong)
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read_predictions(wrong)


def test_without_pyarrow(path, monkeypatch):
    path.touch()
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    for action in (lambda: read_predictions(path), lambda: write_predictions(path, [0], [[0.5, 0.5]])):
        with pytest.raises(ImportError, match=r"pip install 'polycal\[arrow\]'"):
            action()
    assert list(path.parent.iterdir()) == [path]


ENCRYPTED = """
import base64, sys
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.parquet.encryption as pe

class Keys(pe.KmsClient):
    def wrap_key(self, key, name):
        return base64.b64encode(key)

    def unwrap_key(self, key, name):
        return base64.b64decode(key)

config = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": ["a"]}, plaintext_footer=True)
factory = pe.CryptoFactory(lambda config: Keys())
properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
table = pa.table({"a": [0.2, 0.3], "b": [0.8, 0.7], "label": ["a", "b"]})
with pq.ParquetWriter(sys.argv[1], table.schema, encryption_properties=properties) as writer:
    writer.write_table(table)
"""


@pytest.mark.parametrize("options", [[], ["--memory", "1GiB"]])
def test_metadata_that_cannot_be_read_do_not_end_the_process(tmp_path, options):
    pytest.importorskip("pyarrow.parquet.encryption")
    path = tmp_path / "a.parquet"
    # Its columns have no metadata without the key: PyArrow, asked for them, ends the process.
    subprocess.run([sys.executable, "-c", ENCRYPTED, str(path)], check=True)
    command = [sys.executable, "-m", "polycal", "audit", str(path), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"{path}: cannot be read as Parquet" in done.stderr
