import numpy as np
import pytest

import polycal as pc
from polycal.storage.model import load_object, save_object

NAMES = ("a", "b", "<script>")


@pytest.fixture
def witness():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 100)
    return pc.estimate_error(
        rng.integers(0, 3, 100), proba, pc.TopLabel(smooth=True), class_names=NAMES
    ).witness


def test_a_witness_survives_the_disk(witness, tmp_path):
    witness.save(tmp_path / "w.polycal")
    again = pc.load(tmp_path / "w.polycal")
    proba = np.random.default_rng(1).dirichlet(np.ones(3), 50)
    np.testing.assert_array_equal(again(proba), witness(proba))
    assert type(again) is type(witness)
    assert again.class_names == NAMES


def test_other_objects_are_refused(tmp_path):
    save_object(tmp_path / "x.polycal", {"is": "spell/old"}, {})
    with pytest.raises(ValueError, match=r"x\.polycal: holds a 'spell'"):
        pc.load(tmp_path / "x.polycal")


@pytest.mark.parametrize("wrong", [{"is": "witness/nobody"}, {"n_classes": "many"}, {"class_names": 3}])
def test_hostile_headers_are_refused(witness, tmp_path, wrong):
    path = tmp_path / "w.polycal"
    witness.save(path)
    tree, arrays = load_object(path)
    save_object(path, tree | wrong, arrays)
    with pytest.raises(ValueError, match="cannot be read as a witness"):
        pc.load(path)


def test_missing_arrays_are_refused(witness, tmp_path):
    path = tmp_path / "w.polycal"
    witness.save(path)
    tree, arrays = load_object(path)
    arrays.pop("phis.knots")
    save_object(path, tree, arrays)
    with pytest.raises(ValueError, match="cannot be read as a witness"):
        pc.load(path)
