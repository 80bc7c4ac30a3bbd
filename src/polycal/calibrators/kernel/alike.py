"""Rows that are alike: groups of them, and folds that keep groups together."""

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

    Near copies are looked for with the first model of simple features and with the last, of any; batches with the
    first only, since rich features learn from rows nearby, as they should.
    """
    first, last = choices
    found = find_near_copies(trial, baseline, first, seed)
    if found is None:
        found = find_batches(trial, baseline, first, seed)
    if found is None and last.features is not first.features:
        found = find_near_copies(trial, baseline, last, seed)
    return found


def find_near_copies(trial: Trial, baseline: Baseline, choice: Choice, seed: int) -> Ints | None:
    """Groups of a row and its nearest, where hardly anything is left of a model's gain when they share a fold."""
    if not _could_lose(trial, choice, 1.0 + tuning.LIKE_GAP):
        return None
    groups = like_groups(trial.sample, tuning.PAIRED_ROWS, tuning.LIKE_GROUPS * len(trial.folds))
    # Rows without copies are joined in fewer and larger groups.
    if groups.max() + 1 < tuning.COPIED * groups.size:
        return None
    random, grouped = _promises(trial, baseline, choice, groups, seed)
    is_much = grouped > (1.0 + tuning.LIKE_GAP) * random
    left = trial.baseline.log_loss - grouped
    is_gone = is_much and left < tuning.LIKE_LEFT * (trial.baseline.log_loss - random)
    return groups if is_gone else None


def find_batches(trial: Trial, baseline: Baseline, choice: Choice, seed: int) -> Ints | None:
    """Larger groups of like rows, where a model's loss doubles when they share a fold."""
    if not _could_lose(trial, choice, 2.0):
        return None
    groups = like_groups(trial.sample, tuning.LIKE_ROWS, tuning.LIKE_GROUPS * len(trial.folds))
    random, grouped = _promises(trial, baseline, choice, groups, seed)
    return groups if grouped > 2.0 * random else None


def _could_lose(trial: Trial, choice: Choice, times: float) -> bool:
    """Whether so many times the loss of a model is more than the baseline's, which groups cannot make worse."""
    return choice.features is not None and (
        times * _promise(trial, choice.change).log_loss < trial.baseline.log_loss
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
        _promise(again, path_to(again, choice.features, choice.path)),
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


def like_groups(sample: Sample, size: float, least: int) -> Ints:
    """Groups of rows that are nearest to one another, of that size on average, but at least so many groups.

    Every row is joined with the row nearest to it, then every group with the group nearest to it, and so on: a row and
    its copies are never in two groups.
    """
    points = _main_directions(sample)
    groups = np.arange(sample.n_samples)
    while groups.max() + 1 > sample.n_samples / size:
        joined = _joined(_means(points, groups))[groups]
        if joined.max() + 1 < least:
            break
        groups = joined
    return groups


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
        distances = squares - 2.0 * (points[rows] @ points.T)
        distances[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = distances.argmin(axis=1)

    map_threads(find, row_blocks(len(points), len(points)))
    graph = coo_array((np.ones(len(points)), (np.arange(len(points)), nearest)), shape=(len(points),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
