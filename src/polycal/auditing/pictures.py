"""What an audit draws: confidence, the worst questions found, every named group; thinned to a few hundred points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Float64s, Ints
from polycal.families.questions import SubsetWitness
from polycal.measures.binned import ReliabilityCurve, binned_curve
from polycal.measures.smooth import drawn_points, smooth_curve
from polycal.sample import Question, Sample, ask_members

if TYPE_CHECKING:
    from polycal.auditing.parts import Finding

N_BINS = 15
MAX_POINTS = 300
# The highest level for which an interval is computed.
_HIGHEST_LEVEL = 0.999999


About = Literal["confidence", "rank", "finding", "group"]


@dataclass(frozen=True, eq=False)
class QuestionCurve:
    """One question as one set of predictions answers it.

    Attributes
    ----------
    series : str
        Whose predictions: "as given", or "before" and "after" a calibrator.
    smooth_error : float
        Exact smooth calibration error on the rows of the picture (plug-in, biased upwards).
    reliability : ReliabilityCurve
        Predictions and outcomes in bins.
    predicted, cumulative, monotone : ndarray of shape (n_points,)
        The curves F and S of `smooth_calibration_curve`, thinned, as steps.
    band : float
        If the predictions were calibrated, F would stay between -band and band with probability about `level`.
    level : float
        Level of the band and of the intervals in the bins.
    """

    series: str
    smooth_error: float
    reliability: ReliabilityCurve
    predicted: Float64s
    cumulative: Float64s
    monotone: Float64s
    band: float
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, to five digits: enough for any picture, and short."""
        bins = self.reliability
        low, high = bins.interval(self.level)
        return {
            "series": self.series,
            "smooth_error": self.smooth_error,
            "mean_residual": float(self.cumulative[-1]),
            "band": _short([self.band])[0],
            "level": self.level,
            "bins": {
                "predicted": _short(bins.predicted),
                "frequency": _short(bins.frequency),
                "low": _short(low),
                "high": _short(high),
                "share": _short(bins.mass),
                "count": bins.count.tolist(),
            },
            "steps": {
                "predicted": _short(self.predicted),
                "cumulative": _short(self.cumulative),
                "monotone": _short(self.monotone),
            },
        }


