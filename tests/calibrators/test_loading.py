"""Files saved by earlier versions are read by this one."""

from pathlib import Path

import numpy as np
import pytest

import polycal as pc

SAVED = Path(__file__).parent / "saved_v1"
EXPECTED = dict(np.load(SAVED / "expected.npz", allow_pickle=False))


@pytest.mark.parametrize("kind", [name for name in EXPECTED if name != "proba"])
def test_files_of_the_first_format_predict_as_they_did(kind):
    calibrator = pc.load(SAVED / f"{kind}.polycal")
    assert calibrator.class_names_ == ("a", "b", "c")
    np.testing.assert_allclose(calibrator.predict_proba(EXPECTED["proba"]), EXPECTED[kind], atol=1e-12)
