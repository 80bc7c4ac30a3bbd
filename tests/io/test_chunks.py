"""Files, folders and patterns of files, read chunk by chunk."""

import json

import numpy as np
import pytest

import polycal as pc
from polycal.io.chunks import PredictionFiles, open_predictions, parse_memory

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def gather(files):
    """All rows of all chunks, in order."""
    chunks = list(files)
    assert len({row for chunk in chunks for row in chunk.rows.tolist()}) == sum(
        chunk.sample.n_samples for chunk in chunks
    )
    weights = [chunk.sample.sample_weight for chunk in chunks]
    return (
        np.concatenate([chunk.sample.labels for chunk in chunks]),
        np.concatenate([chunk.sample.proba for chunk in chunks]),
        None if weights[0] is None else np.concatenate(weights),
    )


def small_chunks(files, monkeypatch, n_rows=7):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", n_rows)
    return files


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz", ".csv", ".feather"])
def test_chunks_are_the_file(suffix, tmp_path, predictions, monkeypatch):
    path = tmp_path / f"all{suffix}"
    pc.write_predictions(
        path,
        predictions.labels,
        predictions.proba,
        sample_weight=predictions.weight,
        class_names=predictions.names,
    )
    files = small_chunks(open_predictions(path), monkeypatch)
    assert (files.n_classes, files.class_names) == (4, predictions.names)
    for _ in range(2):
        labels, proba, weight = gather(files)
        np.testing.assert_array_equal(labels, predictions.labels)
        np.testing.assert_allclose(proba, predictions.proba, atol=1e-15)
        np.testing.assert_allclose(weight, predictions.weight)


def test_folders_patterns_and_lists(tmp_path, make_predictions):
    parts = [make_predictions(seed=seed) for seed in range(3)]
    (tmp_path / "deep").mkdir()
    places = [tmp_path / "0.parquet", tmp_path / "1.npy", tmp_path / "deep" / "2.parquet"]
    for place, part in zip(places, parts, strict=True):
        pc.write_predictions(place, part.labels, part.proba, class_names=part.names)
    (tmp_path / "notes.txt").write_text("no predictions")
    (tmp_path / "_hidden.parquet").write_bytes(b"no predictions either")
    expected = np.concatenate([part.proba for part in parts])
    np.testing.assert_array_equal(gather(open_predictions(tmp_path))[1], expected)
    np.testing.assert_array_equal(gather(open_predictions(places))[1], expected)
    assert open_predictions(tmp_path / "**" / "[0-9].parquet").paths == (places[0], places[2])
    with pytest.raises(FileNotFoundError, match="no file has such a name"):
        open_predictions(tmp_path / "*.feather")
    with pytest.raises(FileNotFoundError, match="did you mean"):
        open_predictions(tmp_path / "0.parqet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no file of predictions"):
        open_predictions(tmp_path / "empty")


def test_classes_called_by_numbers_are_meant_by_name(tmp_path, monkeypatch):
    # Labels 0 and 1 might be positions; in a file without the label 2 nobody could tell.
    columns = {"label": [1, 1, 1, 0, 2], "1": [0.5] * 5, "0": [0.25] * 5, "x": [0.25] * 5}
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table(columns), path)
    files = small_chunks(open_predictions(path), monkeypatch, n_rows=2)
    for read in (gather, lambda files: pc.read_predictions(*files.paths)):
        with pytest.raises(ValueError, match=r"odd\.parquet: label\[4\] is 2, which is not a class name"):
            read(files)
    pq.write_table(pa.table({**columns, "label": list("1110x")}), path)
    np.testing.assert_array_equal(gather(files)[0], [0, 0, 0, 1, 2])
    np.testing.assert_array_equal(pc.read_predictions(path).labels, [0, 0, 0, 1, 2])


def test_an_odd_label_is_named_by_its_row_in_the_file(tmp_path):
    columns = {"label": ["a"] * 800 + ["zzz"], "a": [0.5] * 801, "b": [0.5] * 801}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"label\[800\] is 'zzz'"):
        list(open_predictions(tmp_path))
    pq.write_table(pa.table({**columns, "label": [[0]] * 801}), tmp_path / "a.parquet")
    with pytest.raises(
        ValueError, match=r"a\.parquet: column 'label' holds list<.*>; give one value per row"
    ):
        list(open_predictions(tmp_path))


