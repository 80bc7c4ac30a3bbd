"""Every family survives the disk; files of the first format are read, and behave as they did."""

from pathlib import Path

import numpy as np
import pytest
from tests.storage.catalogue import MAKERS, behaviour

import polycal as pc

SAVED = Path(__file__).parent / "saved_v1"
EXPECTED = dict(np.load(SAVED / "expected.npz", allow_pickle=False))

every_file = pytest.mark.parametrize("name", EXPECTED)


@every_file
def test_files_of_the_first_format_behave_as_they_did(name):
    np.testing.assert_allclose(behaviour(pc.load(SAVED / f"{name}.polycal")), EXPECTED[name], atol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_every_family_reads_back_the_same(name, tmp_path):
    thing = MAKERS[name]()
    thing.save(tmp_path / "a.polycal")
    again = pc.load(tmp_path / "a.polycal")
    assert type(again) is type(thing)
    np.testing.assert_array_equal(behaviour(again), behaviour(thing))
    if name.startswith("witness"):
        assert again.describe() == thing.describe()
        assert again.class_names == thing.class_names
