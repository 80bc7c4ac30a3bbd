"""Changed files: no process dies of one, and none becomes an object that breaks its word."""

import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.storage.catalogue import ANSWERS, CALIBRATORS, LABELS, MONITORS, PROBA, STATES, WITNESSES

import polycal as pc
from polycal.calibrators.base import Calibrator
from polycal.families.questions import SubsetWitness
from polycal.families.witness import Witness
from polycal.measures.functions import LipschitzFunction, StepFunction
from polycal.states.base import State
from polycal.states.certificate import ReadingState
from polycal.states.sums import BinnedState
from polycal.steps import Linear
from polycal.storage.model import load_object, save_object
from polycal.storage.saved import find

SAVED = Path(__file__).parent / "saved_v1"
ROLES = ["witness", "state", "calibrator"]
# The share of changes that is tried in seconds.
SOON = 0.04


def in_a_process(*arguments):
    """What a Python process printed that had to end well."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, f"{done.returncode} after {last}: {done.stderr[-500:]}"
    return done.stdout


def try_changes(folder, role, first, last):
    printed = in_a_process("-m", "tests.storage.mutations", folder, role, first, last)
    assert [line for line in printed.splitlines() if line.startswith("WRONG")] == []
    return int(printed.split()[-1])


@pytest.mark.parametrize("role", ROLES)
def test_changed_files_of_the_first_format_are_refused_or_harmless(role):
    assert try_changes(SAVED, role, 0.0, SOON) > 100


@pytest.mark.parametrize("role", ROLES)
def test_changed_files_are_refused_or_harmless(role, tmp_path):
    save_anew(tmp_path)
    assert try_changes(tmp_path, role, 0.0, SOON) > 100


@pytest.mark.parametrize(("role", "made", "share"), [("monitor", MONITORS, 0.01), ("answers", ANSWERS, 0.2)])
def test_changed_files_of_later_roles_are_refused_or_harmless(tmp_path, role, made, share):
    for name, make in made.items():
        make().save(tmp_path / f"{role}-{name}.polycal")
    assert try_changes(tmp_path, role, 0.0, share) > 20


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_change_is_refused_or_harmless(role, tmp_path):
    save_anew(tmp_path)
    # Files of the first format are taken to the present one before anything is made of them. The other tests have tried
    # the changes with the lowest lots.
    assert try_changes(SAVED, role, SOON, 0.2) + try_changes(tmp_path, role, SOON, 1.0) > 3000


def save_anew(folder):
    """The files of the first format, in the present one."""
    for path in SAVED.glob("*.polycal"):
        pc.load(path).save(folder / path.name)


# Each in a process of its own that has imported nothing else of polycal.
_LOAD_ALONE = """
import os, sys
from pathlib import Path
import numba, scipy.linalg, scipy.spatial, sklearn.base
import polycal
for path in Path(sys.argv[1]).glob("*.polycal"):
    child = os.fork()
    if child == 0:
        polycal.load(path)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, path
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that start from one that is ready")
def test_loading_imports_what_it_needs():
    in_a_process("-c", _LOAD_ALONE, SAVED)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="as above")
def test_loading_imports_no_more_than_it_needs():
    code = "import sys, polycal; polycal.load(sys.argv[1]); print(sorted(sys.modules))"
    printed = in_a_process("-c", code, SAVED / "state-scores.polycal")
    assert "polycal.states.kernel" not in printed
    assert "polycal.calibrators" not in printed


@pytest.mark.parametrize(
    ("base", "made"),
    [
        (Witness, WITNESSES),
        (State, STATES),
        (Calibrator, CALIBRATORS),
        (pc.Monitor, MONITORS),
        (pc.AnswerDepth, ANSWERS),
    ],
    ids=lambda value: getattr(value, "role", ""),
)
def test_every_family_has_a_home_and_is_tried(base, made):
    things = {
        (make.family if isinstance(make, Calibrator) else make().family): make for make in made.values()
    }
    assert things.keys() == base.homes.keys()
    for family, home in base.homes.items():
        assert find(f"{base.role}/{family}").__module__ == home


