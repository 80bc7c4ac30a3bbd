"""How large an error is proven, against the number of classes that a question names."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec


def path_chart(
    paths: dict[str, list[dict[str, Any]]], shown: str | None = None, width: int = 2 * style.WIDTH
) -> Spec:
    """Findings of growing sets, by series: the proven error, and the estimate above it.

    ``shown`` is the question to mark.
    """
    names = [name for name, path in paths.items() if path]
    rows = [_row(name, finding, shown) for name in names for finding in paths[name]]
    sizes = sorted({row["size"] for row in rows})
    x = {
        "field": "size",
        "type": "quantitative",
        "title": "classes in the question",
        "scale": {"type": "log", "domain": [1, max(2, *sizes)], "nice": False},
        "axis": {"values": sizes, "format": "d", "labelOverlap": True, "grid": False},
    }
    scales = style.series_scales([{"series": name} for name in names])
    return {
        "description": "The error that is proven against the number of classes in the question.",
        "data": {"values": rows},
        "width": width,
        "height": min(style.HEIGHT, width // 2),
        "encoding": {"x": x, "color": scales["color"], "tooltip": _tooltip()},
        "layer": [_reach(), _line(scales), _points(scales)],
        "config": style.config(),
    }


def _row(series: str, finding: dict[str, Any], shown: str | None) -> dict[str, Any]:
    return {
        "series": series,
        "size": len(finding["subset"]),
        "at_least": finding["at_least"],
        "estimate": max(finding["estimate"], finding["at_least"]),
        "question": finding["question"],
        "shown": finding["question"] == shown,
    }


def _y(field: str) -> Spec:
    return {"field": field, "type": "quantitative", "title": "error: at least, and estimate"}


def _reach() -> Spec:
    """From what is proven up to the estimate."""
    return {
        "mark": {"type": "rule", "opacity": 0.45, "strokeWidth": 3},
        "encoding": {"y": _y("at_least"), "y2": {"field": "estimate"}},
    }


def _line(scales: dict[str, Spec]) -> Spec:
    return {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"y": _y("at_least"), "strokeDash": scales["strokeDash"]},
    }


def _points(scales: dict[str, Spec]) -> Spec:
    """The one that the report shows first is larger, and has a rim."""
    return {
        "mark": {"type": "point", "filled": True, "opacity": 1},
        "encoding": {
            "y": _y("at_least"),
            "shape": scales["shape"],
            "size": {"condition": {"test": "datum.shown", "value": 170}, "value": 60},
            "stroke": {"condition": {"test": "datum.shown", "value": style.INK}, "value": None},
        },
    }


def _tooltip() -> list[Spec]:
    return [
        {"field": "question", "type": "nominal"},
        style.number("size", "classes", ","),
        style.number("at_least", "at least", ".4f"),
        style.number("estimate", "estimate", ".4f"),
    ]
