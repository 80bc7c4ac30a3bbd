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


@pytest.mark.parametrize("kind", ["matrix", "dirichlet"])
def test_attributes_that_came_later_are_empty(kind, tmp_path):
    calibrator = pc.load(SAVED / f"{kind}.polycal")
    assert np.isnan(calibrator.off_diagonal_)
    assert calibrator.cv_log_loss_.shape == (0, 2)
    assert "off_diagonal_" in calibrator._repr_html_()
    calibrator.save(tmp_path / "again.polycal")
    assert np.isnan(pc.load(tmp_path / "again.polycal").off_diagonal_)
