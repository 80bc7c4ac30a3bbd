"""The simplest auditor of a notion: the witness of its error on the rows given."""

from dataclasses import dataclass

from polycal.auditors._base import Auditor
from polycal.notions._base import Notion
from polycal.sample import Sample
from polycal.witness._base import Witness


@dataclass(frozen=True)
class NotionAuditor(Auditor):
    """Look for the witness of a notion by maximising its error on the given rows.

    Right for notions with few parameters (confidence, class-wise), where what is largest on these rows is nearly
    largest on others. For rich families use their own auditors, which hold rows back.

    Parameters
    ----------
    notion : Notion
        What being calibrated means.

    Examples
    --------
    >>> import polycal as pc
    >>> witness = pc.NotionAuditor(pc.Confidence(smooth=True)).find_witness([0, 1, 1], [0.2, 0.6, 0.7])
    >>> witness.describe()
    'is the most likely class right?'
    """

    notion: Notion

    def __post_init__(self) -> None:
        if not isinstance(self.notion, Notion):
            raise TypeError(f"notion must be a notion such as polycal.Confidence(); got {self.notion!r}.")

    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
        witness = self.notion.estimate(sample).witness
        if witness is None:
            raise ValueError(f"{self.notion!r} has no witness to show; choose a notion that has one.")
        return witness
