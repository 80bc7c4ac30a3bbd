"""Several auditors, one witness: the best on rows that none of them saw."""

from collections.abc import Sequence
from dataclasses import dataclass

from polycal._split import split_rows
from polycal._validation import check_integer
from polycal.auditors._base import Auditor
from polycal.auditors.defaults import DEFAULT_NOTIONS, default_auditors
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample
from polycal.witness._base import Witness

# The level of the bounds that candidates are compared by, before dividing by their number.
_ALPHA = 0.05


@dataclass(frozen=True)
class AutoAuditor(Auditor):
    """Run several auditors on two thirds of the rows and return the witness that holds up best on the rest.

    Parameters
    ----------
    auditors : sequence of Auditor, optional
        What to run. By default those of an audit: confidence, class-wise, subsets and the kernel.
    random_state : int, default 0
        Seed of the parts and of the default auditors.

    Notes
    -----
    Candidates are compared by their lower confidence bounds on the rows held back, at a level divided by the number
    of candidates (Bonferroni), so that a lucky one among many does not win over a solid one. The winner's
    bound has been used to choose it: judge it on new rows with `certify`.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> witness = pc.AutoAuditor().find_witness(fit.labels, fit.proba, class_names=fit.class_names)
    >>> pc.certify(witness, fresh.labels, fresh.proba).is_significant
    True
    """

    auditors: Sequence[Auditor] | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_integer(self.random_state, "random_state", minimum=0)
        if self.auditors is not None and not self.auditors:
            raise ValueError("auditors is empty; give at least one, or None for the default ones.")

    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
        auditors = self.auditors
        if auditors is None:
            auditors = list(default_auditors(DEFAULT_NOTIONS, self.random_state).values())
        fit, held_back = (sample.take(rows) for rows in split_rows(sample, (2, 1), self.random_state))
        witnesses = [auditor.find(fit) for auditor in auditors]
        level = _ALPHA / len(witnesses)
        bounds = [certify_sample(w, held_back, level, self.random_state).lower_bound for w in witnesses]
        return witnesses[max(range(len(bounds)), key=bounds.__getitem__)]
