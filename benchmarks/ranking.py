"""Who is ahead: average ranks over sets, and paired standard errors over splits."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

# Columns where more is better.
HIGHER_IS_BETTER = frozenset({"accuracy"})
# Debiased columns, which scatter around 0 for calibrated predictions: below 0 nothing is better than anything.
DEBIASED = frozenset({"canonical"})


@dataclass(frozen=True)
class Standing:
    """A method's place in one column.

    Attributes
    ----------
    method : str
        The method.
    rank : float
        Mean over sets of its rank by the mean over splits; 1 is best, ties share.
    rank_error : float
        Standard error of that mean over sets.
    wins : int
        Number of sets where no method is better.
    failures : int
        Number of sets with at least one split that failed or took too long; it is ranked last there.
    worse_than_input : int
        Number of sets where it made the predictions worse.
    """

    method: str
    rank: float
    rank_error: float
    wins: int
    failures: int
    worse_than_input: int


def means(rows, column):
    """{set: {method: mean over splits}}; NaN where a split failed, nothing where none was tried."""
    values = {}
    for row in rows:
        value = row.get(column)
        value = math.nan if row["status"] != "ok" or value is None else value
        values.setdefault(row["set"], {}).setdefault(row["method"], []).append(value)
    return {name: {m: float(np.mean(v)) for m, v in methods.items()} for name, methods in values.items()}


def complete_methods(rows):
    """The methods that were tried on every set and split that any method was tried on, and the others."""
    tried = {}
    for row in rows:
        tried.setdefault(row["method"], set()).add((row["set"], row["seed"]))
    everything = set().union(*tried.values()) if tried else set()
    complete = sorted(m for m, cells in tried.items() if cells == everything)
    return complete, sorted(set(tried) - set(complete))


def standings(rows, column, baseline="none"):
    """Every complete method's place in a column, the best first."""
    complete, _ = complete_methods(rows)
    table = means([row for row in rows if row["method"] in complete], column)
    if not complete:
        return []
    values = np.array([[oriented(table[name][m], column) for m in complete] for name in table])
    failed = np.isnan(values)
    ranks = np.array([rankdata(np.where(np.isnan(line), np.inf, line)) for line in values])
    best = np.nanmin(np.where(failed, np.inf, values), axis=1, keepdims=True)
    reference = values[:, [complete.index(baseline)]] if baseline in complete else np.full_like(best, np.inf)
    standard_error = (
        ranks.std(axis=0, ddof=1) / np.sqrt(len(ranks)) if len(ranks) > 1 else np.full(len(complete), np.nan)
    )
    made = [
        Standing(
            method,
            float(ranks[:, i].mean()),
            float(standard_error[i]),
            int(np.count_nonzero(values[:, i] <= best[:, 0])),
            int(np.count_nonzero(failed[:, i])),
            int(np.count_nonzero(values[:, i] > reference[:, 0] + 1e-9)),
        )
        for i, method in enumerate(complete)
    ]
    return sorted(made, key=lambda standing: (standing.rank, standing.method))


def ratios_to_input(rows, column, baseline="none"):
    """{method: geometric mean over sets of its value divided by that of the input}; NaN where a set is missing."""
    table = means(rows, column)
    methods = {m for per_set in table.values() for m in per_set}
    logs = {
        m: [
            math.log(_positive(per_set.get(m)) / _positive(per_set.get(baseline)))
            for per_set in table.values()
        ]
        for m in methods
    }
    return {m: float(np.exp(np.mean(values))) for m, values in logs.items()}


def _positive(value):
    """The value if it has a logarithm, else NaN."""
    return value if value is not None and value > 0 else math.nan


def oriented(value, column):
    """The value, turned so that less is better."""
    if column in DEBIASED:
        return value if math.isnan(value) else max(value, 0.0)
    return -value if column in HIGHER_IS_BETTER else value


def paired_differences(rows, name, column):
    """{method: (mean, difference to the best method, its paired standard error)} on one set.

    The standard error is that of the mean, over splits, of the difference on the same split; NaN for one split. The
    splits share rows, so it says how stable the order is on this set, not how it would be on new data.
    """
    cells = {}
    for row in rows:
        if row["set"] == name and row["status"] == "ok" and row.get(column) is not None:
            cells.setdefault(row["method"], {})[row["seed"]] = row[column]
    most = max(map(len, cells.values()), default=0)
    cells = {m: seeds for m, seeds in cells.items() if len(seeds) == most}
    if not cells:
        return {}
    average = {m: float(np.mean(list(seeds.values()))) for m, seeds in cells.items()}
    best = min(average, key=lambda m: (oriented(average[m], column), m))
    return {m: (average[m], *_paired(cells[m], cells[best])) for m in cells}


def _paired(seeds, best):
    shared = sorted(set(seeds) & set(best))
    gaps = np.array([seeds[s] - best[s] for s in shared])
    error = gaps.std(ddof=1) / np.sqrt(gaps.size) if gaps.size > 1 else math.nan
    return float(gaps.mean()), float(error)


def log_log_slope(sizes, seconds):
    """The exponent p of the power law ``seconds ~ size^p`` through the larger half of the points."""
    pairs = sorted(zip(sizes, seconds, strict=True))
    pairs = pairs[len(pairs) // 2 - (len(pairs) < 4) :] if len(pairs) > 2 else pairs
    if len(pairs) < 2:
        return math.nan
    x, y = np.log(np.array(pairs, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])
