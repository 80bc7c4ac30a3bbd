import math

import numpy as np
import pytest

from benchmarks import ranking


def make_rows(values, column="log_loss"):
    """Rows from {(set, method): [value of each seed]}; None is a failure."""
    return [
        {
            "set": name,
            "method": method,
            "seed": seed,
            "status": "failed" if value is None else "ok",
            column: value,
        }
        for (name, method), seeds in values.items()
        for seed, value in enumerate(seeds)
    ]


def test_average_ranks_ties_and_wins():
    rows = make_rows(
        {
            ("s", "none"): [3.0, 3.0],
            ("s", "a"): [1.0, 3.0],
            ("s", "b"): [2.0, 2.0],
            ("t", "none"): [1.0, 1.0],
            ("t", "a"): [2.0, 2.0],
            ("t", "b"): [3.0, 3.0],
        }
    )
    found = {s.method: s for s in ranking.standings(rows, "log_loss")}
    assert [s.method for s in ranking.standings(rows, "log_loss")] == ["a", "none", "b"]
    assert (found["a"].rank, found["b"].rank, found["none"].rank) == (1.75, 2.25, 2.0)
    assert found["a"].rank_error == pytest.approx(np.std([1.5, 2.0], ddof=1) / math.sqrt(2))
    assert (found["a"].wins, found["b"].wins, found["none"].wins) == (1, 1, 1)
    assert (found["a"].worse_than_input, found["b"].worse_than_input) == (1, 1)


def test_more_accuracy_is_better():
    rows = make_rows({("s", "a"): [0.9], ("s", "b"): [0.8]}, "accuracy")
    assert [s.method for s in ranking.standings(rows, "accuracy")] == ["a", "b"]
    assert ranking.paired_differences(rows, "s", "accuracy")["b"][1] == pytest.approx(-0.1)


def test_below_zero_a_debiased_error_is_not_better():
    rows = make_rows(
        {("s", "a"): [-0.3], ("s", "b"): [-0.1], ("s", "c"): [0.1], ("s", "d"): [None]}, "canonical"
    )
    assert [s.rank for s in ranking.standings(rows, "canonical")] == [1.5, 1.5, 3.0, 4.0]


def test_a_failure_is_ranked_last_and_counted():
    rows = make_rows({("s", "a"): [1.0, None], ("s", "b"): [5.0, 5.0], ("s", "c"): [None, None]})
    found = {s.method: s for s in ranking.standings(rows, "log_loss")}
    assert (found["b"].rank, found["a"].rank, found["c"].rank) == (1.0, 2.5, 2.5)
    assert (found["a"].failures, found["b"].failures) == (1, 0)


def test_methods_that_were_not_tried_everywhere_are_named_and_not_ranked():
    rows = make_rows({("s", "a"): [1.0, 2.0], ("s", "b"): [1.0]})
    field = ranking.field_of(rows)
    assert (field.ranked, field.unranked, field.begun) == (("a",), ("b",), {})
    assert [s.method for s in ranking.standings(rows, "log_loss")] == ["a"]


def test_a_set_that_has_begun_does_not_count():
    whole = {(name, method): [1.0 + (method == "b"), 2.0] for name in "st" for method in "abc"}
    expected = ranking.standings(make_rows(whole), "log_loss")
    # One set with one method of three, and one more split of another set.
    rows = make_rows(whole | {("u", "c"): [1.0, 1.0], ("t", "b"): [2.0, 2.0, 2.0]})
    field = ranking.field_of(rows)
    assert (field.ranked, field.unranked) == (("a", "b", "c"), ())
    assert field.begun == {"t": (2,), "u": (0, 1)}
    assert field.sets == ["s", "t"]
    assert ranking.standings(rows, "log_loss") == expected
    assert ranking.ratios_to_input(rows, "log_loss", "a")["c"] == 1.0


def test_a_failure_is_a_try():
    rows = make_rows({("s", "a"): [1.0], ("s", "b"): [None], ("t", "a"): [None], ("t", "b"): [1.0]})
    assert ranking.field_of(rows).ranked == ("a", "b")


def test_nothing_is_ranked_where_no_method_was_run_everywhere():
    rows = make_rows({(name, method): [1.0] for name, method in ("sa", "sb", "tb", "tc", "uc", "ua")})
    assert ranking.field_of(rows).ranked == ()
    assert ranking.standings(rows, "log_loss") == []


@pytest.mark.parametrize("none", [None, [1.0], [1.0, None]], ids=["missing", "not everywhere", "failed"])
def test_without_the_input_nothing_is_said_to_be_better(none):
    values = {("s", method): [2.0, 2.0] for method in "abc"}
    rows = make_rows(values if none is None else {**values, ("s", "none"): none})
    assert {s.worse_than_input for s in ranking.standings(rows, "log_loss")} == {None}


def test_what_finished_nowhere_is_not_said_to_be_better():
    rows = make_rows({("s", "none"): [1.0], ("s", "a"): [2.0], ("s", "b"): [None]})
    found = {s.method: s.worse_than_input for s in ranking.standings(rows, "log_loss")}
    assert found == {"none": 0, "a": 1, "b": None}


def test_nothing_is_ranked_without_rows():
    assert ranking.standings([], "log_loss") == []


def test_paired_standard_errors_are_those_of_the_differences():
    first, second = [1.0, 2.0, 3.0], [1.5, 2.25, 3.25]
    rows = make_rows({("s", "a"): first, ("s", "b"): second, ("s", "c"): [None, 9.0, 9.0]})
    found = ranking.paired_differences(rows, "s", "log_loss")
    gaps = np.subtract(second, first)
    assert found["a"] == (2.0, 0.0, 0.0)
    assert found["b"] == pytest.approx((np.mean(second), gaps.mean(), gaps.std(ddof=1) / math.sqrt(3)))
    assert "c" not in found


def test_means_are_over_the_same_splits():
    rows = make_rows({("s", "a"): [1.0, None], ("s", "b"): [None, 9.0]})
    assert ranking.paired_differences(rows, "s", "log_loss") == {}


def test_ratios_to_the_input_are_geometric_means():
    rows = make_rows(
        {
            ("s", "none"): [1.0, 3.0],
            ("t", "none"): [1.0, 1.0],
            ("s", "a"): [1.0, 1.0],
            ("t", "a"): [0.5, 0.5],
            ("s", "b"): [1.0, None],
            ("t", "b"): [1.0, 1.0],
        }
    )
    found = ranking.ratios_to_input(rows, "log_loss")
    assert found["a"] == pytest.approx(0.5)
    assert found["none"] == 1.0
    assert math.isnan(found["b"])


def test_one_split_has_no_standard_error():
    found = ranking.paired_differences(make_rows({("s", "a"): [1.0]}), "s", "log_loss")
    assert math.isnan(found["a"][2])


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_slope_is_the_exponent(power):
    sizes = np.array([10.0, 100.0, 1000.0, 10_000.0])
    # A constant overhead at small sizes does not matter.
    seconds = sizes**power + np.array([1e4, 0, 0, 0])
    assert ranking.log_log_slope(sizes, seconds) == pytest.approx(power)
    assert math.isnan(ranking.log_log_slope([1], [1]))
