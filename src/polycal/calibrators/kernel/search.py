"""The whole search of the kernel calibrator: folds, model, pool; and how a fit goes on from the one before."""

from dataclasses import dataclass, replace

import numpy as np

from polycal._threads import now_doing
from polycal._typing import Ints
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.alike import find_groups, grouped_parts
from polycal.calibrators.kernel.baseline import Baseline, fit_baseline
from polycal.calibrators.kernel.pooling import Pool, fit_pool, without_folds
from polycal.calibrators.kernel.selection import choose_first, choose_model, complete, path_to, renew
from polycal.calibrators.kernel.trial import Choice, Gain, Trial, is_much_work
from polycal.calibrators.loss import total_weight
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import Sample, row_lots, split_rows
from polycal.steps import Affine, Linear, Log, Program, Softmax, Sum


@dataclass(frozen=True, eq=False)
class Found:
    """What a search finds.

    Attributes
    ----------
    sample : Sample
        Sorted by fold.
    baseline : Baseline
        Of all rows.
    choice : Choice
    pool : Pool
    fold_of : ndarray of int64, shape (n_samples,)
        The fold of each row, in the order of the rows given; empty where groups were found, or too few rows.
    n_searched : int
        How many were counted in the last search from the beginning.
    gains : dict
        What each part gained on rows not seen.
    n_groups : int
        Of rows that were held out together; as many as there are rows where each was by itself.
    seed : int
        Of the folds.
    """

    sample: Sample
    baseline: Baseline
    choice: Choice
    pool: Pool
    fold_of: Ints
    n_searched: int
    gains: dict[str, Gain]
    n_groups: int
    seed: int

    def program(self) -> Program:
        """The map."""
        kernel = _program(self.baseline, self.choice)
        return self.pool.steps(self.pool.members(self.sample, kernel))

    def to_go_on(self, index: Ints) -> "Last | None":
        """What the next fit needs, given where its rows come from."""
        if self.fold_of.size == 0:
            return None
        choice = self.choice.without_rows()
        fitted = self.baseline, choice, self.pool, self.fold_of, self.n_searched
        return Last(*fitted, index, self.gains, self.seed)


@dataclass(frozen=True, eq=False)
class Last:
    """What a fit leaves to the next, which has the same rows and more.

    Attributes
    ----------
    baseline, choice, pool, fold_of, n_searched, gains, seed
        As in `Found`.
    index : ndarray of int64, shape (n_samples,)
        Which row each counted one is.
    """

    baseline: Baseline
    choice: Choice
    pool: Pool
    fold_of: Ints
    n_searched: int
    index: Ints
    gains: dict[str, Gain]
    seed: int

    def is_outgrown(self, n_rows: int) -> bool:
        """Whether so many rows are worth a search from the beginning."""
        if n_rows > self.n_searched * (tuning.SEARCH_POOL_AGAIN if self.pool.gains else tuning.SEARCH_AGAIN):
            return True
        enough = tuning.NEARLY_SHOWN * n_rows
        may_gain = any(self.n_searched < gain.needed <= enough for gain in self.gains.values())
        return may_gain and n_rows >= tuning.WORTH_A_SEARCH * self.n_searched


def search(sample: Sample, groups: Ints | None, n_folds: int, seed: int) -> Found:
    """Folds of random rows, or of groups where there are some or rows are found to be alike; the model, the pool."""
    parts = _parts(sample, groups, n_folds, seed)
    order, folds = sort_by_fold(parts)
    sample, of_row = sample.take(order), np.arange(order.size) if groups is None else groups[order]
    now_doing("temperature, background and curve", 0.0)
    baseline = fit_baseline(sample)
    trial = Trial.of(sample, folds, [baseline.seen(sample)], 1 if is_much_work(sample) else len(folds))
    gains, alone = {"curve": _gain_of_baseline(trial)}, _alone(trial, Choice())
    none, n_groups = np.empty(0, dtype=np.int64), int(of_row.max()) + 1
    found = Found(sample, baseline, Choice(), alone, none, order.size, gains, n_groups, seed)
    if sample.n_samples < 2 * n_folds or len(folds) < 2:
        return found
    first = choose_first(trial)
    choice = choose_model(trial, baseline.mixture, seed, first)
    if groups is None:
        now_doing("rows that are alike", 0.7)
        groups = find_groups(trial, baseline, (first, choice), seed)
        if groups is not None:
            # The next fit looks for groups again.
            again = search(_counted_once(sample, groups), groups, n_folds, seed)
            return replace(again, fold_of=found.fold_of)
    now_doing("all folds", 0.8)
    trial = trial.with_folds(len(folds))
    choice = complete(trial, choice)
    pool = _fit_pool(trial, of_row, choice) if _are_few(of_row) else _alone(trial, choice)
    fold_of = np.empty(order.size, dtype=np.int64)
    fold_of[order] = np.repeat(np.arange(len(folds)), [part.size for part in parts])
    gains = {**gains, **choice.gains, **pool.gains}
    return replace(found, choice=choice, pool=pool, fold_of=fold_of, gains=gains)


