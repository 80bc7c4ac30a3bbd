"""Evidence over time: the fortune of those who bet against the predictions, and when it was an alarm."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec

_HEIGHT = 260


def evidence_chart(monitor: dict[str, Any]) -> Spec:
    """The evidence of `Monitor.to_dict` after each row, the line that is an alarm, and the rows of alarms."""
    history = monitor["history"]
    values = [
        {"row": row, "evidence": evidence}
        for row, evidence in zip(history["row"], history["evidence"], strict=True)
    ]
    return {
        "description": "Evidence against the predictions over time, as a power of ten, and the line that is an alarm.",
        "data": {"values": values},
        "width": "container",
        "height": _HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "layer": [
            _rule("y", [monitor["threshold"]], style.MUTED, "alarm", [5, 4]),
            *_since(monitor),
            *([_rule("x", monitor["alarm_rows"], "var(--bad)", "alarm", [1, 0])] if monitor["alarm"] else []),
            _line(),
            _targets(),
        ],
        "config": style.config(),
    }


def _axes() -> dict[str, Spec]:
    rows, evidence = {"format": "~s", "tickCount": 6}, {"tickCount": 6}
    return {
        "x": {"field": "row", "type": "quantitative", "title": "rows seen", "axis": rows},
        "y": {
            "field": "evidence",
            "type": "quantitative",
            "title": "evidence (power of ten)",
            "axis": evidence,
        },
    }


def _line() -> Spec:
    mark = {"type": "line", "strokeWidth": 1.8, "color": style.INK}
    return {"mark": mark, "encoding": _axes()}


def _targets() -> Spec:
    """The nearest point of the curve shows itself and its numbers."""
    hover = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    shown = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
    told = [style.number("row", "rows seen", ","), style.number("evidence", "evidence, power of ten", ".2f")]
    return {
        "params": [{"name": "hover", "select": hover}],
        "mark": {"type": "point", "filled": True, "size": 60, "color": style.INK, "aria": False},
        "encoding": _axes() | {"opacity": shown, "tooltip": told},
    }


def _rule(axis: str, places: list[float], colour: str, words: str, dash: list[int]) -> Spec:
    """Lines across the picture, the first of which is named."""
    field = {"field": "at", "type": "quantitative"}
    line = {"type": "rule", "color": colour, "strokeDash": dash, "strokeWidth": 1.4, "aria": False}
    text = {
        "type": "text",
        "text": words,
        "color": colour,
        "fontSize": 12,
        "align": "left",
        "baseline": "bottom",
    }
    aside = {"x": {"value": 6}, "y": field} if axis == "y" else {"x": field, "y": {"value": 12}}
    return {
        "data": {"values": [{"at": place} for place in places]},
        "layer": [
            {"mark": line, "encoding": {axis: field}},
            {"mark": text | ({"dy": -3} if axis == "y" else {"dx": 4}), "encoding": aside},
        ],
    }


def _since(monitor: dict[str, Any]) -> list[Spec]:
    if not monitor["alarm"] or monitor["since"] is None:
        return []
    return [_rule("x", [monitor["since"]], "var(--calm)", "since", [2, 3])]
