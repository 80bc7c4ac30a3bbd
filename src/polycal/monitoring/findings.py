r"""What a monitor found: which question, from which row on, what the predictions say, what happens, and by how much.

For a question and one of its functions and signs, with :math:`x_i` as in `polycal.monitoring.questions` and
:math:`\hat x_i` the mean of the x before row i (or the nearest number that :math:`x_i` can be), the product over rows
s < i <= t of

.. math:: \exp\big(\lambda (x_i - \mu_i) - \psi(\lambda) (x_i - \hat x_i)^2\big), \qquad
          \psi(\lambda) = -\log(1 - \lambda) - \lambda,

is a supermartingale for the true means :math:`\mu_i` of x given the past and the prediction (Howard, Ramdas, McAuliffe
and Sekhon 2021), whatever these are: x is at most 1 away from :math:`\hat x`. So with probability at least
:math:`1 - \alpha`, for all questions, all first rows s that can be chosen and all times t at once, the mean of the
:math:`\mu_i` is at least
:math:`(\sum x_i - (\psi(\lambda) \sum (x_i - \hat x_i)^2 + \log(1/(\alpha w))) / \lambda) / n`, where the parts w of
alpha for questions, functions, signs, first rows and :math:`\lambda` add up to 1. The functions are 1-Lipschitz: it is
a lower bound of the smooth error of the question on these rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.measures.binned import ReliabilityCurve
from polycal.monitoring.marks import FIRST_STRIDE
from polycal.monitoring.questions import N_BINS, N_SHAPES, N_SIGNS, Questions

_LAMBDAS = 0.9 * 0.65 ** np.arange(12)
_PSI = -np.log1p(-_LAMBDAS) - _LAMBDAS
# The most that are told; and the level of the intervals in their pictures.
_MOST_FINDINGS, _LEVEL = 20, 0.95


@dataclass(frozen=True, eq=False)
class Change:
    """A question whose probabilities were off, on the rows from some row on.

    Attributes
    ----------
    question : str
        In words.
    kind : {"confidence", "class", "group", "set", "slice"}
        What it is about; sets were found on the way, on rows before they were watched.
    classes : tuple of int, or None
        The classes of the question; None for confidence.
    since : int
        The first of the rows that this is about, counted from 0.
    n_rows : int
        How many rows that are.
    low, high : float
        The range of predicted probabilities that is worst.
    predicted, observed : float
        What the predictions say there on average, and how often it was so.
    share : float
        The part of the rows that lies there.
    at_least : float
        A lower bound of the smooth error on these rows; all bounds of a monitor hold together, at any time, with
        probability at least 1 - alpha. 0 where nothing is shown.
    before, after : ReliabilityCurve
        What is said and what happens in ten bins, on the rows before `since` and from then on.

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("evaluation")
    >>> monitor = pc.Monitor(class_names=sample.class_names)
    >>> change = monitor.update(sample.labels[:2000], sample.proba[:2000]).findings[0]
    >>> change.question, change.observed < change.predicted
    ('is the most likely class right?', True)
    """

    question: str
    kind: str
    classes: tuple[int, ...] | None
    since: int
    n_rows: int
    low: float
    high: float
    predicted: float
    observed: float
    share: float
    at_least: float
    before: ReliabilityCurve
    after: ReliabilityCurve

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "question": self.question,
            "kind": self.kind,
            "classes": None if self.classes is None else list(self.classes),
            "since": self.since,
            "n_rows": self.n_rows,
            "low": self.low,
            "high": self.high,
            "says": self.predicted,
            "is": self.observed,
            "share": self.share,
            "at_least": self.at_least,
            "curves": [
                _series(name, curve)
                for name, curve in (("before", self.before), ("after", self.after))
                if curve.count.size
            ],
        }

    def __str__(self) -> str:
        told = f"says {self.predicted:.3f}, is {self.observed:.3f} ({self.share:.0%} of rows)"
        shown = f", at least {self.at_least:.4f} off" if self.at_least > 0 else ""
        return f"{self.question} {told}{shown}, since row {self.since:,}"


class _Bounds(NamedTuple):
    """The best bound of each question, and where it comes from: number of the mark, and sign."""

    value: Float64s
    mark: Ints
    sign: Ints


def changes(
    questions: Questions, name: Callable[[int], str], alpha: float, *, forced: bool
) -> tuple[Change, ...]:
    """The questions that are shown to be off, the largest bound first; ``forced``: at least the one that is nearest."""
    bounds = _lower_bounds(questions, alpha)
    order = np.argsort(-bounds.value, kind="stable")[:_MOST_FINDINGS]
    shown = [int(q) for q in order if bounds.value[q] > 0.0]
    if not shown and forced:
        shown = [int(q) for q in order[:1] if np.isfinite(bounds.value[q])]
    return tuple(_change(questions, q, bounds, name) for q in shown)


def _lower_bounds(questions: Questions, alpha: float) -> _Bounds:
    marks = questions.marks
    n = questions.count - marks.count
    total, spread = np.moveaxis(questions.sums - marks.sums, -1, 0)
    steps = marks.rows / FIRST_STRIDE
    weight = questions.weights() * questions.fortune[0].size / (N_SHAPES * N_SIGNS)
    log_parts = np.log(weight) - np.log((steps + 1.0) * (steps + 2.0))[:, None] - np.log(_LAMBDAS.size)
    needed = (np.log(1.0 / alpha) - log_parts)[..., None]
    best = np.full((*total.shape, N_SIGNS), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for size, psi in zip(_LAMBDAS, _PSI, strict=True):
            less = (psi * spread + needed) / size
            for s, sign in enumerate((1.0, -1.0)):
                best[..., s] = np.fmax(best[..., s], (sign * total - less) / n[..., None])
    # A window that begins before its question was asked would speak of another question.
    allowed = (marks.rows[:, None] >= questions.first_rows()) & (n > 0)
    best = np.where(allowed[..., None, None], best, -np.inf)
    flat = np.moveaxis(best, 1, 0).reshape(best.shape[1], -1)
    mark, _, sign = np.unravel_index(flat.argmax(axis=1), (best.shape[0], N_SHAPES, N_SIGNS))
    return _Bounds(flat.max(axis=1), mark, sign)


def _change(questions: Questions, q: int, bounds: _Bounds, name: Callable[[int], str]) -> Change:
    asked, mark = questions.describe(q, name), int(bounds.mark[q])
    first = questions.marks.bins[
        int(np.searchsorted(questions.marks.rows, questions.first_rows()[q]).clip(0, mark)), q
    ]
    before, after = questions.marks.bins[mark, q] - first, questions.bins[q] - questions.marks.bins[mark, q]
    low, high = _worst_range(after, 1.0 if bounds.sign[q] == 0 else -1.0)
    rows, predicted, hits = after[low:high].sum(axis=0)
    return Change(
        question=asked.text,
        kind=asked.kind,
        classes=None if asked.members is None else tuple(int(c) for c in asked.members),
        since=int(questions.marks.rows[mark]),
        n_rows=int(after[:, 0].sum()),
        low=low / N_BINS,
        high=high / N_BINS,
        predicted=float(predicted / rows),
        observed=float(hits / rows),
        share=float(rows / after[:, 0].sum()),
        at_least=max(float(bounds.value[q]), 0.0),
        before=_curve(before, asked.text),
        after=_curve(after, asked.text),
    )


def _worst_range(bins: Float64s, sign: float) -> tuple[int, int]:
    """The bins, one after the other, whose residuals add up to the most."""
    ends = np.concatenate([[0.0], np.cumsum(sign * (bins[:, 2] - bins[:, 1]))])
    gains = np.where(np.tri(ends.size, k=-1, dtype=np.bool_), ends[:, None] - ends, -np.inf)
    high, low = np.unravel_index(gains.argmax(), gains.shape)
    rows = np.flatnonzero(bins[low:high, 0])
    return (int(low), int(high)) if rows.size else (0, len(bins))


def _curve(bins: Float64s, question: str) -> ReliabilityCurve:
    """Sums of bins as a curve, without those that are empty."""
    used = bins[bins[:, 0] > 0]
    rows, predicted, hits = used.T
    return ReliabilityCurve(
        predicted=predicted / rows,
        frequency=hits / rows,
        mass=rows / max(rows.sum(), 1.0),
        count=rows.astype(np.int64),
        edges=np.linspace(0.0, 1.0, N_BINS + 1),
        question=question,
    )


def _series(name: str, curve: ReliabilityCurve) -> dict[str, Any]:
    """A curve for a picture, with intervals of 95 % in each bin."""
    low, high = curve.interval(_LEVEL)
    bins = {
        "predicted": curve.predicted,
        "frequency": curve.frequency,
        "low": low,
        "high": high,
        "share": curve.mass,
        "count": curve.count,
    }
    return {"series": name, "level": _LEVEL, "bins": {key: values.tolist() for key, values in bins.items()}}
