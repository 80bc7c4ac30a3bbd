"""Lists of classes in Parquet files: round trips, chunks within memory, and errors that name file and row."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.reference_lists import ragged

from polycal.io import read_predictions
from polycal.io.chunks import open_predictions
from polycal.io.lists import ListFiles, open_lists, read_lists, write_lists
from polycal.io.parquet_batches import open_parquet
from polycal.listed import ListedSample, joined
from polycal.sparse import smooth_calibration_error, sparse_sample
from polycal.states.lists import TruncatedQuestionState

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def make(n=50, k=7, seed=0, **options):
    rng = np.random.default_rng(seed)
    return sparse_sample(rng.integers(0, k, n), ragged(rng.dirichlet(np.ones(k), n), rng), **options)


def write_table(path, metadata=None, **columns):
    table = pa.table({"classes": [[0, 2], [1]], "proba": [[0.6, 0.3], [0.9]], "label": [0, 1], **columns})
    parquet.write_table(table.replace_schema_metadata(metadata or {"n_classes": "4"}), path)


def assert_same(left, right):
    for name in ("indptr", "indices", "values", "rest", "labels"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-15)
    assert (left.n_classes, left.class_names) == (right.n_classes, right.class_names)


@pytest.mark.parametrize("names", [None, list("abcdefg")])
def test_what_is_written_is_read(tmp_path, names):
    sample = make(class_names=names, sample_weight=np.arange(50.0))
    write_lists(tmp_path / "top.parquet", sample)
    again = read_lists(tmp_path / "top.parquet")
    assert_same(again, sample)
    np.testing.assert_array_equal(again.sample_weight, sample.sample_weight)
    assert read_lists(tmp_path / "top.parquet", remainder="class").n_classes == 8


def test_lists_are_predictions(tmp_path, monkeypatch):
    sample = make(class_names=list("abcdefg"))
    write_lists(tmp_path / "top.parquet", sample)
    again = read_predictions(tmp_path / "top.parquet")
    assert isinstance(again, ListedSample)
    assert_same(again, sample)
    assert read_predictions(tmp_path / "top.parquet", remainder="class").n_classes == 8
    monkeypatch.setattr(ListFiles, "_chunk_rows", lambda self, file: 16)
    files = open_predictions(tmp_path, remainder="anywhere")
    assert isinstance(files, ListFiles)
    in_order = [chunk.sample for chunk in files]
    made = [make() for make in files.unread_chunks(2)]
    assert [part.n_samples for part in in_order] == [16, 16, 16, 2]
    assert sum(chunk.sample.n_samples for chunk in made) == 50
    assert {chunk.sample.remainder for chunk in made} == {"anywhere"}
    assert_same(joined(in_order), joined([chunk.sample for chunk in made]))


def test_parts_are_marked(tmp_path):
    write_table(tmp_path / "a.parquet", evaluation=[True, False])
    assert read_lists(tmp_path, part="evaluation").labels.tolist() == [0]
    assert read_predictions(tmp_path / "a.parquet", part="calibration").labels.tolist() == [1]
    write_table(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet.*does not mark its parts"):
        read_lists(tmp_path / "b.parquet", part="evaluation")


def test_files_are_read_in_chunks_that_fit(tmp_path, monkeypatch):
    parts = [make(seed=1), make(seed=2)]
    for name, part in zip("ab", parts, strict=True):
        write_lists(tmp_path / f"{name}.parquet", part)
    monkeypatch.setattr(ListFiles, "_chunk_rows", lambda self, file: 8)
    files = open_lists(tmp_path)
    chunks = list(files)
    assert repr(files) == "ListFiles(2 files, n_classes=7)"
    assert max(chunk.sample.n_samples for chunk in chunks) <= 8
    assert len({row for chunk in chunks for row in chunk.rows.tolist()}) == 100
    whole = read_lists(tmp_path)
    assert whole.n_samples == 100
    state = TruncatedQuestionState([0, 1])
    for chunk in chunks:
        state.absorb(chunk.sample, chunk.rows)
    exact = smooth_calibration_error(whole.labels, whole.proba, subset=[0, 1])
    assert state.finish().value == pytest.approx(exact.value, abs=1e-4)


def test_chunks_shrink_with_the_memory(tmp_path):
    write_lists(tmp_path / "top.parquet", make())
    with open_parquet(tmp_path / "top.parquet") as file:
        small = open_lists(tmp_path, memory="512MiB")._chunk_rows(file)
        large = open_lists(tmp_path, memory="2GiB")._chunk_rows(file)
    assert 1 < small < large / 4


def test_the_number_of_classes_may_be_given(tmp_path):
    write_table(tmp_path / "a.parquet", {"other": "1"})
    with pytest.raises(ValueError, match=r"a\.parquet: does not say how many classes"):
        open_lists(tmp_path)
    assert read_lists(tmp_path, n_classes=9).n_classes == 9
    with pytest.raises(ValueError, match=r"a\.parquet.*row 0 lists class 2, outside 0\.\.1"):
        read_lists(tmp_path, n_classes=2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"proba": [[0.6], [0.9]]}, "row 0 lists 2 classes but 1 probabilities"),
        ({"proba": [[0.6, 0.3], [None]]}, "row 1, column 'proba' holds a null"),
        ({"proba": [None, [0.9]]}, "row 0, column 'proba' holds a null"),
        ({"classes": [[0, None], [1]]}, "row 0, column 'classes' holds a null"),
        ({"proba": [[0.6, 0.9], [0.9]]}, r"y_proba\[0\] sums to 1\.5"),
        ({"classes": [[2, 2], [1]]}, r"y_proba\[0\] lists class 2 twice"),
        ({"classes": [["a", "b"], ["a"]]}, "class indices"),
        ({"classes": [0, 1]}, "not lists"),
        ({"label": [0, 4]}, r"y_true\[1\] is outside"),
        ({"label": [0, None]}, "row 1, column 'label' holds a null"),
    ],
)
def test_bad_files_are_named(tmp_path, columns, message):
    write_table(tmp_path / "bad.parquet", **columns)
    with pytest.raises(ValueError, match=rf"(?s)bad\.parquet.*{message}"):
        read_lists(tmp_path / "bad.parquet")


def test_the_row_of_a_null_is_found_among_empty_lists(tmp_path):
    lists = {"classes": [[], [0], [], [1, 2]], "proba": [[], [0.9], [], [0.5, None]], "label": [0] * 4}
    table = pa.table(lists).replace_schema_metadata({"n_classes": "4"})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="row 3, column 'proba' holds a null"):
        read_lists(tmp_path)


def test_files_must_agree_on_the_number_of_classes(tmp_path):
    for name, metadata in (("a", {"n_classes": "50"}), ("b", {"other": "1"}), ("c", {"n_classes": "20"})):
        write_table(tmp_path / f"{name}.parquet", metadata)
    assert open_lists([tmp_path / "a.parquet", tmp_path / "b.parquet"]).n_classes == 50
    with pytest.raises(ValueError, match=r"c\.parquet: has 20 classes but the files before have 50"):
        open_lists(tmp_path)
    assert open_lists(tmp_path, n_classes=50).n_classes == 50


@pytest.mark.parametrize("junk", ["many", "1e3", "-4", "", b"\xff"])
def test_junk_in_the_metadata_is_named_by_its_file(tmp_path, junk):
    write_table(tmp_path / "a.parquet", {"n_classes": junk})
    with pytest.raises(ValueError, match=r"a\.parquet: its metadata say n_classes=.*, which is no number"):
        open_lists(tmp_path)
    assert open_lists(tmp_path, n_classes=4).n_classes == 4
    write_table(tmp_path / "a.parquet", {"class_names": "[1"})
    with pytest.raises(ValueError, match=r"a\.parquet: cannot be read as JSON"):
        open_lists(tmp_path)


def test_other_files_are_refused(tmp_path):
    parquet.write_table(pa.table({"label": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="no column 'classes'"):
        open_lists(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(ValueError, match=r"b\.parquet"):
        open_lists(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="empty"):
        open_lists([])
    names = sparse_sample([0], csr_array([[0.9, 0.1]]), class_names=["a", "b"])
    write_lists(tmp_path / "c.parquet", names)
    write_lists(tmp_path / "d.parquet", sparse_sample([0], csr_array([[0.9, 0.1]])))
    with pytest.raises(ValueError, match="other class names"):
        open_lists([tmp_path / "c.parquet", tmp_path / "d.parquet"])
    empty = make().take(np.zeros(50, dtype=bool))
    write_lists(tmp_path / "e.parquet", empty)
    with pytest.raises(ValueError, match="no row"):
        read_lists(tmp_path / "e.parquet")
