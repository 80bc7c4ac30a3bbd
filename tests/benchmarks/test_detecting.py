import numpy as np
import pytest

import polycal as pc
from benchmarks import detecting


@pytest.mark.parametrize("case", detecting.CASES, ids=lambda case: case.name)
def test_cases_are_predictions_and_calibrated_at_strength_0(case):
    proba, labels = case.draw(0, 4000, 1)
    assert case.strengths[0] == 0
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    half = range(proba.shape[1] // 2)
    assert pc.smooth_calibration_error(labels, proba, subset=half) < 0.03
    assert pc.calibration_error(labels, proba, pc.Confidence(smooth=True)) < 0.03


def test_breeds_keep_the_error_of_their_four_classes():
    proba, labels = detecting._cat_and_dog_breeds(0.2, 20_000, 0)
    assert proba.shape == (20_000, 40)
    # Cats and dogs are the first twenty breeds.
    assert pc.smooth_calibration_error(labels, proba, subset=range(20)) == pytest.approx(0.024, abs=0.01)
    assert pc.calibration_error(labels, proba, pc.Classwise(smooth=True)) < 0.01


def test_samples_are_independent_and_stacked():
    case = detecting.CASES[0]
    arrays = detecting.samples(case, 50, 3)
    assert arrays["proba"].shape == (3 * len(case.strengths), 50, 4)
    np.testing.assert_array_equal(arrays["labels"][1], case.draw(case.strengths[1], 50, 0)[1])
    assert not np.array_equal(arrays["labels"][0], arrays["labels"][len(case.strengths)])


def test_a_test_that_ran_out_of_time_counts_by_the_samples_it_saw():
    case = detecting.CASES[0]
    # Two rounds of five strengths, and one more sample.
    p_values = [0.5, 0.01, 0.01, 0.01, 0.01, 0.5, 0.5, 0.01, 0.01, 0.01, 0.01]
    rows = list(detecting.power_curve(case, "t", {"status": "ok", "p_values": p_values, "seconds": 1.0}))
    assert [row["rejected"] for row in rows] == [0, 1, 2, 2, 2]
    assert {row["repeats"] for row in rows} == {2}
    assert [row["strength"] for row in rows] == list(case.strengths)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"status": "failed", "error": "no"}, "failed"),
        ({"status": "ok", "p_values": [0.5], "seconds": 30.0}, "time limit"),
    ],
)
def test_a_test_without_a_result_has_a_row_for_each_strength(result, status):
    rows = list(detecting.power_curve(detecting.CASES[0], "t", result))
    assert [row["status"] for row in rows] == [status] * 5
    assert all("rejected" not in row for row in rows)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(0, 0.05), (0.1, 0.4), (0.2, 1.0)], 0.1 + 0.1 * 0.4 / 0.6),
        ([(0.2, 0.9), (0, 0.9)], 0.2),
        ([(0, 0.05), (0.1, 0.79)], None),
        ([], None),
        ([(0.1, 0.9)], 0.1),
    ],
)
def test_the_smallest_strength_found(points, expected):
    assert detecting.smallest_found(points) == (expected if expected is None else pytest.approx(expected))


def test_tests_are_chosen_by_name():
    assert set(detecting.wanted(["polycal audit", "skce *"])) == {
        "polycal audit",
        "SKCE block",
        "SKCE redraw",
    }
    assert detecting.wanted(None) == detecting.TESTS
