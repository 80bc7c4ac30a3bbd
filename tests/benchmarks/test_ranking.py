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
    assert ranking.complete_methods(rows) == (["a"], ["b"])
    assert [s.method for s in ranking.standings(rows, "log_loss")] == ["a"]


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
