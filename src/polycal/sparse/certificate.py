"""Certificates from lists of classes: a witness judged by the least that it can be worth."""

from dataclasses import dataclass, replace
from typing import Any

from polycal._typing import Float64s
from polycal._validation import check_level, check_seed
from polycal.families.questions import SubsetWitness
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, certify_correlations
from polycal.sparse._gate import sparse_sample
from polycal.sparse._least import least_gains
from polycal.sparse._sample import Remainder, SparseSample
from polycal.sparse.kernel import ListKernelWitness


def certify(
    witness: Witness,
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    remainder: Remainder = "unknown",
    sample_weight: Any = None,
    class_names: Any = None,
    random_state: int = 0,
) -> Certificate:
    r"""Judge a witness on lists of classes it was not found on.

    Parameters
    ----------
    witness : SubsetWitness or ListKernelWitness
        As `find_subset` or `TruncatedKernelState` finds it, on other rows.
    y_true, y_proba, remainder, sample_weight, class_names
        As for `sparse_sample`.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    random_state : int, default 0
        Seed of the orders in which rows are bet on.

    Returns
    -------
    Certificate
        Of the predictions before they were truncated.

    See Also
    --------
    polycal.certify : The same for full predictions.

    Notes
    -----
    For a set of classes each row counts with the least correlation that any completion of its list has, so estimate
    and bound are below those of the full predictions: what is certified holds however the rest was distributed. For a
    kernel witness of lists nothing is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> top = csr_array(np.repeat([[0.3, 0.3, 0.3, 0.0, 0.0, 0.0]], 400, axis=0))
    >>> y_true = np.tile(np.repeat([0, 1, 2, 3], [12, 2, 4, 2]), 20)
    >>> witness = polycal.sparse.find_subset(y_true[::2], top[::2])
    >>> polycal.sparse.certify(witness, y_true[1::2], top[1::2]).is_significant
    True
    """
    check_level(alpha)
    check_seed(random_state)
    sample = sparse_sample(
        y_true, y_proba, remainder=remainder, sample_weight=sample_weight, class_names=class_names
    )
    return certify_lists(witness, sample, alpha, random_state)


def certify_lists(witness: Witness, sample: SparseSample, alpha: float, random_state: int = 0) -> Certificate:
    """Judge a witness on a validated sample."""
    if isinstance(witness, ListKernelWitness):
        judged: ListKernelWitness | _LeastSubset = witness
    elif isinstance(witness, SubsetWitness):
        judged = _LeastSubset(witness.members, witness.phi, witness.n_classes, witness.class_names)
    else:
        raise TypeError(
            "witness must be a SubsetWitness or a ListKernelWitness: others need full predictions; "
            f"got {type(witness).__name__}."
        )
    if sample.n_classes != witness.n_classes:
        raise ValueError(
            f"y_proba has {sample.n_classes} classes but the witness was found on {witness.n_classes}."
        )
    certificate = certify_correlations(
        judged, judged.correlations(sample), sample.sample_weight, alpha, random_state
    )
    return replace(certificate, witness=witness)


@dataclass(frozen=True, eq=False, repr=False)
class _LeastSubset(SubsetWitness):
    """A set's witness that counts each row with the least it can be worth."""

    def correlations(self, sample: Any) -> Float64s:
        low, high = sample.subset_range(self.members)
        return least_gains(self.phi, sample.subset_hits(self.members), low, high)
