"""Rows that are alike: groups of them, and folds that keep groups together."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polycal._threads import map_threads
from polycal._typing import Floats, Ints
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Baseline
from polycal.calibrators.kernel.selection import path_to
from polycal.calibrators.kernel.trial import Choice, Trial
from polycal.calibrators.loss import Scores
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import Sample, row_blocks, split_rows


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
    levels = like_groups(trial.sample, tuning.LIKE_GROUPS * len(trial.folds))
    for choice in doubtful:
        found = _find_near_copies(trial, baseline, choice, levels, seed)
        if found is not None:
            return found
    return _find_batches(trial, baseline, doubtful[0], levels, seed)


def _find_near_copies(
    trial: Trial, baseline: Baseline, choice: Choice, levels: Sequence[Ints], seed: int
) -> Ints | None:
    """Groups of a row and its nearest, where hardly anything is left of a model's gain when they share a fold."""
    # Rows without copies are joined in fewer and larger groups.
    if not levels or levels[0].max() + 1 < tuning.COPIED * levels[0].size:
        return None
    left, _ = _left(trial, baseline, choice, levels[0], seed)
    return levels[0] if left < tuning.COPIES_LEFT else None


def _find_batches(
    trial: Trial, baseline: Baseline, choice: Choice, levels: Sequence[Ints], seed: int
) -> Ints | None:
    """Larger groups that leave little, if they are far apart or cost much; then still larger ones that leave less."""
    found, enough = None, tuning.BATCHES_LEFT
    for groups in levels[1:]:
        if found is None and groups.size > tuning.LIKE_ROWS * (groups.max() + 1):
            break
        left, times = _left(trial, baseline, choice, groups, seed)
        if left < enough and (found is not None or times > tuning.COSTLY or _are_apart(trial.sample, groups)):
            found, enough = groups, left - tuning.LESS_LEFT
    return found


def _left(trial: Trial, baseline: Baseline, choice: Choice, groups: Ints, seed: int) -> tuple[float, float]:
    """What is left of a model's gain on the baseline where groups share a fold, and the loss as a multiple of that on
    random folds: 1 and 1 if the difference may be noise.
    """
    random, grouped = _promises(trial, baseline, choice, groups, seed)
    if grouped < (1.0 + tuning.LIKE_GAP) * random:
        return 1.0, 1.0
    return (trial.baseline.log_loss - grouped) / (trial.baseline.log_loss - random), grouped / random


def _are_apart(sample: Sample, groups: Ints) -> bool:
    """Whether most rows are much nearer to one of their group than to any other."""
    points = _main_directions(sample)
    squares = np.einsum("ij,ij->i", points, points)
    inside, outside = np.empty((2, groups.size))

    def find(rows: slice) -> None:
        distances = _distances(points, squares, rows)
        is_own = groups[rows, None] == groups
        inside[rows] = np.where(is_own, distances, np.inf).min(axis=1)
        outside[rows] = np.where(is_own, np.inf, distances).min(axis=1)

    map_threads(find, row_blocks(groups.size, groups.size))
    return bool(np.median(outside - tuning.APART**2 * inside) > 0.0)


def _could_lose(trial: Trial, choice: Choice) -> bool:
    """Whether the baseline, which groups cannot make worse, has a loss that is much above a model's."""
    return choice.features is not None and (
        (1.0 + tuning.LIKE_GAP) * _promise(trial, choice.change).log_loss < trial.baseline.log_loss
    )


def _promises(
    trial: Trial, baseline: Baseline, choice: Choice, groups: Ints, seed: int
) -> tuple[float, float]:
    """The log loss of held-out rows on random folds, and that on folds of groups; the same where they may be."""
    if choice.features is None or groups.max() + 1 == groups.size:
        return 0.0, 0.0
    order, folds = sort_by_fold(grouped_parts(trial.sample, groups, len(trial.folds), seed))
    sample = trial.sample.take(order)
    again = Trial.of(sample, folds, [baseline.seen(sample)], min(trial.tried, len(folds)))
    random, grouped = (
        _promise(trial, choice.change),
        _promise(again, path_to(again, choice.features, choice.path, choice.blocks)),
    )
    excess, error = _difference(random, grouped, trial, again, order, groups)
    return random.log_loss, random.log_loss + (excess if excess > tuning.LIKE_ERRORS * error else 0.0)


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


def like_groups(sample: Sample, least: int) -> list[Ints]:
    """Groups of rows that are nearest to one another, level by level, of at least so many groups.

    Every row is joined with the row nearest to it, then every group with the group nearest to it, and so on: a row and
    its copies are never in two groups.
    """
    points = _main_directions(sample)
    groups, levels = np.arange(sample.n_samples), list[Ints]()
    while True:
        groups = _joined(_means(points, groups))[groups]
        if groups.max() + 1 < least:
            return levels
        levels.append(groups)


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


def _joined(points: Floats) -> Ints:
    """The component of each point where it is joined with its nearest."""
    squares = np.einsum("ij,ij->i", points, points)
    nearest = np.empty(len(points), dtype=np.int64)

    def find(rows: slice) -> None:
        nearest[rows] = _distances(points, squares, rows).argmin(axis=1)

    map_threads(find, row_blocks(len(points), len(points)))
    graph = coo_array((np.ones(len(points)), (np.arange(len(points)), nearest)), shape=(len(points),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _distances(points: Floats, squares: Floats, rows: slice) -> Floats:
    """Squared distances of some points from all others, given their squared lengths; infinite from themselves."""
    distances: Floats = (-2.0 * points[rows]) @ points.T
    distances += squares
    distances += squares[rows, None]
    distances[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
    return distances
