"""Which auditor searches for a notion's witness, and the notions an audit looks at by default."""

from collections.abc import Sequence

from polycal.auditors._base import Auditor
from polycal.auditors.decision import DecisionAuditor
from polycal.auditors.kernel import KernelAuditor
from polycal.auditors.notion import NotionAuditor
from polycal.auditors.projection import ProjectionAuditor
from polycal.auditors.sigmoid import SigmoidAuditor
from polycal.auditors.subset import SubsetAuditor
from polycal.kernels.multinomial import Multinomial
from polycal.notions._base import Notion
from polycal.notions.classwise import Classwise
from polycal.notions.confidence import Confidence
from polycal.notions.decision import Decision
from polycal.notions.low_degree import LowDegree
from polycal.notions.projected_smooth import ProjectedSmooth
from polycal.notions.sigmoid import Sigmoid
from polycal.notions.subset_smooth import SubsetSmooth

# What an audit measures and searches unless told otherwise: seconds for 10,000 rows of 100 classes.
DEFAULT_NOTIONS: tuple[Notion, ...] = (Confidence(smooth=True), Classwise(smooth=True), SubsetSmooth())


def default_auditor(notion: Notion, seed: int) -> Auditor:
    """The auditor that searches a notion's weight family."""
    match notion:
        case SubsetSmooth():
            return SubsetAuditor(max_size=notion.max_size, random_state=seed)
        case ProjectedSmooth():
            return ProjectionAuditor(m=notion.m, random_state=seed)
        case Sigmoid():
            return SigmoidAuditor(slope=notion.slope, random_state=seed)
        case Decision():
            return DecisionAuditor(actions=notion.actions, random_state=seed)
        case LowDegree():
            return KernelAuditor(Multinomial(notion.degree), random_state=seed)
        case _:
            return NotionAuditor(notion)


def default_auditors(notions: Sequence[Notion], seed: int) -> dict[str, Auditor]:
    """The auditors of an audit: one for each notion, and the kernel auditor, which no notion limits."""
    auditors = {_label(notion, notions): default_auditor(notion, seed) for notion in notions}
    return auditors | {"kernel": KernelAuditor(random_state=seed)}


def _label(notion: Notion, notions: Sequence[Notion]) -> str:
    """The notion's name, with its parameters where another one has the same name."""
    return notion.name if sum(n.name == notion.name for n in notions) == 1 else repr(notion)
