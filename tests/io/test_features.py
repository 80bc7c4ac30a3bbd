"""Features in files of their own: read, joined by row or by key, and refused in one line where that cannot be right."""

import numpy as np
import pandas as pd
import pytest

import polycal as pc
from polycal.features import Features
from polycal.io.features import feature_table, read_columns

TABLE = pd.DataFrame(
    {
        "id": ["a", "b", "c"],
        "sex": ["f", None, "m"],
        "age": [31.0, np.nan, 7.0],
        "day": pd.to_datetime(["2024-03-01", "2024-03-02", "2024-03-03"]),
    }
)


@pytest.fixture
def preds(tmp_path):
    path = tmp_path / "p.csv"
    pd.DataFrame({"cat": [0.9, 0.2, 0.5], "dog": [0.1, 0.8, 0.5], "label": ["cat", "dog", "cat"]}).assign(
        id=["c", "z", "a"]
    ).to_csv(path, index=False)
    return path


def written(folder, suffix):
    path = folder / f"features{suffix}"
    match suffix:
        case ".parquet":
            TABLE.to_parquet(path)
        case ".feather":
            TABLE.to_feather(path)
        case ".npz":
            np.savez(
                path,
                age=TABLE["age"],
                id=TABLE["id"].to_numpy(str),
                day=["2024-03-01", "2024-03-02", "2024-03-03"],
                sex=["f", "", "m"],
            )
        case _:
            TABLE.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet", ".feather", ".npz"])
def test_every_format_gives_the_same_columns(tmp_path, suffix):
    table = feature_table(written(tmp_path, suffix), "id", ["sex", "age", "day"])
    expected = feature_table(TABLE, "id")
    for name in expected.names:
        (column, values), (own, found) = expected.features.column(name), table.features.column(name)
        assert column == own
        np.testing.assert_array_equal(values, found)


def test_rows_are_found_by_their_keys(preds):
    files = pc.open_predictions(preds, features=TABLE, key="id")
    (chunk,) = files
    assert files.sliced_by == chunk.sample.features.names == ("sex", "age", "day")
    np.testing.assert_array_equal(chunk.sample.features.column("age")[1], [7.0, np.nan, 31.0])


def test_rows_are_joined_in_order(preds):
    files = pc.open_predictions(preds, columns=["id"], features={"age": [1.0, 2.0, 3.0]})
    (chunk,) = files
    assert files.sliced_by == chunk.sample.features.names == ("id", "age")
    np.testing.assert_array_equal(chunk.sample.features.column("age")[1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("features", "key", "message"),
    [
        (
            {"age": [1.0]},
            None,
            "features has 1 rows but the predictions have 3; give one for each, or pass key=",
        ),
        ({"id": ["a", "a"], "age": [1, 2]}, "id", "'id' 'a' in two rows"),
        ({"id": ["a", None], "age": [1, 2]}, "id", "no 'id' in row 1"),
        ({"id": ["x"], "age": [1]}, "id", "none of the values of 'id' is in the features, such as 'c'"),
        ({"id": ["x"]}, "id", "none of the columns asked for"),
    ],
)
def test_what_cannot_be_joined_is_refused(preds, features, key, message):
    with pytest.raises(ValueError, match=message):
        list(pc.open_predictions(preds, drop=[] if key else ["id"], features=features, key=key))


def test_several_files_need_a_key(preds, tmp_path):
    other = tmp_path / "q.csv"
    other.write_text(preds.read_text())
    with pytest.raises(ValueError, match="all rows of one file"):
        pc.open_predictions([preds, other], drop=["id"], features={"age": [1.0] * 6})


def test_files_that_hold_no_columns_are_refused(tmp_path):
    (tmp_path / "f.csv").write_text("a,b\n1,2\n1\n")
    with pytest.raises(ValueError, match=r"f\.csv: row 1 has 1 cells for 2 columns"):
        read_columns(tmp_path / "f.csv")
    (tmp_path / "f.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read_columns(tmp_path / "f.parquet")
    (tmp_path / "f.txt").write_text("")
    with pytest.raises(ValueError, match="features are read from"):
        read_columns(tmp_path / "f.txt")


def test_an_archive_names_the_columns_of_its_features(tmp_path):
    path = tmp_path / "p.npz"
    table = np.array([[1, 5], [2, 6], [3, 7]])
    arrays = {"proba": np.full((3, 2), 0.5), "labels": [0, 1, 0], "features": table}
    np.savez(path, feature_names=np.array(["sex", "age"]), **arrays)
    (chunk,) = pc.open_predictions(path, columns=["age"])
    assert isinstance(chunk.sample.features, Features)
    np.testing.assert_array_equal(chunk.sample.features.values[:, 0], [5, 6, 7])
    np.savez(path, feature_names=np.array(["sex"]), **arrays)
    with pytest.raises(ValueError, match="'features' has shape"):
        list(pc.open_predictions(path, columns=["age"]))


def test_the_row_numbers_of_pandas_are_no_feature(tmp_path):
    path = tmp_path / "shuffled.parquet"
    pd.DataFrame({"sex": ["f", "m", "f"]}, index=[2, 0, 1]).to_parquet(path)
    assert feature_table(path).names == ("sex",)
