"""Rows that are alike: groups of them, and folds that keep groups together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polycal._threads import map_threads
from polycal._typing import Bools, Floats, Ints
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Baseline
from polycal.calibrators.kernel.selection import path_to
from polycal.calibrators.kernel.trial import Choice, Trial
from polycal.calibrators.loss import Scores
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import Sample, row_blocks, split_rows

_TINY = float(np.finfo(np.float64).tiny)
# Squared distances that may be rounding.
_EQUAL = 1e-6


def find_groups(trial: Trial, baseline: Baseline, choices: tuple[Choice, Choice], seed: int) -> Ints | None:
    """Groups of rows that are alike, where held-out rows are predicted well because of rows like them; else None.

    Copies are looked for with the first model, of simple features, and with the last, of any; batches with the first of
    them that gains enough to be wrong.
    """
    first, last = choices
    models = (first,) if last.features is first.features else choices
    doubtful = [choice for choice in models if _could_lose(trial, choice)]
    if not doubtful:
        return None
    nearest, levels = like_groups(trial.sample, tuning.LIKE_GROUPS * len(trial.folds))
    look = _Look(trial, baseline, trial.sample.labels[nearest] != trial.sample.labels, seed)
    # No model would err more often than the baseline, if it had not seen rows nearby: these must err far less often.
    if look.differs.mean() > tuning.DIFFERING * (1.0 - trial.baseline.accuracy):
        return None
    # Rows without copies are joined in fewer and larger groups.
    are_copied = bool(levels) and levels[0].max() + 1 >= tuning.COPIED * nearest.size
    if are_copied and any(look.held_together(choice, levels[0]).are_copies for choice in doubtful):
        return levels[0]
    return _find_batches(look, doubtful[0], levels, 1 if are_copied else 0)


def _find_batches(look: "_Look", choice: Choice, levels: Sequence[Ints], start: int) -> Ints | None:
    """The smallest groups that lie apart, or hold what a model gains; then larger ones that leave far less of it."""
    labels, found, enough = look.trial.sample.labels, None, np.inf
    if labels.size < tuning.BATCHED_ROWS:
        return None
    # Where groups are all there is of a class, no model could learn it from the others.
    n_labels = np.unique(labels).size
    fewest = n_labels + min(n_labels, tuning.MORE_GROUPS)
    for level, groups in enumerate(levels[start:], start):
        if found is None and look.are_apart(groups):
            return groups
        if groups.max() + 1 < fewest:
            continue
        held = look.held_together(choice, groups)
        if found is None:
            is_better = held.are_copies if level == 0 else held.are_batches
        else:
            is_better = held.left < tuning.FAR_LESS * enough
        if is_better:
            found, enough = groups, held.left
    return found


def _could_lose(trial: Trial, choice: Choice) -> bool:
    """Whether the baseline, which groups cannot make worse, has a loss that is much above a model's."""
    if choice.features is None:
        return False
    return (1.0 + tuning.LIKE_GAP) * _promise(trial, choice.change).log_loss < trial.baseline.log_loss


@dataclass(frozen=True)
class _HeldTogether:
    """What becomes of a model where groups share a fold.

    Attributes
    ----------
    left : float
        Of its gain on the baseline; 1 if the difference may be noise.
    alone : float
        The part of what surprises it then whose nearest row has another label.
    differs : float
        The part of all rows whose nearest row has another label.
    """

    left: float
    alone: float
    differs: float

    @property
    def are_copies(self) -> bool:
        """Whether small groups, of a row and its nearest, hold most of the gain."""
        return self.left < tuning.COPIES_LEFT and self.alone < tuning.COPIES_ALONE

    @property
    def are_batches(self) -> bool:
        """Whether larger groups hold nearly all of it, and what surprises a model surprises it in the rows nearby too.

        Large groups leave little of what any model learns. But labels of independent rows differ where they are hard
        to predict; those of a batch do not differ more there than elsewhere.
        """
        if self.alone < tuning.HARDLY_ALONE:
            return self.left < tuning.SHARED_LEFT
        most = max(tuning.BATCHES_ALONE, tuning.MORE_ALONE * self.differs)
        return self.left < tuning.BATCHES_LEFT and self.alone < most


@dataclass(frozen=True, eq=False)
class _Look:
    """What models are looked at with.

    Attributes
    ----------
    trial : Trial
    baseline : Baseline
    differs : ndarray of bool, shape (n_samples,)
        Whether the nearest row has another label.
    seed : int
        Of the folds.
    """

    trial: Trial
    baseline: Baseline
    differs: Bools
    seed: int

    def are_apart(self, groups: Ints) -> bool:
        """Whether most rows are much nearer to one of their group than to any other, and not equal to it.

        Classes that a classifier tells apart but takes for one another lie apart too: it must mostly be right. Rows in
        a crowd are near to one another: groups must not be large.
        """
        n_groups = int(groups.max()) + 1
        if self.trial.baseline.accuracy < tuning.MOSTLY_RIGHT or groups.size > tuning.DENSE_ROWS * n_groups:
            return False
        points = _main_directions(self.trial.sample)
        squares = np.einsum("ij,ij->i", points, points)
        inside, outside = np.empty((2, groups.size))

        def find(rows: slice) -> None:
            distances = _distances(points, squares, rows)
            is_own = groups[rows, None] == groups
            inside[rows] = np.where(is_own, distances, np.inf).min(axis=1)
            outside[rows] = np.where(is_own, np.inf, distances).min(axis=1)

        map_threads(find, row_blocks(groups.size, groups.size))
        is_far = (inside > _EQUAL) & (outside > tuning.APART**2 * inside)
        return float(is_far.mean()) > tuning.MOST

    def held_together(self, choice: Choice, groups: Ints) -> _HeldTogether:
        """Fit a model again where groups share a fold."""
        trial = self.trial
        order, folds = sort_by_fold(grouped_parts(trial.sample, groups, len(trial.folds), self.seed))
        sample = trial.sample.take(order)
        again = Trial.of(sample, folds, [self.baseline.seen(sample)], min(trial.tried, len(folds)))
        random = _promise(trial, choice.change)
        grouped = _promise(again, path_to(again, choice, choice.blocks))
        excess, error = _difference(random, grouped, trial, again, order, groups)
        is_noise = excess < max(tuning.LIKE_ERRORS * error, tuning.LIKE_GAP * random.log_loss)
        gain = trial.baseline.log_loss - random.log_loss
        differs = self.differs[order][: grouped.mass.size]
        surprise = grouped.mass * -np.expm1(-grouped.log_losses)
        return _HeldTogether(
            left=1.0 if is_noise else (gain - excess) / gain,
            alone=float(surprise @ differs) / max(float(surprise.sum()), _TINY),
            differs=float(grouped.mass @ differs),
        )