def changed(thing, path, tree=None, arrays=None):
    """Save a thing with other entries of its header or other arrays, and load that."""
    thing.save(path)
    old_tree, old_arrays = load_object(path)
    save_object(path, old_tree | (tree or {}), old_arrays | (arrays or {}))
    return pc.load(path)


def test_a_table_of_another_shape_is_refused(tmp_path):
    state = BinnedState().update(LABELS, PROBA)
    with pytest.raises(ValueError, match=r"a\.polycal: cannot be read as a state.*table must have an entry"):
        changed(state, tmp_path / "a.polycal", arrays={"table": np.zeros((1, 15, 4))})


@pytest.mark.parametrize("value", [-1e6, np.nan, np.inf])
def test_a_witness_beyond_its_range_is_refused(value, tmp_path):
    witness = WITNESSES["subset"]()
    heights = np.full(witness.phi.heights.shape, value)
    with pytest.raises(ValueError, match=r"cannot be read as a witness.*heights must lie in -1 to 1"):
        changed(witness, tmp_path / "a.polycal", arrays={"phi.heights": heights})


@pytest.mark.parametrize("members", [[10**9], [-1], [1, 1], [2, 1], [3]])
def test_members_that_are_no_classes_are_refused(members, tmp_path):
    witness = WITNESSES["subset"]()
    with pytest.raises(ValueError, match=r"cannot be read as a witness.*members must"):
        changed(witness, tmp_path / "a.polycal", arrays={"members": np.array(members)})


def test_witnesses_made_by_hand_are_held_to_the_same():
    witness = WITNESSES["kernel"]()
    with pytest.raises(ValueError, match="coefficients must lie in"):
        replace(witness, coefficients=witness.coefficients * np.nan)
    with pytest.raises(ValueError, match=r"coefficients must be of shape \(n_points n_classes\)"):
        replace(witness, coefficients=witness.coefficients[:-1])
    with pytest.raises(ValueError, match="slopes must lie in -1 to 1"):
        LipschitzFunction(np.array([0.0, 0.1]), np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match="knots must increase"):
        StepFunction(np.array([0.5, 0.1]), np.zeros(3))
    with pytest.raises(ValueError, match="class_names has 2 names for 3 classes"):
        SubsetWitness(np.array([0]), LipschitzFunction(np.zeros(1), np.zeros(1)), 3, ("a", "b"))
    with pytest.raises(ValueError, match="members holds"):
        ReadingState([7], 0.0, 1.0).update(LABELS, PROBA)


def test_a_number_of_classes_that_nothing_bears_out_takes_no_memory(tmp_path):
    calibrator = pc.IdentityCalibrator().fit(PROBA, LABELS)
    vector = pc.VectorScaling().fit(PROBA, LABELS)
    # Made before memory is counted: compilers take some.
    cells, bins = STATES["question-cells"](), STATES["binned"]()
    tracemalloc.start()
    claimed = changed(calibrator, tmp_path / "a.polycal", {"n_classes": 10**8})
    with pytest.raises(ValueError, match="cannot be read as a calibrator"):
        changed(vector, tmp_path / "a.polycal", {"n_classes": 10**8})
    with pytest.raises(ValueError, match="cannot be read as a state"):
        changed(cells, tmp_path / "a.polycal", {"resolution": 1e-12})
    with pytest.raises(ValueError, match="cannot be read as a state"):
        changed(bins, tmp_path / "a.polycal", {"n_bins": 10**10})
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    with pytest.raises(ValueError, match="but the calibrator was fitted on 100000000"):
        claimed.predict_proba(PROBA)


def test_rows_that_steps_do_not_lead_to_probabilities_are_refused():
    calibrator = pc.IdentityCalibrator().fit(PROBA, LABELS)
    calibrator.steps_ = (Linear(np.diag([1.0, 0.0, 0.0]), np.zeros(3)),)
    np.testing.assert_array_equal(calibrator.predict_proba([[0.2, 0.3, 0.5]]), [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="do not lead from these rows to probabilities"):
        calibrator.predict_proba([[0.0, 0.3, 0.7]])
