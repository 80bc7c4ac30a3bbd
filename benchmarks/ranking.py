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
    worse_than_input : int or None
        Number of sets where it made the predictions worse; None where the input itself is not known on every set,
        and for a method that finished on none.
    """

    method: str
    rank: float
    rank_error: float
    wins: int
    failures: int
    worse_than_input: int | None


@dataclass(frozen=True)
class Field:
    """Who is ranked, and on what.

    A split counts if at least half of the methods that occur anywhere were tried on it. A method is ranked if it was
    tried on every split that counts; failures are tries. So neither a set that has only begun nor a method that is
    new takes the ranks from all others.

    Attributes
    ----------
    ranked, unranked : tuple of str
        The methods, in alphabetical order.
    counted : frozenset of (str, int)
        The sets and splits that count.
    begun : dict of str to tuple of int
        The splits of each set that do not.
    """

    ranked: tuple
    unranked: tuple
    counted: frozenset
    begun: dict

    @property
    def sets(self):
        """The sets of which some split counts."""
        return sorted({name for name, _ in self.counted})

    def keeps(self, row):
        """Whether a row is of a split that counts."""
        return (row["set"], row["seed"]) in self.counted


def field_of(rows):
    """Who is ranked, and on what."""
    tried = {}
    for row in rows:
        tried.setdefault((row["set"], row["seed"]), set()).add(row["method"])
    methods = sorted(set().union(*tried.values()))
    counted = frozenset(cell for cell, there in tried.items() if 2 * len(there) >= len(methods))
    begun = {}
    for name, seed in sorted(set(tried) - counted):
        begun[name] = (*begun.get(name, ()), seed)
    everywhere = set(methods).intersection(*(tried[cell] for cell in counted)) if counted else set()
    ranked = tuple(m for m in methods if m in everywhere)
    return Field(ranked, tuple(m for m in methods if m not in everywhere), counted, begun)


def means(rows, column):
    """{set: {method: mean over splits}}; NaN where a split failed, nothing where none was tried."""
    values = {}
    for row in rows:
        value = row.get(column)
        value = math.nan if row["status"] != "ok" or value is None else value
        values.setdefault(row["set"], {}).setdefault(row["method"], []).append(value)
    return {name: {m: float(np.mean(v)) for m, v in methods.items()} for name, methods in values.items()}


def standings(rows, column, baseline="none"):
    """Every ranked method's place in a column, the best first."""
    field = field_of(rows)
    methods = field.ranked
    if not methods:
        return []
    table = means([row for row in rows if field.keeps(row) and row["method"] in methods], column)
    values = np.array([[oriented(table[name][m], column) for m in methods] for name in table])
    failed = np.isnan(values)
    ranks = np.array([rankdata(np.where(np.isnan(line), np.inf, line)) for line in values])
    best = np.min(np.where(failed, np.inf, values), axis=1)
    reference = values[:, methods.index(baseline)] if baseline in methods else np.full(len(values), np.nan)
    standard_error = (
        ranks.std(axis=0, ddof=1) / np.sqrt(len(ranks)) if len(ranks) > 1 else np.full(len(methods), np.nan)
    )
    made = [
        Standing(
            method,
            float(ranks[:, i].mean()),
            float(standard_error[i]),
            int(np.count_nonzero(values[:, i] <= best)),
            int(np.count_nonzero(failed[:, i])),
            _number_worse(values[:, i], reference),
        )
        for i, method in enumerate(methods)
    ]
    return sorted(made, key=lambda standing: (standing.rank, standing.method))


def _number_worse(values, reference):
    """On how many sets a method is worse than the input; None where that cannot be said."""
    if np.isnan(reference).any() or np.isnan(values).all():
        return None
    return int(np.count_nonzero(values > reference + 1e-9))


def ratios_to_input(rows, column, baseline="none"):
    """{method: geometric mean, over the sets that count, of its value divided by that of the input}.

    NaN where a method or the input was not tried, or failed, on one of them.
    """
    table = means(list(filter(field_of(rows).keeps, rows)), column)
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

    Of the methods that finished on every split that any method finished on, so that all means are over the same.
    The standard error is that of the mean, over splits, of the difference on the same split; NaN for one split. The
    splits share rows, so it says how stable the order is on this set, not how it would be on new data.
    """
    cells = {}
    for row in rows:
        if row["set"] == name and row["status"] == "ok" and row.get(column) is not None:
            cells.setdefault(row["method"], {})[row["seed"]] = row[column]
    splits = set().union(*cells.values())
    cells = {m: seeds for m, seeds in cells.items() if seeds.keys() == splits}
    if not cells:
        return {}
    average = {m: float(np.mean(list(seeds.values()))) for m, seeds in cells.items()}
    best = min(average, key=lambda m: (oriented(average[m], column), m))
    return {m: (average[m], *_paired(cells[m], cells[best])) for m in cells}


def _paired(seeds, best):
    gaps = np.array([value - best[seed] for seed, value in seeds.items()])
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
