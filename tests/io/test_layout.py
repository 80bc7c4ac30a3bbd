"""Columns and arrays of files by their role: the same words for every format."""

import gzip
from importlib.util import find_spec

import numpy as np
import pytest

import polycal as pc
from polycal.distributed._partitions import partitions_of
from polycal.io.layout import Layout, sort_columns

PROBA = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3]])
LABELS = np.array([0, 1, 2, 1])
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0])
AGE = np.array([30.0, np.nan, 51.5, 7.0])
TOWN = np.array(["Ulm", "Bonn", "Ulm", "Köln"], dtype=object)
NAMES = ("cat", "dog", "cow")
# The same rows with columns of other names, and more of them, in every format.
FORMATS = ("csv", "csv.gz", "tsv", "parquet", "feather", "npz", "npy")


def table():
    frame = {name: PROBA[:, j] for j, name in enumerate(NAMES)}
    frame |= {
        "truth": np.array(NAMES)[LABELS],
        "w": WEIGHT,
        "age": AGE,
        "town": TOWN,
        "id": np.arange(4) + 17,
    }
    return frame


def write(path):
    if path.suffix == ".npz":
        np.savez(
            path, proba=PROBA, truth=LABELS, w=WEIGHT, age=AGE, town=TOWN.astype(str), id=np.arange(4) + 17
        )
    elif path.suffix == ".npy":
        np.save(path, PROBA)
        for name, array in {"truth": LABELS, "w": WEIGHT, "age": AGE, "town": TOWN.astype(str)}.items():
            np.save(path.with_name(f"{path.stem}.{name}.npy"), array)
    elif path.suffix in {".parquet", ".feather"}:
        pa = pytest.importorskip("pyarrow")
        frame = pa.table({name: pa.array(list(column), from_pandas=True) for name, column in table().items()})
        if path.suffix == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(frame, path)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(frame, path)
    else:
        mark = "\t" if ".tsv" in path.name else ","
        lines = [
            mark.join(table()),
            *(mark.join(map(str, row)) for row in zip(*table().values(), strict=True)),
        ]
        text = "\n".join(lines).replace("nan", "") + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    return write(tmp_path / f"preds.{request.param}")


def options(path):
    arrays = path.suffix in {".npz", ".npy"}
    drop = {".npz": ["id", "age", "town"], ".npy": []}.get(path.suffix, [])
    return {"label": "truth", "weight": "w", "classes": NAMES, "drop": drop} if arrays else OF_TABLES


OF_TABLES = {"label": "truth", "weight": "w", "drop": ["id", "age", "town"]}


def agrees(sample):
    np.testing.assert_allclose(sample.proba, PROBA, atol=1e-7)
    np.testing.assert_array_equal(sample.labels, LABELS)
    np.testing.assert_array_equal(sample.sample_weight, WEIGHT)
    assert sample.class_names == NAMES


def test_the_same_words_read_the_same_rows_from_every_format(path):
    agrees(pc.read_predictions(path, **options(path)))
    files = pc.open_predictions(path, **options(path))
    agrees(next(iter(files)).sample)
    if path.suffix not in {".npz", ".npy"}:
        agrees(pc.read_predictions(path, label="truth", weight="w", classes=["c*t", "d*", "cow"]))


def test_a_file_whose_name_tells_nothing(path):
    if path.suffix == ".npy":
        return
    named = path.with_name("data")
    path.rename(named)
    said = path.name.removeprefix("preds.")
    agrees(pc.read_predictions(named, format=said, **options(path)))
    with pytest.raises(ValueError, match=r"is not one of .*pass format="):
        pc.read_predictions(named)


@pytest.mark.parametrize("memory", ["512MiB"])
def test_named_columns_are_read_along_in_chunks(path, memory):
    keep = [] if path.suffix == ".npy" else ["id"]
    asked = options(path) | {"drop": keep, "columns": ["age", "town"]}
    chunk = next(iter(pc.open_predictions(path, memory=memory, **asked)))
    np.testing.assert_array_equal(chunk.columns["age"], AGE)
    assert chunk.columns["town"].dtype == object
    assert chunk.columns["town"].tolist() == TOWN.tolist()


