import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.families.canonical import TableWitness


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_witness_attains_the_canonical_error(dtype):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 10).astype(dtype)[rng.integers(0, 10, 200)]
    labels = rng.integers(0, 4, 200)
    estimate = pc.estimate_error(labels, proba, pc.Canonical())
    assert estimate.witness.correlation(check_sample(labels, proba)) == pytest.approx(
        estimate.value, abs=1e-6
    )
    assert "10 distinct" in estimate.witness.describe()


def test_unknown_predictions_weigh_nothing():
    witness = TableWitness(np.array([[0.5, 0.5]]), np.array([[1.0, -1.0]]), 2)
    np.testing.assert_array_equal(witness([[0.5, 0.5], [0.25, 0.75]]), [[1, -1], [0, 0]])


def test_it_survives_the_disk(tmp_path):
    witness = TableWitness(np.array([[0.5, 0.5]]), np.array([[1.0, -1.0]]), 2, ("a", "b"))
    witness.save(tmp_path / "w.polycal")
    np.testing.assert_array_equal(pc.load(tmp_path / "w.polycal")([[0.5, 0.5]]), [[1.0, -1.0]])