def go_on(last: Last, sample: Sample, groups: Ints | None) -> Found | None:
    """The model of the last fit, fitted to its rows and more below; None where it is time to search anew.

    Old rows stay in their folds, so that no model starts from one that has seen the rows it is to be judged by.
    """
    n_folds, n = int(last.fold_of.max()) + 1, sample.n_samples
    if last.is_outgrown(n):
        return None
    fold_of = np.concatenate([last.fold_of, _deal(sample, groups, last, n_folds)])
    order, folds = sort_by_fold([np.flatnonzero(fold_of == fold) for fold in range(n_folds)])
    rows = sample.take(order)
    baseline = fit_baseline(rows, last.baseline)
    trial = Trial.of(rows, folds, [baseline.seen(rows)])
    choice = renew(trial, last.choice)
    if choice is None:
        return None
    pool = last.pool if last.pool.gains else _alone(trial, choice)
    n_groups = n if groups is None else int(groups.max()) + 1
    return Found(rows, baseline, choice, pool, fold_of, last.n_searched, last.gains, n_groups, last.seed)


def _parts(sample: Sample, groups: Ints | None, n_folds: int, seed: int) -> list[Ints]:
    """The rows of each fold: even parts of few rows; of more, by lot, so that more rows move none to another fold."""
    if groups is not None:
        return grouped_parts(sample, groups, n_folds, seed)
    if sample.n_samples <= max(tuning.FEW_ROWS, tuning.FOLD_ROWS * n_folds):
        return split_rows(sample, (1.0,) * n_folds, seed)
    fold_of = _by_lot(sample, n_folds, seed)
    return [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]


def _by_lot(sample: Sample, n_folds: int, seed: int) -> Ints:
    """A fold for each row."""
    return (row_lots(sample, seed) * n_folds).astype(np.int64)


def _deal(sample: Sample, groups: Ints | None, last: Last, n_folds: int) -> Ints:
    """Folds for the rows beyond those that have one: a group's own, else any."""
    start = last.fold_of.size
    if groups is None:
        return _by_lot(sample, n_folds, last.seed)[start:]
    more = np.arange(start, sample.n_samples)
    dealt = np.empty(more.size, dtype=np.int64)
    for fold, part in enumerate(grouped_parts(sample.take(more), groups[more], n_folds, last.seed)):
        dealt[part] = fold
    known = dict(zip(groups[:start].tolist(), last.fold_of.tolist(), strict=True))
    return np.array(
        [known.get(group, fold) for group, fold in zip(groups[more].tolist(), dealt, strict=True)]
    )


def _are_few(groups: Ints) -> bool:
    """Whether there are so few rows, or groups of them, that a pool predicts."""
    return int(groups.max()) < tuning.FEW_ROWS


def _counted_once(sample: Sample, groups: Ints) -> Sample:
    """The sample with weights that make it count for as many rows as it has groups."""
    weight = np.ones(groups.size) if sample.sample_weight is None else sample.sample_weight
    return replace(sample, sample_weight=weight * (groups.max() + 1) / groups.size)


def _fit_pool(trial: Trial, groups: Ints, choice: Choice) -> Pool:
    """The pool of the input, temperature scaling, vector scaling and the model chosen."""
    sample, folds = trial.sample, trial.folds
    without = without_folds(sample, folds, lambda _, rest: fit_baseline(rest).seen(sample))
    # Features of the input are at the temperature of all rows, as the landmarks are that they are compared with.
    without = [replace(seen, log_tempered=trial.seen[0].log_tempered) for seen in without]
    again = Trial.of(sample, folds, without)
    chosen = again.held_out(choice, path_to(again, choice))
    errors = tuning.DOUBTFUL_ERRORS if _input_is_enough(trial, choice.gain) else tuning.POOL_ERRORS
    return fit_pool(sample, groups, folds, chosen, errors)


def _gain_of_baseline(trial: Trial) -> Gain:
    """What the baseline gains on the input, less what its numbers gain by chance on the rows they were fitted to."""
    if not np.isfinite(trial.input.log_loss):
        return Gain(np.inf, np.nan, np.nan)
    more, error = trial.baseline.excess(trial.input, np.arange(trial.judged.n_samples))
    return Gain(-more - tuning.BASELINE_NUMBERS / total_weight(trial.sample), error, np.nan)


def _alone(trial: Trial, choice: Choice) -> Pool:
    """The model alone, or the input where that is enough."""
    return Pool.of_kernel(0.0 if _input_is_enough(trial, choice.gain) else 1.0)


def _input_is_enough(trial: Trial, gain: float) -> bool:
    """Whether the input is no worse than a model of this gain on the baseline, less what numbers gain by chance."""
    chance = tuning.BASELINE_NUMBERS / total_weight(trial.sample)
    luck = chance / max(trial.baseline.log_loss, chance)
    possible = bool(np.isfinite(trial.input.log_loss))
    return possible and trial.input.relative_gain(trial.baseline)[0] + luck >= gain


def _program(baseline: Baseline, choice: Choice) -> Program:
    """The model chosen."""
    mixture = baseline.mixture
    tempered, logits = mixture.tempering_steps(), (*mixture.mixing_steps(), *baseline.curve.logit_steps())
    if choice.features is None:
        return *tempered, *logits, Softmax()
    scaled = (Affine(np.array([choice.scale]), np.zeros(1)),)
    change = choice.features.steps(choice.final_weight())
    if choice.features.source == "input":
        total: Program = *tempered, Sum(((*logits, *scaled), change))
    else:
        total = *tempered, *logits, Sum((scaled, (Softmax(), *change)))
    matrix = choice.final_matrix()
    if matrix is None:
        return *total, Softmax()
    return Sum((total, (Log(), Linear(matrix[:-1], matrix[-1])))), Softmax()
