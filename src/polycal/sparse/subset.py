"""The set of classes whose summed probability is most wrong, searched in lists of classes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from polycal._typing import Bools, Ints
from polycal._validation import check_integer
from polycal.families.landscape import Point
from polycal.families.questions import SubsetWitness
from polycal.families.subset import climb_all, size_limit
from polycal.sparse._gate import sparse_sample
from polycal.sparse._landscape import SparseLandscape
from polycal.sparse._sample import Remainder, SparseSample
from polycal.sparse._shrunken import shrunken_landscape
from polycal.sparse._starts import landscape_mean, start_sets
from polycal.sparse.smooth import bounded_error

# If something is unknown, the sets where this many climbs ended are thinned, each time to this share of its classes:
# the fewer classes, the less of the unknown can belong to them.
_N_FINALISTS, _THINNED = 3, 0.7


def find_subset(
    y_true: Any,
    y_proba: Any,
    *,
    max_size: int | None = None,
    n_starts: int = 4,
    random_state: int = 0,
    remainder: Remainder = "unknown",
    sample_weight: Any = None,
    class_names: Any = None,
) -> SubsetWitness:
    r"""Look for the set of classes whose summed probability is most wrong, without making lists dense.

    Parameters
    ----------
    y_true, y_proba, remainder, sample_weight, class_names
        As for `sparse_sample`.
    max_size : int, optional
        The largest number of classes in the set; by default any. The fewer classes, the less of what lists leave
        over can belong to them; with ``remainder="class"`` none of it is in doubt.
    n_starts : int, default 4
        Random sets to start from, beside those that `SubsetAuditor` starts from.
    random_state : int, default 0
        Seed of the random starts.

    Returns
    -------
    SubsetWitness
        A claim, not a proof: judge it by `polycal.sparse.certify` on rows that were not given to the search.

    See Also
    --------
    polycal.SubsetAuditor : The same search for full predictions, with its regularisation.

    Notes
    -----
    Search: with the rest of each row shared equally, by the climbs of `SubsetAuditor`. A class that a row does not
    list changes it by the same amount as any other, so the gain of flipping each class takes one pass over the
    listed entries; the starts are eigenvectors found by sparse products. If the rest is unknown, the sets found
    are thinned too; among all of them that with the largest value is chosen, less what truncation may hide of it, and
    it comes with the weight function that keeps most whatever the rest may be.
    Cost: O(listed entries + n log n + k) for each of a few hundred steps; memory O(listed entries + k).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> top = csr_array(np.repeat([[0.3, 0.3, 0.3, 0.0, 0.0, 0.0]], 100, axis=0))
    >>> y_true = np.repeat([0, 1, 2, 3, 4, 5], [60, 10, 21, 3, 3, 3])
    >>> polycal.sparse.find_subset(y_true, top).subset
    [0]
    """
    if max_size is not None:
        check_integer(max_size, "max_size", minimum=1)
    check_integer(n_starts, "n_starts", minimum=0)
    check_integer(random_state, "random_state", minimum=0)
    sample = sparse_sample(
        y_true, y_proba, remainder=remainder, sample_weight=sample_weight, class_names=class_names
    )
    return search_lists(sample, max_size, n_starts, random_state)


def search_lists(sample: SparseSample, max_size: int | None, n_starts: int, seed: int) -> SubsetWitness:
    """Look for a set of classes in a validated sample."""
    if sample.sample_weight is not None:
        sample = sample.take(sample.sample_weight > 0)
    limit = size_limit(sample.n_classes, max_size)
    landscape = shrunken_landscape(sample)
    starts = start_sets(landscape, limit, n_starts, seed)
    climbs = climb_all(landscape, starts, limit)
    sides = [_side(landscape, climb.point.member, limit) for climb in climbs[:_N_FINALISTS]]
    if sample.remainder in {"spread", "class"} or not sample.rest.any():
        members = np.flatnonzero(sides[0])
    else:
        points = [point for side in sides for point in _thinned(landscape, side)]
        members = np.flatnonzero(max(points, key=lambda point: _kept(sample, point)).member)
    phi = bounded_error(sample, members)[1]
    return SubsetWitness(members, phi.simplified(), sample.n_classes, sample.class_names)


def _side(landscape: SparseLandscape, member: Bools, limit: int) -> Bools:
    """The set or its complement, which are one question if both are allowed: the smaller, or less predicted."""
    if limit < landscape.n_classes - 1:
        return member
    mean = landscape_mean(landscape)
    return min((member, ~member), key=lambda side: (int(side.sum()), float(mean[side].sum())))


def _thinned(landscape: SparseLandscape, member: Bools) -> Iterator[Point]:
    """The set, and ever smaller ones, without the classes that matter least."""
    point = landscape.at(member)
    members = np.flatnonzero(member)
    order = members[np.argsort(landscape.quick_gains(point)[members], kind="stable")]
    yield point
    while order.size > 1:
        order = order[: int(_THINNED * order.size)]
        chosen = np.zeros(landscape.n_classes, dtype=np.bool_)
        chosen[order] = True
        yield landscape.at(chosen)


def _kept(sample: SparseSample, point: Point) -> float:
    """The value of a set, less what truncation may hide of it."""
    members: Ints = np.flatnonzero(point.member)
    shared = bounded_error(replace(sample, remainder="spread"), members)[0].value
    return point.value - (shared - bounded_error(sample, members)[0].low)
