"""Decision calibration: whatever the losses, do the outcomes of each best action come as predicted?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_integer
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample, row_sums
from polycal.search.decision import pair_losses, search_losses
from polycal.search.lines import best_vector_cut
from polycal.search.points import distinct_points
from polycal.search.verdict import class_residual, decision_witness


@dataclass(frozen=True)
class Decision(Notion):
    r"""Decision calibration: whatever the losses, do the outcomes of each best action come as predicted?

    Parameters
    ----------
    actions : int, default 2
        Number of actions to choose from.

    Notes
    -----
    Definition: an action a has a loss :math:`r_a \in \mathbb{R}^k` for each label, and the best action at v is that
    of least expected loss, :math:`\arg\min_a \langle r_a, v\rangle` (the first of equals). The error is [1]_

    .. math:: \sup_{r_1, \dots, r_K} \sum_a \| \mathbb{E}[(y - v)\, 1(a \text{ is best at } v)] \|_2 ,

    that is, the weight is a vector of Euclidean length at most 1 for each action. Auditing it is as hard as
    agnostically learning halfspaces, for which no polynomial algorithm is believed to exist [2]_. Estimator: a
    heuristic search. Two actions: directions are swept exactly by one sort each, climbed with
    soft choices of growing sharpness, and turned along lines. More actions: one action after another is split in
    two, so the value never falls with their number. What is found is a lower bound; two actions and two classes
    leave only a threshold, and are exact. Predictions whose weighted sums differ by less than
    1e-9 are not cut apart. A search looks at no more than 32,768 distinct predictions; the value is that of the
    whole sample. Cost: some hundred passes of O(n k) for each action. Bias: upwards.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021), "Calibrating Predictions to Decisions: A Novel Approach to
       Multi-Class Calibration".
    .. [2] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Theorem on
       the hardness of decision calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], pc.Decision())
    >>> round(estimate.value, 4), estimate.kind
    (1.0607, 'exact')
    """

    actions: int = 2
    name: ClassVar[str] = "decision"

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        if sample.n_classes == self.actions == 2:
            losses, most = _two_class_losses(sample)
            method = "every threshold"
        else:
            points = distinct_points(sample)
            losses, most = points.by_class(search_losses(points, self.actions)[-1]), np.inf
            method = f"heuristic search over {self.actions} actions"
        witness = decision_witness(sample, losses)
        value = float(witness.contributions.sum())
        return ErrorEstimate(
            value=value,
            # Losses may not tell apart predictions that differ in the last digit only.
            kind="exact" if value >= most - 1e-12 else "lower bound",
            notion=self,
            method=method,
            n_steps=self.actions,
            n_samples=sample.n_samples,
            witness=witness,
        )


def _two_class_losses(sample: Sample) -> tuple[Float64s, float]:
    """The best threshold on the probability of class 1, as losses, and what it attains."""
    residual = np.column_stack([class_residual(sample, 0), class_residual(sample, 1)])
    # Losses see the ratio of the two probabilities: single-precision rows do not quite sum to 1.
    share = sample.proba[:, 1] / row_sums(sample.proba)
    cut = best_vector_cut(share, residual, min_gap=0.0)
    return pair_losses(np.array([0.0, 1.0]), cut.place), cut.value