@pytest.mark.parametrize(
    "columns",
    [
        (("0", "1", "2"), ("2", "1", "0")),
        (("2", "1", "0"), ("0", "1", "2")),
        (("0", "1", "2"), ("a", "b", "c"), ("c", "b", "a")),
    ],
)
def test_classes_in_another_order_are_refused_wherever_names_first_appear(columns, tmp_path):
    for number, names in enumerate(columns):
        row = dict(zip(names, [[0.5], [0.25], [0.25]], strict=True))
        pq.write_table(pa.table({"label": [names[0]], **row}), tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match=rf"{len(columns) - 1}\.parquet: class 0 of the chunk is"):
        open_predictions(tmp_path)


def test_the_names_of_any_file_are_those_of_all(tmp_path):
    np.savez(tmp_path / "a.npz", proba=[[0.5, 0.5]], labels=[1])
    np.savez(tmp_path / "b.npz", proba=[[0.5, 0.5]], labels=["cat"], class_names=["cat", "dog"])
    files = open_predictions(tmp_path)
    assert files.class_names == ("cat", "dog")
    np.testing.assert_array_equal(gather(files)[0], [1, 0])


def test_parts_must_be_marked_by_booleans(tmp_path, predictions):
    marks = np.arange(predictions.labels.size) % 2
    np.savez(tmp_path / "a.npz", proba=predictions.proba, labels=predictions.labels, evaluation=marks)
    with pytest.raises(ValueError, match="evaluation must be one boolean per row"):
        list(open_predictions(tmp_path, part="evaluation"))


def test_probabilities_of_the_second_of_two_classes(tmp_path, monkeypatch):
    second = np.linspace(0, 1, 20)
    np.save(tmp_path / "a.npy", second)
    np.save(tmp_path / "a.labels.npy", np.arange(20) % 2)
    files = small_chunks(open_predictions(tmp_path), monkeypatch)
    assert files.n_classes == 2
    np.testing.assert_array_equal(gather(files)[1], np.stack([1 - second, second], axis=1))
    np.save(tmp_path / "a.npy", np.float64(0.5))
    with pytest.raises(
        ValueError, match=r"a\.npy: the probabilities must have shape \(n, k\); got shape \(\)"
    ):
        open_predictions(tmp_path)


def test_lists_and_parts(tmp_path, monkeypatch):
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 20).astype(np.float32)
    evaluation = np.arange(20) % 3 == 0
    schema = pa.schema(
        [("proba", pa.list_(pa.float32())), ("label", pa.string()), ("evaluation", pa.bool_())],
        metadata={"class_names": '["a", "b", "c"]'},
    )
    columns = [proba.tolist(), list("abcab" * 4), evaluation.tolist()]
    table = pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
    path = tmp_path / "lists.parquet"
    pq.write_table(table, path, row_group_size=8)
    for part in ("all", "evaluation", "calibration"):
        files = small_chunks(open_predictions(path, part=part), monkeypatch, n_rows=4)
        labels, rows, _ = gather(files)
        expected = pc.read_predictions(path, part=part)
        np.testing.assert_array_equal(labels, expected.labels)
        np.testing.assert_array_equal(rows, expected.proba)


def test_a_file_that_does_not_mark_parts_has_none(tmp_path, predictions):
    pc.write_predictions(tmp_path / "a.parquet", predictions.labels, predictions.proba)
    with pytest.raises(ValueError, match=r"a\.parquet.*does not mark its parts"):
        list(open_predictions(tmp_path, part="evaluation"))


def test_files_without_rows_are_passed_over(tmp_path, predictions):
    pq.write_table(
        pa.table({"label": pa.array([], pa.int64()), "0": pa.array([], pa.float64())}), tmp_path / "0.parquet"
    )
    with pytest.raises(ValueError, match="no row"):
        open_predictions(tmp_path)
    pc.write_predictions(tmp_path / "1.parquet", predictions.labels, predictions.proba)
    assert gather(open_predictions(tmp_path))[1].shape == predictions.proba.shape


