"""The search for slices: which rows are off, by the residuals of short questions added up over bins of columns.

Every question q has a residual r and a prediction u in each row. Two sums over the rows of a slice are divided by their
standard deviations: that of r, and that of r (u - m), which sees predictions that are too extreme. The squares of both
add up to a statistic that is about chi-square with two degrees of freedom if predictions are right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._threads import map_threads
from polycal._typing import Bools, Float64s, Ints
from polycal.families._slice_bins import Bins, Condition, coarse_bins, column_bins
from polycal.sample import Question, Sample, ask_members, likely_classes

# Classes whose questions are added up; up to so many, also every pair of them.
_MOST_CLASSES, _MOST_PAIRED = 40, 12
# Numbers held of the searched rows, at most; and of rows whose conjunctions are searched.
_MOST_CELLS, _MOST_PAIR_CELLS = 1 << 24, 1 << 22
# Rows of the searched half that a slice must have: fewer prove nothing on the other half.
_MIN_ROWS = 40
# Columns whose conjunctions are searched: those with the strongest slices.
_MOST_COLUMNS = 40
# Slices that are looked at more closely, of one column each and of two.
_KEPT_SINGLES, _KEPT_PAIRS, _PER_COLUMN, _PER_PAIR = 24, 32, 18, 3
# Slices that share more than this of their rows are told once.
_ALIKE = 0.7
# Random rows that stand for all where a slice is compared with them.
_MOST_COMPARED = 5000
# Classes tried and sizes of sets of classes.
_TRIED, _SIZES = 16, (1, 2, 3, 5)
_TINY = 1e-12
# Sums of each question: two gains, their variances if predictions are right, and their squares.
_PARTS = 6


class Found(NamedTuple):
    """A slice and the question that is off there: its classes, or None for "is the most likely class right?"."""

    conditions: tuple[Condition, ...]
    members: tuple[int, ...] | None
    score: float


class _Candidate(NamedTuple):
    score: float
    conditions: tuple[Condition, ...]
    rows: Ints


@dataclass(frozen=True, eq=False)
class _Statistics:
    """Of each row: the summands of all sums, for every question; and 1, which counts rows."""

    values: NDArray[np.float32]
    total: Float64s
    n_questions: int

    def scores(self, sums: Float64s) -> Float64s:
        """The largest statistic of any question in each slice, from its sums; minus infinity for few or all rows.

        A slice is as interesting as the smaller one of two statistics: of its own error, and of its difference from
        the error of all rows.
        """
        parts = sums[..., :-1].reshape(*sums.shape[:-1], _PARTS, self.n_questions)
        whole = self.total[:-1].reshape(_PARTS, self.n_questions)
        best: Float64s = _smaller(*_gains(parts), *_gains(whole)).max(axis=-1)
        n_rows, n_all = sums[..., -1], self.total[-1]
        best[(n_rows < _MIN_ROWS) | (n_rows > n_all - _MIN_ROWS)] = -np.inf
        return best

    def over(self, codes: Ints, rows: Ints, n_bins: int) -> Float64s:
        """Sums of the statistics in each bin."""
        from polycal._compiled.slices import bin_sums  # noqa: PLC0415 - imports numba

        sums: Float64s = bin_sums(codes, rows, self.values, n_bins)
        return sums


def search_slices(sample: Sample, seed: int, n_jobs: int | None = None) -> list[Found]:
    """Slices and their questions, the most promising first, on rows that will not judge them."""
    if sample.features is None:
        raise ValueError("there are no features to slice by; give features.")
    questions = _asked(sample)
    statistics, kept = _statistics(sample, questions, _MOST_CELLS, seed)
    features = sample.features if kept is None else sample.features.take(kept)
    bins = [column_bins(features, name, _MIN_ROWS) for name in features.names]
    singles = _singles(statistics, bins)
    pairs = _pairs(statistics, bins, singles, seed, n_jobs) if len(bins) > 1 else []
    chosen = [*_unlike(singles, _KEPT_SINGLES), *_unlike(pairs, _KEPT_PAIRS)]
    inner = sample if kept is None else sample.take(kept)
    some = np.random.default_rng(seed).permutation(inner.n_samples)[:_MOST_COMPARED]
    # The best of so many is so strong by chance; intervals that overlap are not so many as they seem.
    tried = max(1, sum(one.n_bins for one in bins))
    chance = {1: 2.0 * np.log(tried), 2: 4.0 * np.log(tried) - 2.0 * np.log(2.0)}
    whole, n_whole = inner.take(np.sort(some)), inner.n_samples
    closer = map_threads(lambda one: _closer(whole, n_whole, inner.take(one.rows), one), chosen, n_jobs)
    rows = {one.conditions: one.rows for one in chosen}
    scored = [found._replace(score=found.score - chance[len(found.conditions)]) for found in closer]
    told: list[_Candidate] = []
    best: list[Found] = []
    for found in sorted(scored, key=lambda found: -found.score):
        one = _Candidate(found.score, found.conditions, rows[found.conditions])
        if not any(_says_more(one, other) for other in told):
            told.append(one)
            best.append(found)
    return best


def _asked(sample: Sample) -> list[Question]:
    classes = likely_classes(sample, _MOST_CLASSES).tolist()
    sets = [[c] for c in classes]
    if len(classes) <= _MOST_PAIRED:
        # Of three classes, two are the opposite of the third.
        sets += [[a, b] for i, a in enumerate(classes) for b in classes[i + 1 :]] if len(classes) > 3 else []
    sets = sets[:1] if len(classes) == 2 else sets
    return [ask_members(sample, 1), *(ask_members(sample, np.array(members)) for members in sets)]


def _statistics(
    sample: Sample, questions: Sequence[Question], most: int, seed: int
) -> tuple[_Statistics, Ints | None]:
    """The statistics of all rows, or of random ones if they are too many."""
    n, q = sample.n_samples, len(questions)
    n_rows = max(1, most // (_PARTS * q + 1))
    kept = None if n <= n_rows else np.sort(np.random.default_rng(seed).permutation(n)[:n_rows])
    chosen: Ints | slice = slice(None) if kept is None else kept
    values = np.empty((n if kept is None else kept.size, _PARTS * q + 1), dtype=np.float32)
    weight = np.ones(n) if sample.sample_weight is None else sample.sample_weight / sample.sample_weight.max()
    for j, question in enumerate(questions):
        for part, column in enumerate(_question_statistics(question, weight, chosen)):
            values[:, part * q + j] = column
    values[:, -1] = weight[chosen] > 0
    return _Statistics(values, values.sum(axis=0, dtype=np.float64), q), kept


def _question_statistics(question: Question, weight: Float64s, rows: Ints | slice) -> Iterable[Float64s]:
    u, a = question.predicted[rows], weight[rows]
    residual = a * (question.hits[rows] - u)
    variance = a * a * u * (1.0 - u)
    middle = float(variance @ u) / max(float(variance.sum()), _TINY)
    tilt = u - middle
    return residual, residual * tilt, variance, variance * tilt**2, residual**2, (residual * tilt) ** 2


def _singles(statistics: _Statistics, bins: Sequence[Bins]) -> list[_Candidate]:
    """The strongest slices of each column, strongest first."""
    rows = np.arange(statistics.values.shape[0])
    found: list[_Candidate] = []
    for column in bins:
        sums = statistics.over(column.codes, rows, column.n_bins)
        found += _best(statistics, column, sums, rows)
    return sorted(found, key=lambda one: -one.score)


def _best(
    statistics: _Statistics,
    column: Bins,
    sums: Float64s,
    rows: Ints,
) -> list[_Candidate]:
    """The strongest slices that one column makes, from its sums."""
    spans = column.spans()
    if spans.shape[0] == 0:
        return []
    total = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    scores = statistics.scores(total[spans[:, 1]] - total[spans[:, 0]])
    order = np.argsort(-scores, kind="stable")[:_PER_COLUMN]
    return [
        _Candidate(
            float(scores[place]),
            (column.condition(*span),),
            rows[column.inside(column.codes[rows], *span)],
        )
        for place in order.tolist()
        if np.isfinite(scores[place])
        for span in [tuple(spans[place].tolist())]
    ]


def _pairs(
    statistics: _Statistics,
    bins: Sequence[Bins],
    singles: Sequence[_Candidate],
    seed: int,
    n_jobs: int | None,
) -> list[_Candidate]:
    """The strongest conjunctions of two columns, one of them cut coarsely."""
    n = statistics.values.shape[0]
    n_rows = max(1, _MOST_PAIR_CELLS // statistics.values.shape[1])
    rows = np.arange(n)
    if n > n_rows:
        rows = np.sort(np.random.default_rng(seed + 1).permutation(n)[:n_rows])
        values = statistics.values[rows]
        statistics = _Statistics(values, values.sum(axis=0, dtype=np.float64), statistics.n_questions)
    names = list(dict.fromkeys(one.conditions[0].column for one in singles))[:_MOST_COLUMNS]
    chosen = [coarse_bins(one, rows) for one in bins if one.column.name in names]
    tasks = [(one, other) for place, one in enumerate(chosen) for other in chosen[:place]]
    found = map_threads(lambda task: _crossed(statistics, *task), tasks, n_jobs)
    ranked = sorted((one for several in found for one in several), key=lambda one: -one[0])
    return [
        _Candidate(score, (a.condition(*span), b.condition(*other)), rows[np.flatnonzero(both)])
        for score, (a, span), (b, other) in ranked[: 8 * _KEPT_PAIRS]
        for both in [a.inside(a.codes, *span) & b.inside(b.codes, *other)]
    ]


_Half = tuple[Bins, tuple[int, int]]


def _crossed(statistics: _Statistics, one: Bins, other: Bins) -> list[tuple[float, _Half, _Half]]:
    """The strongest conjunctions of two columns."""
    joint = np.where(
        (one.codes >= 0) & (other.codes >= 0), one.codes * other.n_bins + other.codes, np.int64(-1)
    )
    sums = statistics.over(joint, np.arange(joint.size), one.n_bins * other.n_bins)
    total = np.zeros((one.n_bins + 1, other.n_bins + 1, sums.shape[1]))
    total[1:, 1:] = sums.reshape(one.n_bins, other.n_bins, -1).cumsum(axis=0).cumsum(axis=1)
    spans, others = one.spans(), other.spans()
    crossed = [_product(one.outer_spans(), others), _product(spans, other.outer_spans())]
    first, end, low, high = np.unique(np.concatenate(crossed), axis=0).T
    scores = statistics.scores(total[end, high] - total[first, high] - total[end, low] + total[first, low])
    order = np.argsort(-scores, kind="stable")[:_PER_PAIR]
    return [
        (float(scores[i]), (one, (int(first[i]), int(end[i]))), (other, (int(low[i]), int(high[i]))))
        for i in order.tolist()
        if np.isfinite(scores[i])
    ]


def _product(spans: Ints, others: Ints) -> Ints:
    """All pairs of spans: shape (n, 4)."""
    return np.hstack([np.repeat(spans, others.shape[0], axis=0), np.tile(others, (spans.shape[0], 1))])


def _says_more(one: _Candidate, other: _Candidate) -> bool:
    """Whether a slice is told already by a stronger one: of nearly the same rows, or with fewer conditions."""
    return set(other.conditions) <= set(one.conditions) or _overlap(one.rows, other.rows) > _ALIKE


def _unlike(candidates: Sequence[_Candidate], most: int) -> list[_Candidate]:
    """The first so many of them, without those that share most of their rows with one before."""
    kept: list[_Candidate] = []
    for one in candidates:
        if len(kept) == most:
            break
        if not any(_overlap(one.rows, other.rows) > _ALIKE for other in kept):
            kept.append(one)
    return kept


def _overlap(one: Ints, other: Ints) -> float:
    """Rows of both among rows of either; both are increasing."""
    common = np.intersect1d(one, other, assume_unique=True).size
    return common / (one.size + other.size - common)


def _closer(whole: Sample, n_whole: int, sample: Sample, one: _Candidate) -> Found:
    """The question that is worst inside a slice: a short set of classes, grown one class at a time, or confidence.

    ``whole`` are random rows of all, of which there are ``n_whole``.
    """
    scale = n_whole / whole.n_samples
    tops = [ask_members(part, 1) for part in (whole, sample)]
    alone = [
        _Asked.of(part, question.predicted[:, None], question.hits[:, None])
        for part, question in zip((whole, sample), tops, strict=True)
    ]
    best: tuple[float, tuple[int, ...] | None] = float(_contrast(alone[0], alone[1], scale)[0]), None
    classes = likely_classes(sample, _MOST_CLASSES)
    asked = [
        _Asked.of(part, part.proba[:, classes].astype(np.float64), part.labels[:, None] == classes)
        for part in (whole, sample)
    ]
    order = np.argsort(-_contrast(asked[0], asked[1], scale), kind="stable")[:_TRIED].tolist()
    members: list[int] = []
    for size in range(1, min(_SIZES[-1], sample.n_classes - 1, len(order)) + 1):
        free = [j for j in order if j not in members]
        gains = _contrast(asked[0].grown(members, free), asked[1].grown(members, free), scale)
        members.append(free[int(np.argmax(gains))])
        # A class more must be worth what the best of so many would gain by chance.
        worth = float(gains.max()) - 2.0 * size * np.log(max(sample.n_classes, 2))
        if size in _SIZES and worth > best[0]:
            best = worth, tuple(sorted(int(classes[j]) for j in members))
    return Found(one.conditions, best[1], best[0])


class _Asked(NamedTuple):
    """Several questions put to some rows, one in each column."""

    predicted: Float64s
    hits: Bools
    weight: Float64s

    @classmethod
    def of(cls, sample: Sample, predicted: Float64s, hits: Bools) -> "_Asked":
        weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
        return cls(predicted, hits, weight)

    def grown(self, members: list[int], free: list[int]) -> "_Asked":
        """The questions about some classes and one of the others."""
        u = self.predicted[:, members].sum(axis=1, keepdims=True) + self.predicted[:, free]
        y = self.hits[:, members].any(axis=1, keepdims=True) | self.hits[:, free]
        return _Asked(np.minimum(u, 1.0), y, self.weight)

    def sums(self, middle: Float64s | None = None) -> tuple[Float64s, Float64s, Float64s]:
        """The middles, the two gains of each question, and their variances."""
        a = self.weight[:, None]
        residual, variance = a * (self.hits - self.predicted), a * a * self.predicted * (1.0 - self.predicted)
        if middle is None:
            middle = (variance * self.predicted).sum(axis=0) / np.maximum(variance.sum(axis=0), _TINY)
        tilt = self.predicted - middle
        tilted = residual * tilt
        parts = (residual, tilted, variance, variance * tilt**2, residual**2, tilted**2)
        return middle, *_gains(np.stack([part.sum(axis=0) for part in parts]))


def _contrast(whole: _Asked, part: _Asked, scale: float) -> Float64s:
    """The smaller one of the statistics of a slice's own error and of its difference from all rows."""
    middle, all_gain, all_variance = whole.sums()
    _, gain, variance = part.sums(middle)
    return _smaller(gain, variance, scale * all_gain, scale * all_variance)


def _gains(parts: Float64s) -> tuple[Float64s, Float64s]:
    """The two gains of each question, and their variances: as predicted or as seen, whichever is more.

    Few rare events make the former too small where predictions are wrong everywhere, and the latter by chance.
    """
    return parts[..., :2, :], np.maximum(parts[..., 2:4, :], parts[..., 4:, :])


def _smaller(gain: Float64s, variance: Float64s, all_gain: Float64s, all_variance: Float64s) -> Float64s:
    """The same from sums: two gains of each question in the last axis but one."""
    share = np.minimum(variance / np.maximum(all_variance, _TINY), 1.0)
    own = (gain**2 / np.maximum(variance, _TINY)).sum(axis=-2)
    rest = np.maximum(variance * (1.0 - share), _TINY)
    # A slice that is less wrong than the others differs, but not as a slice that is looked for.
    more = np.where(
        gain > 0, np.maximum(gain - share * all_gain, 0.0), np.minimum(gain - share * all_gain, 0.0)
    )
    other = (more**2 / rest).sum(axis=-2)
    smaller: Float64s = np.minimum(own, other)
    return smaller
