import pytest

import polycal as pc
from polycal.families.defaults import default_auditor, default_auditors


@pytest.mark.parametrize(
    ("notion", "auditor"),
    [
        (pc.SubsetSmooth(max_size=3), pc.SubsetAuditor(max_size=3, random_state=5)),
        (pc.ProjectedSmooth(m=2), pc.ProjectionAuditor(m=2, random_state=5)),
        (pc.Sigmoid(4), pc.SigmoidAuditor(slope=4, random_state=5)),
        (pc.Decision(actions=3), pc.DecisionAuditor(actions=3, random_state=5)),
        (pc.LowDegree(3), pc.KernelAuditor(pc.Multinomial(3), random_state=5)),
        (pc.Confidence(), pc.NotionAuditor(pc.Confidence())),
    ],
)
def test_each_notion_has_its_auditor(notion, auditor):
    assert default_auditor(notion, 5) == auditor


def test_equal_names_are_told_apart_and_the_kernel_is_always_there():
    names = list(default_auditors((pc.Sigmoid(2), pc.Sigmoid(8), pc.Confidence()), 0))
    assert names == ["Sigmoid(slope=2)", "Sigmoid(slope=8)", "confidence", "kernel"]