@dataclass(frozen=True, eq=False)
class Picture:
    """One question, drawn for one or two sets of predictions.

    Attributes
    ----------
    about : {"confidence", "rank", "finding", "group"}
        Why the question is asked.
    name : str
        The group's name, or the search that found the question.
    question : str
        The question in words.
    classes : tuple of str, or None
        The classes that count as "yes"; None for the question of confidence.
    rows : {"all", "judged", "sampled"}
        A question that was found by a search is drawn on the rows that judged it, never on those searched; in the
        audit of a stream, every question is drawn on a random sample of the rows that judge.
    n_rows : int
        How many rows that is.
    worst_range : tuple of float, or None
        For a finding: the range of predictions where the searched rows looked worst.
    curves : tuple of QuestionCurve
        One for each set of predictions.
    """

    about: About
    name: str
    question: str
    classes: tuple[str, ...] | None
    rows: Literal["all", "judged", "sampled"]
    n_rows: int
    worst_range: tuple[float, float] | None
    curves: tuple[QuestionCurve, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        return {
            "about": self.about,
            "name": self.name,
            "question": self.question,
            "classes": None if self.classes is None else list(self.classes),
            "rows": self.rows,
            "n_rows": self.n_rows,
            "worst_range": None if self.worst_range is None else list(self.worst_range),
            "curves": [curve.to_dict() for curve in self.curves],
        }


def draw(
    questions: Mapping[str, Question], level: float, max_points: int = MAX_POINTS
) -> tuple[QuestionCurve, ...]:
    """The curves of the same question put to several sets of predictions, by series."""
    return tuple(
        _curve(series, question, min(level, _HIGHEST_LEVEL), max_points)
        for series, question in questions.items()
    )


def _curve(series: str, question: Question, level: float, max_points: int) -> QuestionCurve:
    curve = smooth_curve(question)
    x, F, S = drawn_points(curve, max_points)
    return QuestionCurve(
        series=series,
        smooth_error=curve.value,
        reliability=binned_curve(question, N_BINS, "uniform"),
        predicted=x,
        cumulative=F,
        monotone=S,
        band=calibrated_band(question, level),
        level=level,
    )


def calibrated_band(question: Question, level: float) -> float:
    """The height that the cumulative residuals of calibrated predictions stay under with probability ``level``.

    Sorted by prediction they are a martingale, so close to Brownian motion W with the variance of the mean residual:
    P(max |W| > x) is at most 4 P(W > x) at the end, and equal to it but for a term of order P(W > 3x).
    """
    return NormalDist().inv_cdf(1 - (1 - level) / 4) * chance_spread(question)


def chance_spread(question: Question) -> float:
    """The standard deviation of the mean residual if the predictions were calibrated."""
    u = question.predicted
    if question.weight is None:
        return float(np.sqrt(np.sum(u * (1 - u)))) / u.size
    mass = question.weight / question.weight.sum()
    return float(np.sqrt(np.sum(mass**2 * u * (1 - u))))


def _short(values: Float64s | Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in np.asarray(values).tolist()]


# Found questions to draw, at most; and points of all pictures together, so that many groups still make a small page.
_MOST_FOUND = 6
_ALL_POINTS, _FEWEST_POINTS = 30_000, 80

# The same rows with one or more sets of predictions, by series.
Series = Mapping[str, Sample]


def named_pictures(
    series: Series, groups: Mapping[str, Ints], ranks: Mapping[str, int], level: float, n_jobs: int | None
) -> list[Picture]:
    """Confidence, other ranks and every group, on all rows: nobody searched for these questions."""
    asked = _known(series, [*ranks.items(), *groups.items()])
    points = int(np.clip(_ALL_POINTS // len(asked), _FEWEST_POINTS, MAX_POINTS))

    def picture(question: tuple[str, Ints | int]) -> Picture:
        name, members = question
        about: About = "group" if not isinstance(members, int) else "confidence" if members == 1 else "rank"
        return _picture(about, name, members, series, level, points)

    return map_threads(picture, asked, n_jobs)


def _known(series: Series, questions: Iterable[tuple[str, Ints | int]]) -> list[tuple[str, Ints | int]]:
    """The questions, by name, whose answers are known: what lists hide has no curve."""
    hidden = [sample for sample in series.values() if sample.hides]
    return [
        (name, members)
        for name, members in questions
        if all(ask_members(sample, members).low is None for sample in hidden)
    ]


def found_pictures(judged: Series, findings: Sequence["Finding"], level: float) -> list[Picture]:
    """The different subsets found, largest proven error first, on the rows that judged them."""
    pictures: dict[tuple[int, ...], Picture] = {}
    for finding in findings:
        witness = finding.witness
        if not isinstance(witness, SubsetWitness) or len(pictures) == _MOST_FOUND:
            continue
        if not _known(judged, [("", witness.members)]):
            continue
        worst_range = finding.reading.low, finding.reading.high
        members = tuple(witness.members.tolist())
        if members not in pictures:
            drawn = _picture(
                "finding", finding.source, witness.members, judged, level, MAX_POINTS, worst_range
            )
            pictures[members] = replace(drawn, question=finding.question)
    return list(pictures.values())


def _picture(
    about: About,
    name: str,
    members: Ints | int,
    series: Series,
    level: float,
    max_points: int,
    worst_range: tuple[float, float] | None = None,
) -> Picture:
    questions = {key: ask_members(sample, members) for key, sample in series.items()}
    sample = next(iter(series.values()))
    return Picture(
        about=about,
        name=name,
        question=next(iter(questions.values())).text,
        classes=None if isinstance(members, int) else tuple(sample.name(int(c)) for c in members),
        rows="judged" if about == "finding" else "all",
        n_rows=sample.n_samples,
        worst_range=worst_range,
        curves=draw(questions, level, max_points),
    )
