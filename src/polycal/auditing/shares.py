"""How an audit's alpha is shared, so that everything it shows holds together.

Every statement of an audit that may be wrong takes a share of one alpha, and all shares add up to 1. Costs, nodes and
slices take theirs only where they are asked for; all else then shares what is left.
"""

from collections.abc import Collection
from typing import Literal, get_args

# Of the alpha of all bounds: what the lower bounds of findings may fail with, and what the bounds of questions may,
# from below and from above: of confidence and groups, of ranks, and of classes. They add up to 1.
FOUND_SHARE, NAMED_SHARES, RANK_SHARES, CLASS_SHARES = 0.5, (0.05, 0.3), (0.02, 0.03), (0.05, 0.05)
# Of the alpha of all tests, what those by all rows get. Certificates get the rest, as their lower bounds do: an error
# with a positive bound is significant.
WHOLE_SHARE = 0.5
# Of what nodes get, the bounds from below and from above.
NODE_SHARES = (0.5, 0.5)
# What each kind of statement gets that is made only where it is asked for.
EXTRA_SHARE = 0.15

# Of the alpha of slices: what those found may fail with where some are named too; and of that of named slices, what the
# bounds of confidence and groups, of ranks, and of classes may, from below and from above. The latter add up to 1.
SLICE_FOUND_SHARE = 0.5
SLICE_NAMED_SHARES, SLICE_RANK_SHARES, SLICE_CLASS_SHARES = (0.15, 0.45), (0.05, 0.05), (0.15, 0.15)
# Of the alpha of named slices, what the intervals of their costs may fail with, if there are losses.
SLICE_COST_SHARE = 0.3
# Of what costs get, for each loss: the intervals of what was promised, paid, and of the difference; the lower bound of
# what swaps save; and what is said of a calibrator, if there is one.
COST_SHARES, UNTRIED_COST_SHARES = (0.25, 0.25, 0.5), (0.5, 0.5, 0.0)

Extra = Literal["costs", "nodes", "slices"]


def core_share(extras: Collection[Extra]) -> float:
    """What is left of alpha for findings, confidence, ranks, groups and classes.

    Parameters
    ----------
    extras : collection of {"costs", "nodes", "slices"}
        What is asked for beside them.
    """
    unknown = set(extras) - set(get_args(Extra))
    if unknown:
        raise ValueError(f"no share of alpha is kept for {sorted(unknown)}.")
    return 1.0 - EXTRA_SHARE * len(set(extras))


def found_level(alpha: float, n_findings: int) -> float:
    """The level of each lower bound of a finding."""
    return FOUND_SHARE * alpha / max(n_findings, 1)