def test_other_classes_are_named(tmp_path, make_predictions):
    part = make_predictions()
    pc.write_predictions(tmp_path / "0.parquet", part.labels, part.proba, class_names=part.names)
    names = [*part.names[:2], part.names[3], part.names[2]]
    pc.write_predictions(tmp_path / "1.parquet", part.labels, part.proba, class_names=names)
    with pytest.raises(ValueError, match=r"1\.parquet: class 2 of the chunk is 'class 3' but was 'émeu'"):
        open_predictions(tmp_path)
    few = make_predictions(n_classes=3)
    pc.write_predictions(tmp_path / "1.parquet", few.labels, few.proba, class_names=few.names)
    with pytest.raises(ValueError, match=r"1\.parquet: has 3 classes but the files before have 4"):
        open_predictions(tmp_path)


def test_a_corrupt_file_is_named(tmp_path, make_predictions):
    for number in range(3):
        part = make_predictions(n_samples=500, seed=number)
        pc.write_predictions(tmp_path / f"{number}.parquet", part.labels, part.proba)
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"1\.parquet: cannot be read as Parquet"):
        open_predictions(tmp_path)
    # A flipped byte within the pages of the last column.
    middle = len(whole) // 2
    (tmp_path / "1.parquet").write_bytes(whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :])
    with pytest.raises(ValueError, match=r"1\.parquet"):
        list(open_predictions(tmp_path))


def test_a_bad_row_is_named(tmp_path, monkeypatch):
    proba = np.full((20, 2), 0.5)
    proba[13] = 0.4
    columns = {"label": np.zeros(20, dtype=int), "a": proba[:, 0], "b": proba[:, 1]}
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    files = small_chunks(open_predictions(tmp_path), monkeypatch, n_rows=10)
    with pytest.raises(ValueError, match=r"bad\.parquet: rows from 10: y_proba\[3\] does not sum to 1"):
        list(files)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_as_many_labels_as_rows_are_needed(suffix, tmp_path, predictions, monkeypatch):
    pc.write_predictions(tmp_path / f"a{suffix}", predictions.labels, predictions.proba)
    labels = np.append(predictions.labels, 0)
    if suffix == ".npy":
        np.save(tmp_path / "a.labels.npy", labels)
    else:
        np.savez(tmp_path / "a.npz", proba=predictions.proba, labels=labels)
    with pytest.raises(ValueError, match=r"y_true has shape \(\d+,\) but y_proba has \d+ rows"):
        list(small_chunks(open_predictions(tmp_path), monkeypatch))


@pytest.mark.parametrize(
    "stored", [np.asfortranarray, *(lambda a, t=t: a.astype(t) for t in (">f8", "<f8", "<f4", ">f4", "<f2"))]
)
def test_arrays_of_any_order_of_axes_and_bytes(stored, tmp_path, predictions, monkeypatch):
    names = np.array([*predictions.names[:3], "long name"])
    np.save(tmp_path / "a.npy", stored(predictions.proba))
    np.save(tmp_path / "a.labels.npy", names[predictions.labels])
    (tmp_path / "a.class_names.json").write_text(json.dumps(names.tolist()))
    labels, proba, _ = gather(small_chunks(open_predictions(tmp_path / "a.npy"), monkeypatch))
    np.testing.assert_array_equal(labels, predictions.labels)
    np.testing.assert_allclose(proba, predictions.proba, atol=1e-3)


def test_an_array_that_is_cut_while_it_is_read_is_named(tmp_path, predictions, monkeypatch):
    pc.write_predictions(tmp_path / "a.npy", predictions.labels, predictions.proba)
    chunks = iter(small_chunks(open_predictions(tmp_path), monkeypatch))
    next(chunks)
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(200)
    with pytest.raises(ValueError, match=r"a\.npy: .*truncated or corrupt"):
        list(chunks)


