"""Every kind of witness survives the disk."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import polycal as pc
from polycal.families.witness import Witness

MADE = pc.datasets.make_temperature(300, 4, random_state=0)
SOURCES = {
    "subset": pc.SubsetAuditor(),
    "top": pc.NotionAuditor(pc.TopLabel(smooth=True)),
    "top-set": pc.NotionAuditor(pc.TopSet(2)),
    "table": pc.NotionAuditor(pc.Canonical(min_repeats=1)),
    "kernel": pc.KernelAuditor(pc.Multinomial(3)),
    "gaussian kernel": pc.KernelAuditor(),
    "projected": pc.ProjectionAuditor(),
    "sigmoid": pc.SigmoidAuditor(),
    "decision": pc.DecisionAuditor(),
    "halfspace": pc.NotionAuditor(pc.Halfspace()),
    "monomial": pc.NotionAuditor(pc.LowDegree(2)),
    "swap": pc.SwapAuditor([*(1 - np.eye(4)), [0.3] * 4]),
    "full-smooth": pc.NotionAuditor(pc.FullSmooth(n_floor_draws=0)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_it_reads_back_the_same(name, tmp_path):
    names = ["a", "b", "c", "d"]
    witness = SOURCES[name].find_witness(MADE.labels, MADE.proba, class_names=names)
    witness.save(tmp_path / "w.polycal")
    again = pc.load(tmp_path / "w.polycal")
    fresh = np.random.default_rng(1).dirichlet(np.ones(4), 50)
    np.testing.assert_array_equal(again(fresh), witness(fresh))
    assert again.describe() == witness.describe()
    assert np.all(np.abs(again(np.eye(4))) <= 1)


def test_every_savable_kind_is_tried():
    tried = {SOURCES[name].find_witness(MADE.labels, MADE.proba).family for name in SOURCES}
    # Lists and slices are no functions of full predictions alone, and have tests of their own.
    assert Witness.homes.keys() - tried == {"list-kernel", "slice"}


def test_fitted_estimators_are_not_saved(tmp_path):
    witness = pc.LearnerAuditor(LogisticRegression()).find_witness(MADE.labels, MADE.proba)
    with pytest.raises(TypeError, match="pickle"):
        witness.save(tmp_path / "w.polycal")
    assert list(tmp_path.iterdir()) == []