def test_columns_are_cut_as_rows_are(tmp_path):
    lines = [
        "cat,dog,label,evaluation,town",
        "0.7,0.3,cat,true,Ulm",
        "0.2,0.8,dog,false,Bonn",
        ".1,.9,dog,true,",
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    files = pc.open_predictions(tmp_path / "a.csv", part="evaluation", columns=["town"])
    assert next(iter(files)).columns["town"].tolist() == ["Ulm", ""]


def test_audits_take_the_same_words(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 400)
    truth = [rng.choice(3, p=row) for row in proba]
    lines = [
        f"{i},{a:.3f},{b:.3f},{c:.3f},{t}" for i, ((a, b, c), t) in enumerate(zip(proba, truth, strict=True))
    ]
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,z,truth\n" + "\n".join(lines))
    asked = {"label": "truth", "drop": ["id"], "normalize": True}
    audit = pc.audit_stream(path, **asked)
    again = pc.distributed.audit(path, **asked) if find_spec("dask") else audit
    assert (audit.n_samples, audit.n_classes) == (again.n_samples, again.n_classes) == (400, 3)
    with pytest.raises(ValueError, match=r"layout=.* were opened with"):
        pc.audit_stream(pc.open_predictions(path, **asked), label="y")


def test_dask_data_frames_have_the_same_roles():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(table()), npartitions=2)
    layout = Layout("truth", "w", None, ["id"], ["age", "town"])
    parts = partitions_of(frame, "1GiB", "all", None, layout=layout)
    assert parts.files.class_names == NAMES
    chunks = [chunk for part in parts.delayed for chunk in part.compute().chunks(parts.files, 0)]
    np.testing.assert_array_equal(np.concatenate([c.columns["age"] for c in chunks]), AGE)
    assert [t for c in chunks for t in c.columns["town"]] == TOWN.tolist()
    np.testing.assert_array_equal(np.concatenate([c.sample.sample_weight for c in chunks]), WEIGHT)


@pytest.mark.parametrize(
    ("text", "asked", "names", "labels"),
    [
        ("p,label\n.2,0\n.7,1\n", {}, None, [0, 1]),
        ("spam,label\n.2,not spam\n.7,spam\n", {}, ("not spam", "spam"), [0, 1]),
        ("spam,label\n.2,false\n.7,true\n", {}, ("not spam", "spam"), [0, 1]),
        ("spam,label\n.2,ham\n.7,spam\n", {"classes": ["ham", "spam"]}, ("ham", "spam"), [0, 1]),
        ("spam,label\n.2,ham\n.7,spam\n", {"classes": ["spam", "ham"]}, ("ham", "spam"), [0, 1]),
        ("score,label\n.2,ham\n.7,spam\n", {"classes": ["ham", "spam"]}, ("ham", "spam"), [0, 1]),
        (
            "id,score,y\nx,.2,ham\nz,.7,spam\n",
            {"classes": ["ham", "spam"], "label": "y", "drop": ["id"]},
            ("ham", "spam"),
            [0, 1],
        ),
    ],
)
def test_one_column_is_enough_for_two_classes(tmp_path, text, asked, names, labels):
    (tmp_path / "a.csv").write_text(text)
    sample = pc.read_predictions(tmp_path / "a.csv", **asked)
    np.testing.assert_allclose(sample.proba, [[0.8, 0.2], [0.3, 0.7]])
    assert sample.class_names == names
    assert sample.labels.tolist() == labels


def test_the_index_of_pandas_is_no_class(tmp_path):
    (tmp_path / "a.csv").write_text(",cat,dog,label\n0,.5,.5,cat\n1,.5,.5,dog\n")
    sample = pc.read_predictions(tmp_path / "a.csv")
    assert (sample.class_names, sample.labels.tolist()) == (("cat", "dog"), [0, 1])


@pytest.mark.parametrize(
    ("header", "labels", "found"),
    [
        ("p_dot,p_dog", "dog,dot", [1, 0]),
        ("proba: dot,proba: dog", "dog,dot", [1, 0]),
        ("p_1,p_2", "0,1", [0, 1]),
        ("p_dot,p_dog", "p_dog,p_dot", [1, 0]),
    ],
)
def test_columns_may_have_a_prefix_that_labels_do_not_have(tmp_path, header, labels, found):
    rows = "".join(f".5,.5,{label}\n" for label in labels.split(","))
    (tmp_path / "a.csv").write_text(f"{header},label\n{rows}")
    assert pc.read_predictions(tmp_path / "a.csv").labels.tolist() == found


def test_labels_of_one_column_that_have_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("y_prob,label\n.7,yes\n.2,no\n")
    with pytest.raises(ValueError, match=r"use classes=\['no', 'yes'\]; the column .* second"):
        pc.read_predictions(tmp_path / "a.csv")
    assert pc.read_predictions(tmp_path / "a.csv", classes=["no", "yes"]).labels.tolist() == [1, 0]


