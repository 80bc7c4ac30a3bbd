"""Features at the gate: every container gives the same table, and what is wrong is said in one line."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from polycal._validation import check_features, check_masks, check_sample
from polycal.families._slice_bins import column_bins
from polycal.features import Features, joined_features

TABLE = pd.DataFrame(
    {
        "number": [1.5, 2.0, None],
        "text": ["x", None, "y"],
        "truth": [True, False, True],
        "day": pd.to_datetime(["2024-01-01", None, "2024-03-01"]),
        "category": pd.Categorical(["u", "v", None]),
        "whole": pd.array([1, None, 3], dtype="Int64"),
        "gap": pd.array([True, None, False], dtype="boolean"),
    }
)
KINDS = ["number", "category", "boolean", "date", "category", "number", "boolean"]


@pytest.mark.parametrize(
    "table",
    [TABLE, pl.from_pandas(TABLE), pa.Table.from_pandas(TABLE), {c: TABLE[c] for c in TABLE}],
    ids=["pandas", "polars", "arrow", "mapping"],
)
def test_every_container_gives_the_same_table(table):
    features = check_features(table, 3)
    assert [column.kind for column in features.columns] == KINDS
    assert features.names == tuple(TABLE.columns)
    day = dt.datetime(2024, 3, 1, tzinfo=dt.UTC).timestamp()
    expected = [
        [1.5, 0, 1, 1704067200, 0, 1, 1],
        [2, np.nan, 0, np.nan, 1, np.nan, np.nan],
        [np.nan, 1, 1, day, np.nan, 3, 0],
    ]
    np.testing.assert_array_equal(features.values, expected)
    assert features.columns[3].words(day) == "2024-03-01"


def test_arrays_have_names_of_their_own_or_given_ones():
    assert check_features(np.zeros((2, 2)), 2).names == ("x0", "x1")
    mixed = np.array([[1, "a"], [None, "b"]], dtype=object)
    features = check_features(mixed, 2, ["p", "q"])
    assert [(c.name, c.kind) for c in features.columns] == [("p", "number"), ("q", "category")]
    assert np.isnan(features.values[1, 0])


@pytest.mark.parametrize(
    ("features", "names", "message"),
    [
        ({"a": [1, 2, 3]}, None, "feature 'a' has 3 entries but y_proba has 2 rows"),
        (np.zeros((2, 2)), ["a"], "feature_names has 1 names for 2 columns"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), None, "two columns of the name 'a'"),
        ({"a": [1.0, np.inf]}, None, "'a' is infinite in row 1"),
        ({}, None, "features has no column"),
        (pl.DataFrame({"a": [[1], [2]]}), None, "'a' holds List"),
        (np.zeros((2, 1), dtype=complex), None, "'x0' holds complex128"),
        (TABLE[:2], ["a"], "drop feature_names"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(features, names, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_features(features, 2, names)


def test_columns_may_be_called_by_numbers():
    table = check_features(pd.DataFrame([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]), 3)
    assert table.names == ("0", "1")
    np.testing.assert_array_equal(table.values[:, 1], [5.0, 6.0, 7.0])


def test_rows_that_are_not_there_yet_are_refused():
    with pytest.raises(TypeError, match=r"give features.collect\(\)"):
        check_features(pl.LazyFrame({"a": [1]}), 1)


def test_truth_values_written_as_text_are_truth_values():
    table = check_features(
        {"flag": ["True", "false", None, "", "TRUE"], "word": ["true", "no", "a", "b", "c"]}, 5
    )
    assert [column.kind for column in table.columns] == ["boolean", "category"]
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, np.nan, np.nan, 1])


def test_masks_must_be_true_or_false_for_each_row():
    assert check_masks({"new": [True, False]}, 2).columns[0].kind == "boolean"
    with pytest.raises(ValueError, match=r"slices\['new'\] has no row"):
        check_masks({"new": [False, False]}, 2)
    with pytest.raises(ValueError, match="must be true or false for each of the 2 rows"):
        check_masks({"new": [1, 0]}, 2)


def test_features_go_where_the_rows_go():
    sample = check_sample([0, 1, 1], [0.2, 0.6, 0.7], features={"a": ["x", "y", "z"], "b": [1, 2, 3]})
    part = sample.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.features.values, [[2, 3], [0, 1]])
    assert part.take(slice(1, 2)).features.n_rows == 1


def test_parts_with_other_categories_join_by_name():
    one = check_features({"a": ["x", "y"]}, 2)
    other = check_features({"a": ["z", None, "x"]}, 3)
    joined = joined_features([one, other])
    names = [None if np.isnan(v) else joined.columns[0].words(v) for v in joined.values[:, 0]]
    assert names == ["x", "y", "z", None, "x"]
    with pytest.raises(ValueError, match="holds numbers in some rows"):
        joined_features([one, check_features({"a": [1, 2]}, 2)])
    with pytest.raises(ValueError, match="others have none"):
        joined_features([one, None])


@pytest.mark.parametrize("known", [[1.5, 2.0], ["a", "b"], [True, False], ["2024-01-01", "2024-01-02"]])
@pytest.mark.parametrize("nothing", [[None, None], [np.nan, np.nan], ["", ""]])
def test_rows_without_any_value_go_with_those_of_any_kind(known, nothing):
    full, empty = (check_features({"x": column}, 2) for column in (known, nothing))
    for parts in ([full, empty], [empty, full]):
        joined = joined_features(parts)
        assert joined.columns == full.columns
        assert np.isnan(joined.values).sum() == 2
    np.testing.assert_array_equal(empty.recoded(full.columns).values, np.full((2, 1), np.nan))
    (condition, *_) = column_bins(full, "x", 1).conditions
    assert not condition.rows(empty).any()


def test_a_column_that_is_missing_is_named():
    features = Features(np.zeros((1, 1)), check_features({"age": [1]}, 1).columns)
    with pytest.raises(ValueError, match="no column 'sex'; there are age"):
        features.column("sex")
