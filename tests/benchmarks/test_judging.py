import numpy as np
import pytest

from benchmarks import judging
from polycal.datasets import make_calibrated, make_cat_and_dog


def slow_canonical_error(labels, proba):
    """The definition, row by row."""
    n, k = proba.shape
    m = max(1, round(n**0.5))
    residual = np.eye(k)[labels] - proba
    total = 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        near = sorted(others, key=lambda j: np.sum((proba[i] - proba[j]) ** 2))[:m]
        total += np.mean([residual[i] @ residual[j] for j in near])
    return total / n


def test_the_canonical_error_is_as_defined():
    made = make_calibrated(80, 5, random_state=3)
    expected = slow_canonical_error(made.labels, made.proba)
    assert judging.canonical_error(made.labels, made.proba) == pytest.approx(expected, abs=1e-12)


def test_the_canonical_error_of_calibrated_predictions_is_zero_on_average():
    values = []
    for seed in range(40):
        made = make_calibrated(400, 50, concentration=0.2, random_state=seed)
        values.append(judging.canonical_error(made.labels, made.proba))
    assert abs(np.mean(values)) < 3.5 * np.std(values, ddof=1) / np.sqrt(len(values))
    assert np.std(values) < 0.02


def test_the_canonical_error_finds_a_known_one():
    # Four gaps of 0.1 each at every prediction: 0.04.
    made = make_cat_and_dog(4000, error=0.2)
    assert judging.canonical_error(made.labels, made.proba) == pytest.approx(0.04, abs=0.01)


def test_the_canonical_error_uses_at_most_so_many_rows():
    made = make_calibrated(300, 3)
    few = judging.canonical_error(made.labels, made.proba, max_rows=50, seed=1)
    rows = np.random.default_rng([1, 2]).permutation(300)[:50]
    assert few == pytest.approx(slow_canonical_error(made.labels[rows], made.proba[rows]), abs=1e-12)


def test_answers_that_do_not_sum_to_one_are_mended_and_noted():
    out, note = judging.as_proba(np.array([[0.5, 0.25], [0.5, 0.5]]), (2, 2))
    np.testing.assert_allclose(out, [[2 / 3, 1 / 3], [0.5, 0.5]])
    assert "0.25" in note
    assert judging.as_proba(np.array([[0.5, 0.5 + 1e-9]]), (1, 2))[1] == ""


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.ones((2, 3)) / 3, "shape"),
        (np.array([[np.nan, 1.0], [0.5, 0.5]]), "1 of 2 rows"),
        (np.array([[-0.5, 1.5], [0.5, 0.5]]), "1 of 2 rows"),
        (np.array([[0.0, 0.0], [0.5, 0.5]]), "1 of 2 rows"),
    ],
)
def test_answers_that_are_no_probabilities_are_errors(out, message):
    with pytest.raises(ValueError, match=message):
        judging.as_proba(out, (2, 2))


def test_the_worst_subset_is_measured_on_rows_the_search_has_not_seen():
    made = make_cat_and_dog(4000, error=0.2)
    found = judging.worst_subset(made.labels, made.proba)
    assert found["worst_subset"] == pytest.approx(0.024, abs=0.01)
    assert found["worst_subset_gain"] <= found["worst_subset"] + 1e-12


def test_what_is_found_in_calibrated_predictions_gains_nothing_on_average():
    gains = []
    for seed in range(20):
        made = make_calibrated(600, 6, random_state=seed)
        gains.append(judging.worst_subset(made.labels, made.proba)["worst_subset_gain"])
    assert abs(np.mean(gains)) < 3.5 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_every_column_is_there():
    made = make_calibrated(200, 4)
    columns = judging.judge(made.labels, made.proba)
    assert set(columns) == {
        "brier",
        "log_loss",
        "accuracy",
        "ece",
        "classwise_ece",
        "canonical",
        "worst_subset",
        "worst_subset_gain",
    }
    assert all(np.isfinite(value) for value in columns.values())