@pytest.mark.parametrize("kinds", [("int8", "int8"), ("uint8", "float32"), ("uint64", "int64")])
def test_columns_of_whole_numbers_are_numbers(kinds, tmp_path):
    yes, no = (pa.array(numbers, kind) for numbers, kind in zip(([1, 0, 1], [0, 1, 0]), kinds, strict=True))
    pq.write_table(pa.table({"label": [0, 1, 0], "a": yes, "b": no}), tmp_path / "a.parquet")
    (chunk,) = open_predictions(tmp_path)
    np.testing.assert_array_equal(chunk.sample.proba, [[1, 0], [0, 1], [1, 0]])


def test_labels_are_needed(tmp_path, predictions):
    pc.write_predictions(tmp_path / "a.parquet", None, predictions.proba)
    with pytest.raises(ValueError, match="has no labels"):
        list(open_predictions(tmp_path))
    pq.write_table(pa.table({"label": [0, None], "a": [0.5, 0.5], "b": [0.5, 0.5]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'label' is null"):
        list(open_predictions(tmp_path))


def test_memory_as_text():
    assert parse_memory("1GiB") == 1 << 30
    assert parse_memory("1.5 GB") == 3 << 29
    assert parse_memory("600m") == 600 << 20
    assert parse_memory(1 << 30) == 1 << 30
    for bad in ("lots", "1MiB", 5, True, "1XB"):
        with pytest.raises(ValueError, match="memory must be"):
            parse_memory(bad)


def test_less_memory_gives_smaller_chunks(tmp_path, predictions):
    pc.write_predictions(tmp_path / "a.parquet", predictions.labels, predictions.proba)
    small, large = (open_predictions(tmp_path, memory=memory) for memory in ("512MiB", "8GiB"))
    wide = PredictionFiles(small.paths, 100_000, None, small.memory)
    assert 1 <= wide.chunk_rows < small.chunk_rows <= large.chunk_rows


def test_large_files_of_other_formats_are_refused(tmp_path, predictions, monkeypatch):
    path = tmp_path / "a.csv"
    pc.write_predictions(path, predictions.labels, predictions.proba)
    monkeypatch.setattr("polycal.io.reader._WHOLE_SHARE", 1 << 30)
    with pytest.raises(ValueError, match=r"a\.csv: \.csv files are read whole"):
        open_predictions(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".feather"])
def test_rows_are_counted_before_they_are_read(tmp_path, suffix):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 70)
    marks = None if suffix == ".npy" else rng.random(70) < 0.3
    for name, rows in (("a", slice(0, 50)), ("b", slice(50, 70))):
        evaluation = None if marks is None else marks[rows]
        pc.io.write_predictions(
            tmp_path / f"{name}{suffix}",
            rng.integers(0, 3, len(proba[rows])),
            proba[rows],
            evaluation=evaluation,
        )
    assert open_predictions(tmp_path).row_counts() == (50, 20)
    files = open_predictions(tmp_path, part="evaluation")
    if marks is None:
        with pytest.raises(ValueError, match=r"a\.npy: the file does not mark its parts"):
            files.row_counts()
        return
    counts = (int(marks[:50].sum()), int(marks[50:].sum()))
    assert files.row_counts() == counts
    assert open_predictions(tmp_path, part="calibration").row_counts() == (50 - counts[0], 20 - counts[1])
    assert sum(chunk.sample.n_samples for chunk in files) == sum(counts)


def test_counting_rows_reads_no_probabilities(tmp_path, monkeypatch):
    for share, suffix in ((0.3, ".npz"), (0.4, ".npy"), (0.5, ".parquet")):
        proba = np.tile((share, 1 - share), (1000, 1))
        pc.io.write_predictions(tmp_path / f"a{suffix}", np.zeros(1000, int), proba)
    files = open_predictions(tmp_path)

    def refuse(*args, **kwargs):
        raise AssertionError("rows are read")

    for name in (
        "polycal.io.npz.read_arrays",
        "polycal.io.npz.NpyFile._run",
        "polycal.io.parquet.read_table",
    ):
        monkeypatch.setattr(name, refuse)
    assert files.row_counts() == (1000, 1000, 1000)