def test_rounded_probabilities(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,label\n.333,.333,.333,0\n.101,.2,.7,2\n")
    with pytest.raises(ValueError, match=r"does not sum to 1.*Columns taken for classes: 'a', 'b', 'c'"):
        pc.read_predictions(tmp_path / "a.csv")
    sample = pc.read_predictions(tmp_path / "a.csv", normalize=True)
    np.testing.assert_allclose(sample.proba, [[1 / 3] * 3, np.array([0.101, 0.2, 0.7]) / 1.001])
    (tmp_path / "b.csv").write_text("id,a,b,label\n17,.5,.5,0\n")
    with pytest.raises(
        ValueError, match=r"its sum is 18.*from 0.85 to 1.15.*taken for classes: 'id', 'a', 'b'"
    ):
        pc.read_predictions(tmp_path / "b.csv", normalize=True)


@pytest.mark.parametrize("suffix", ["csv", "npz", "npy", "parquet"])
def test_logits_are_logits_in_every_format(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    logits = np.log(PROBA) + 3.0
    if suffix == "npz":
        np.savez(path, proba=logits, labels=LABELS)
    elif suffix == "npy":
        np.save(path, logits)
        np.save(tmp_path / "a.labels.npy", LABELS)
    elif suffix == "csv":
        np.savetxt(path, np.column_stack([logits, LABELS]), delimiter=",", header="0,1,2,label", comments="")
    else:
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pa.table({str(j): logits[:, j] for j in range(3)} | {"label": LABELS}), path
        )
    np.testing.assert_allclose(pc.read_predictions(path, from_logits=True).proba, PROBA)
    chunk = next(iter(pc.open_predictions(path, from_logits=True)))
    np.testing.assert_allclose(chunk.sample.proba, PROBA)


def test_arrays_without_a_role_are_named(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, proba=PROBA, labels=LABELS, weights=WEIGHT, classes=np.array(NAMES))
    for read in (pc.read_predictions, pc.open_predictions):
        with pytest.warns(pc.CalibrationWarning, match=r"arrays not used: 'weights', 'classes' .*weight="):
            read(path)
    sample = pc.read_predictions(path, weight="weights", drop=["classes"])
    np.testing.assert_array_equal(sample.sample_weight, WEIGHT)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"label": "lable"}, "there is no column 'lable' for label; did you mean 'label'"),
        ({"weight": "w"}, "there is no column 'w' for weight; there are 'cat'"),
        ({"classes": ["cat", "dgo", "cow"]}, "no column 'dgo' for classes; did you mean 'dog'"),
        ({"classes": ["cat", "dgo"]}, "no column 'dgo' for classes; did you mean 'dog'"),
        ({"drop": ["idd"]}, "no column 'idd' for drop; did you mean 'id'"),
        ({"drop": ["id"], "classes": ["id", "cat"]}, "'id' is given two roles"),
        ({"from_logits": True, "normalize": True}, "exclude each other"),
        ({"format": "xls"}, "format='xls' is not one of npz, npy, csv"),
        ({"classes": []}, "classes is empty"),
        ({}, r"column 'id' is 'a1', which is not a number.*label='id' or drop=\['id'\]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, asked, message):
    (tmp_path / "a.csv").write_text("cat,dog,id,label\n.5,.5,a1,cat\n")
    with pytest.raises(ValueError, match=message):
        pc.read_predictions(tmp_path / "a.csv", **asked)


def test_a_key_that_is_no_class_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"cat": 0.5, "dog": 0.5, "label": "cat", "town": "Ulm"}\n')
    with pytest.raises(ValueError, match=r"'town' of row 0 is 'Ulm'.*not a number.*drop=\['town'\]"):
        pc.read_predictions(tmp_path / "a.jsonl")


@pytest.mark.parametrize("asked", [{"label": 3}, {"classes": [1, 2]}, {"drop": 5}, {"from_logits": "yes"}])
def test_roles_are_names(asked):
    with pytest.raises(TypeError, match=next(iter(asked))):
        Layout(**asked)


def test_special_names_are_no_classes_unless_said_so():
    names = ["label", "truth", "a", "b", "weight"]
    columns = sort_columns(names, Layout(label="truth"))
    assert columns.data == ("a", "b")
    assert columns.unused == ("label",)
    assert sort_columns(names, Layout(label="truth", classes=["label", "a"])).data == ("label", "a")


def test_gzip_that_unpacks_to_too_much(tmp_path):
    text = b"a,b,label\n" + b".5,.5,a\n" * 400_000
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(ValueError, match="claims to unpack to"):
        pc.read_predictions(path, max_bytes=100_000)
    path.write_bytes(gzip.compress(text)[:-20])
    with pytest.raises(ValueError, match=r"a.csv.gz: .*truncated or corrupt"):
        pc.read_predictions(path)


def test_written_and_read_again(tmp_path):
    for suffix in ("tsv", "csv.gz", "tsv.gz"):
        path = tmp_path / f"a.{suffix}"
        pc.write_predictions(path, LABELS, PROBA, sample_weight=WEIGHT, class_names=NAMES)
        agrees(pc.read_predictions(path))
        first = path.read_bytes()
        pc.write_predictions(path, LABELS, PROBA, sample_weight=WEIGHT, class_names=NAMES)
        assert path.read_bytes() == first


def test_the_same_rows_in_two_formats_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    proba, other = rng.dirichlet(np.ones(3), (2, 40))
    for name, rows in {"a.csv": proba, "b.npz": proba, "c.npz": other}.items():
        pc.write_predictions(tmp_path / name, LABELS[np.arange(40) % 4], rows)
    with pytest.raises(ValueError, match=r"a.csv and .*b.npz hold the same rows in two formats"):
        pc.open_predictions(tmp_path)
    (tmp_path / "a.csv").unlink()
    pc.write_predictions(tmp_path / "d.csv", LABELS[np.arange(40) % 4], proba[::-1])
    assert sum(chunk.sample.n_samples for chunk in pc.open_predictions(tmp_path)) == 120
