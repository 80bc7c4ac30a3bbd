import numpy as np
import pytest

from benchmarks import data


def write_set(path, rng, n=30, k=3):
    evaluation = np.arange(n) >= 10
    labels = rng.integers(0, k, n)
    np.savez(path, proba=rng.dirichlet(np.ones(k), n), labels=labels, evaluation=evaluation)
    return labels


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("b", "a"):
        write_set(tmp_path / f"{name}.npz", rng)
    return tmp_path


def test_sets_come_in_order_and_by_name(folder):
    assert [s.name for s in data.prediction_sets(folder=folder)] == ["a", "b"]
    assert [s.name for s in data.prediction_sets(["b"], folder)] == ["b"]
    assert data.prediction_sets(["b"], folder)[0].n_cells == 10 * 3
    with pytest.raises(ValueError, match="no set called c"):
        data.prediction_sets(["c"], folder)


def test_the_first_split_is_that_of_the_file(tmp_path):
    labels = write_set(tmp_path / "a.npz", np.random.default_rng(1))
    split = data.PredictionSet("a", tmp_path / "a.npz").split()
    np.testing.assert_array_equal(split.calibration.labels, labels[:10])
    np.testing.assert_array_equal(split.evaluation.labels, labels[10:])


def test_other_splits_part_the_same_rows_anew_in_the_same_sizes(folder):
    (first, *_) = data.prediction_sets(folder=folder)
    own, once, again, other = (first.split(seed) for seed in (0, 1, 1, 2))

    def rows(split):
        return np.vstack([split.calibration.proba, split.evaluation.proba])

    for split in (once, other):
        assert split.calibration.n_samples == own.calibration.n_samples
        np.testing.assert_array_equal(np.sort(rows(split), axis=0), np.sort(rows(own), axis=0))
    np.testing.assert_array_equal(rows(once), rows(again))
    assert not np.array_equal(rows(once), rows(other))
    assert not np.array_equal(rows(once), rows(own))


def test_predictions_are_double_precision_and_sum_to_one(tmp_path):
    logits = np.random.default_rng(2).normal(size=(20, 4)).astype(np.float16)
    path = tmp_path / "a.npz"
    np.savez(path, logits=logits, labels=np.zeros(20, dtype=np.int64), evaluation=np.arange(20) > 9)
    proba = data.PredictionSet("a", path).split().evaluation.proba
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-15)


def test_without_a_folder_the_shipped_example_is_used_and_said(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("POLYCAL_DATA", raising=False)
    monkeypatch.setattr(data, "DEFAULT_FOLDER", tmp_path / "none")
    (only,) = data.prediction_sets()
    assert "shipped example" in capsys.readouterr().out
    assert only.split().calibration.n_samples == 10_000


def test_a_folder_that_is_not_there_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYCAL_DATA", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="not a folder"):
        data.prediction_sets()
