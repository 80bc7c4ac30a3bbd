import numpy as np
import pytest

import polycal as pc


def test_the_witness_is_that_of_the_notion():
    rng = np.random.default_rng(0)
    labels, proba = rng.integers(0, 3, 100), rng.dirichlet(np.ones(3), 100)
    found = pc.NotionAuditor(pc.TopLabel(smooth=True)).find_witness(labels, proba)
    expected = pc.estimate_error(labels, proba, pc.TopLabel(smooth=True)).witness
    np.testing.assert_array_equal(found(proba), expected(proba))


def test_a_notion_is_required():
    with pytest.raises(TypeError, match="notion must be a notion"):
        pc.NotionAuditor(15)
    assert pc.NotionAuditor("confidence") == pc.NotionAuditor(pc.Confidence())


def test_notions_without_witness_are_refused():
    # The upper bound of a kernel ball is not attained by any weight of the family.
    auditor = pc.NotionAuditor(pc.LowDegree(2, bound="upper"))
    if pc.estimate_error([0, 1], [0.2, 0.7], auditor.notion).witness is None:
        with pytest.raises(ValueError, match="has no witness"):
            auditor.find_witness([0, 1], [0.2, 0.7])
