"""Answers as plain data: pictures, counts, the most telling rows, and the noise floor."""

from typing import Any

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.auditing.pictures import QuestionCurve, draw
from polycal.explorer.search import ALPHA
from polycal.explorer.state import Asked, Explorer
from polycal.inference.redraw import noise_test, question_noise
from polycal.measures.smooth import smooth_curve
from polycal.report.charts.cumulative import cumulative_chart
from polycal.report.charts.path import path_chart
from polycal.report.charts.reliability import reliability_chart
from polycal.report.costs import ACTION_COLUMNS, cost_parts
from polycal.sample import Question

N_EXAMPLES = 12
# Of the chart beside the classes, in pixels.
_ASIDE_WIDTH = 230
# Redraws of the outcomes: as many rows as can be redrawn while somebody waits, within these limits.
_DRAW_BUDGET, _FEWEST_DRAWS, _MOST_DRAWS = 4_000_000, 39, 199


def warm_up(explorer: Explorer) -> None:
    """Answer once, so that nothing is left to be imported or compiled when somebody waits."""
    asked = Asked(None, unseen=False)
    answer(explorer, asked)
    noise_floor(explorer, asked)


def describe(explorer: Explorer) -> dict[str, Any]:
    """What there is to ask about."""
    k = explorer.n_classes
    return {
        "title": explorer.title,
        "n_rows": explorer.labels.size,
        "n_unseen": None if explorer.unseen is None else explorer.unseen.size,
        "classes": [explorer.name(c) for c in range(k)],
        "counts": np.bincount(explorer.labels, minlength=k).tolist(),
        "groups": [{"name": name, "classes": c.tolist()} for name, c in explorer.groups.items()],
        "ranks": explorer.ranks,
        "nodes": _nodes(explorer),
        "slices": [{"name": name, "n_rows": int(rows.sum())} for name, rows in explorer.slices.items()],
        "heat": explorer.heat,
        "costs": cost_parts([cost.to_dict() for cost in explorer.costs]),
        "action_columns": ACTION_COLUMNS,
        "series": list(explorer.series),
        "level": 1 - ALPHA,
    }


def _nodes(explorer: Explorer) -> list[dict[str, Any]]:
    """The nodes of the tree, parents before their children, each with the place of its parent (-1 at the top)."""
    if not explorer.nodes:
        return []
    tree, numbers = explorer.nodes.taxonomy, explorer.nodes.numbers
    place = {node: i for i, node in enumerate(numbers)}
    return [
        {
            "name": tree.names[node],
            "parent": place.get(int(tree.parents[node]), -1),
            "classes": members.tolist(),
        }
        for node, members in zip(numbers, explorer.nodes.members.values(), strict=True)
    ]


def found_chart(found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The error of what was found against its number of classes."""
    if len(found) < 2:
        return None
    by_size = sorted(found, key=lambda one: len(one["classes"]))
    series = dict.fromkeys(one["series"] for one in found)
    paths = {name: [one for one in by_size if one["series"] == name] for name in series}
    return path_chart(paths, found[0]["question"], width=_ASIDE_WIDTH)


def answer(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """The pictures, counts and rows of a question; its noise floor takes longer, and is asked for by itself."""
    questions = explorer.questions(asked)
    first = next(iter(questions.values()))
    curves = draw(questions, 1 - ALPHA)
    heights = _common_heights(curves)
    return {
        "question": first.text,
        "n_rows": first.hits.size,
        "series": [_series(curve, questions[curve.series], heights) for curve in curves],
        "examples": _examples(explorer, asked, questions),
    }


def noise_floor(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """What calibrated predictions would read, and how often they would read as much as these do."""
    questions = explorer.questions(asked)
    n_rows = next(iter(questions.values())).hits.size
    n_draws = int(np.clip(_DRAW_BUDGET // n_rows, _FEWEST_DRAWS, _MOST_DRAWS))

    def test(item: tuple[str, Question]) -> dict[str, Any]:
        error = smooth_curve(item[1]).value
        seed = np.random.SeedSequence(explorer.seed)
        floor, p_value = noise_test(question_noise(item[1], error), n_draws, seed)
        return {"series": item[0], "noise_floor": floor, "p_value": p_value, "shown": p_value <= ALPHA}

    return {"series": map_threads(test, questions.items(), explorer.n_jobs)}


def _series(curve: QuestionCurve, question: Question, heights: list[float]) -> dict[str, Any]:
    """One set of predictions: numbers, and charts whose axes are those of the other one."""
    picture = {"question": question.text, "worst_range": None, "curves": [curve.to_dict()]}
    return {
        "series": curve.series,
        "smooth_error": curve.smooth_error,
        "predicted": float(np.average(question.predicted, weights=question.weight)),
        "n_yes": int(np.count_nonzero(question.hits)),
        "observed": float(np.average(question.hits, weights=question.weight)),
        "charts": {
            "reliability": reliability_chart(picture),
            "cumulative": cumulative_chart(picture, heights),
        },
    }


def _common_heights(curves: tuple[QuestionCurve, ...]) -> list[float]:
    """The range of all cumulative residuals and bands, with a little room."""
    values = np.concatenate([[-curve.band, curve.band, *curve.cumulative] for curve in curves])
    low, high = float(values.min()), float(values.max())
    # Answers that are certain and right have no residuals at all.
    room = 0.04 * (high - low) or 0.01
    return [low - room, high + room]


def _examples(explorer: Explorer, asked: Asked, questions: dict[str, Question]) -> list[dict[str, Any]]:
    """The rows that add most to the error of the first set of predictions."""
    series, question = next(iter(questions.items()))
    columns, everything = explorer.series[series], np.arange(explorer.labels.size)
    rows: Ints = everything[explorer.rows(asked)]
    chosen = telling_rows(question)
    return [
        {
            "row": row,
            "predicted": [float(q.predicted[i]) for q in questions.values()],
            "outcome": bool(question.hits[i]),
            "label": explorer.name(int(explorer.labels[row])),
            "top": explorer.name(int(columns.top[row])),
            "confidence": float(columns.confidence[row]),
        }
        for i, row in zip(chosen.tolist(), rows[chosen].tolist(), strict=True)
    ]


def telling_rows(question: Question, n_rows: int = N_EXAMPLES) -> Ints:
    """The rows with the largest terms of ``sum_i mass_i phi(u_i) (y_i - u_i)``, the smooth error; largest first."""
    term = smooth_curve(question).phi(question.predicted) * (question.hits - question.predicted)
    if question.weight is not None:
        term *= question.weight
    n_rows = min(n_rows, term.size)
    largest = np.argpartition(-term, n_rows - 1)[:n_rows]
    largest = largest[np.lexsort((largest, -term[largest]))]
    positive: Ints = largest[term[largest] > 0]
    return positive