def _promise(trial: Trial, change: Floats) -> Scores:
    """Scores of held-out rows with the multipliers that are best for them."""
    scale, amount = trial.mix([change])
    return trial.scores(change, scale, amount)


def _difference(
    random: Scores, grouped: Scores, trial: Trial, again: Trial, order: Ints, groups: Ints
) -> tuple[float, float]:
    """How much more log loss folds of groups promise, and the standard error of that; row by row where all rows are
    held out on both sides, else by what is gained on the baseline.
    """
    if random.log_losses.size == grouped.log_losses.size == order.size:
        return grouped.take(np.argsort(order)).excess(random, groups)
    more, by_group = grouped.excess(again.baseline, groups[order][: grouped.log_losses.size])
    less, by_row = random.excess(trial.baseline, np.arange(random.log_losses.size))
    return more - less, float(np.hypot(by_group, by_row))


def grouped_parts(sample: Sample, groups: Ints, n_parts: int, seed: int) -> list[Ints]:
    """Parts of about the same size, each increasing, with every group in one of them: larger groups first.

    Like those of `split_rows`, they do not depend on the order of the rows.
    """
    order = np.concatenate(split_rows(sample, (1.0,) * sample.n_samples, seed))
    _, first, of_row = np.unique(groups[order], return_index=True, return_inverse=True)
    sizes = np.bincount(of_row)
    n_parts = min(n_parts, sizes.size)
    part_of, filled = np.empty(sizes.size, dtype=np.int64), np.zeros(n_parts)
    for group in np.lexsort([first, -sizes]):
        part_of[group] = filled.argmin()
        filled[part_of[group]] += sizes[group]
    return [np.sort(order[part_of[of_row] == part]) for part in range(n_parts)]


def like_groups(sample: Sample, least: int) -> tuple[Ints, list[Ints]]:
    """The row nearest to each, and groups of rows that are nearest to one another, level by level, so many at least.

    Every row is joined with the row nearest to it, then every group with the group nearest to it, and so on: a row and
    its copies are never in two groups.
    """
    points = _main_directions(sample)
    nearest = _nearest(points)
    groups, levels = _joined(nearest), list[Ints]()
    while groups.max() + 1 >= least:
        levels.append(groups)
        groups = _joined(_nearest(_means(points, groups)))[groups]
    return nearest, levels


def _main_directions(sample: Sample) -> Floats:
    """Centred logarithms; where there are many, along the few directions in which they differ most."""
    points = np.log(np.maximum(sample.proba, tuning.LIKE_FLOOR, dtype=np.float64))
    points -= points.mean(axis=1, keepdims=True)
    n, k = points.shape
    if n * n * k <= tuning.MANY_DISTANCES or k <= tuning.LIKE_DIRECTIONS:
        return points
    points -= points.mean(axis=0)
    directions = np.linalg.eigh(points.T @ points)[1][:, -tuning.LIKE_DIRECTIONS :]
    return np.asarray(points @ directions, dtype=np.float32)


def _means(points: Floats, groups: Ints) -> Floats:
    """The mean of each group."""
    shape = (groups.max() + 1, groups.size)
    ones = np.ones(groups.size, dtype=points.dtype)
    sums = coo_array((ones, (groups, np.arange(groups.size))), shape=shape).tocsr()
    return np.asarray(sums @ points / np.bincount(groups).astype(points.dtype)[:, None])


def _nearest(points: Floats) -> Ints:
    """The point nearest to each."""
    squares = np.einsum("ij,ij->i", points, points)
    nearest = np.empty(len(points), dtype=np.int64)

    def find(rows: slice) -> None:
        nearest[rows] = _distances(points, squares, rows).argmin(axis=1)

    map_threads(find, row_blocks(len(points), len(points)))
    return nearest


def _joined(nearest: Ints) -> Ints:
    """The component of each point where it is joined with its nearest."""
    n = nearest.size
    graph = coo_array((np.ones(n), (np.arange(n), nearest)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _distances(points: Floats, squares: Floats, rows: slice) -> Floats:
    """Squared distances of some points from all others, given their squared lengths; infinite from themselves."""
    distances: Floats = (-2.0 * points[rows]) @ points.T
    distances += squares
    distances += squares[rows, None]
    distances[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
    return distances
