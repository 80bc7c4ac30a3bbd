"""Which pictures an audit keeps: confidence, the worst questions found, and every named group."""

from collections.abc import Mapping, Sequence

import numpy as np

from polycal._audit.curves import MAX_POINTS, Picture, draw
from polycal._audit.result import Finding
from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.families.questions import SubsetWitness
from polycal.sample import Sample, ask_confidence, ask_subset

# Found questions to draw, at most; and points of all pictures together, so that many groups still make a small page.
_MOST_FOUND = 6
_ALL_POINTS, _FEWEST_POINTS = 30_000, 80

# The same rows with one or more sets of predictions, by series.
Series = Mapping[str, Sample]


def named_pictures(
    series: Series, groups: Mapping[str, Ints], level: float, n_jobs: int | None
) -> list[Picture]:
    """Confidence and every group, on all rows: nobody searched for these questions."""
    points = int(np.clip(_ALL_POINTS // (1 + len(groups)), _FEWEST_POINTS, MAX_POINTS))
    tops = {name: ask_confidence(sample) for name, sample in series.items()}
    n_rows = next(iter(series.values())).n_samples
    first = Picture(
        about="confidence",
        name="confidence",
        question=next(iter(tops.values())).text,
        classes=None,
        rows="all",
        n_rows=n_rows,
        worst_range=None,
        curves=draw(tops, level, points),
    )

    def picture(group: tuple[str, Ints]) -> Picture:
        return _subset_picture("group", group[0], group[1], series, level, points)

    return [first, *map_threads(picture, groups.items(), n_jobs)]


def found_pictures(judged: Series, findings: Sequence[Finding], level: float) -> list[Picture]:
    """The different subsets found, largest proven error first, on the rows that judged them."""
    pictures: dict[tuple[int, ...], Picture] = {}
    for finding in findings:
        witness = finding.witness
        if not isinstance(witness, SubsetWitness) or len(pictures) == _MOST_FOUND:
            continue
        worst_range = finding.reading.low, finding.reading.high
        members = tuple(witness.members.tolist())
        if members not in pictures:
            pictures[members] = _subset_picture(
                "finding", finding.source, witness.members, judged, level, MAX_POINTS, worst_range
            )
    return list(pictures.values())


def _subset_picture(
    about: str,
    name: str,
    subset: Ints,
    series: Series,
    level: float,
    max_points: int,
    worst_range: tuple[float, float] | None = None,
) -> Picture:
    questions = {key: ask_subset(sample, subset) for key, sample in series.items()}
    sample = next(iter(series.values()))
    return Picture(
        about="finding" if about == "finding" else "group",
        name=name,
        question=next(iter(questions.values())).text,
        classes=tuple(sample.name(int(c)) for c in subset),
        rows="judged" if about == "finding" else "all",
        n_rows=sample.n_samples,
        worst_range=worst_range,
        curves=draw(questions, level, max_points),
    )
