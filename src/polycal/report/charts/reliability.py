"""The reliability diagram: how often "yes" happened against how often it was predicted, with intervals."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec


def reliability_chart(picture: dict[str, Any]) -> Spec:
    """The diagram of a picture (of `Audit.to_dict`), above a strip with the share of rows behind each point."""
    curves = picture["curves"]
    level = f"{100 * curves[0]['level']:.4g}%"
    return {
        "description": f"Reliability diagram: {picture['question']} What happened against what was predicted, in bins.",
        "data": {"values": [row for curve in curves for row in style.rows_of(curve, "bins")]},
        "vconcat": [_diagram(picture, level), _strip(curves)],
        "spacing": 10,
        "config": style.config(),
    }


def _diagram(picture: dict[str, Any], level: str) -> Spec:
    scales = style.series_scales(picture["curves"])
    x = style.PROBABILITY_AXIS | {"title": None}
    happened = {"title": "it happens", "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%"}}
    y = {"field": "frequency", "type": "quantitative", "scale": {"domain": [0, 1]}, **happened}
    colour = {"color": scales["color"]}
    point = {"type": "point", "filled": True, "size": 55, "opacity": 1}
    interval = {"mark": {"type": "rule", "strokeWidth": 1.5, "aria": False}}
    return {
        "width": style.WIDTH,
        "height": style.HEIGHT,
        "layer": [
            *_worst_range(picture["worst_range"]),
            _diagonal(),
            *_sides(),
            interval | {"encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, **colour}},
            {"mark": point, "encoding": {"x": x, "y": y, **colour, "shape": scales["shape"]}},
            _targets(x, y, level),
        ],
    }


def _targets(x: Spec, y: Spec, level: str) -> Spec:
    """Invisible discs around the points: something to hit with a finger."""
    tooltip = [
        {"field": "series", "type": "nominal", "title": "predictions"},
        style.number("predicted", "it says", ".1%"),
        style.number("frequency", "it happens", ".1%"),
        style.number("low", f"{level} interval from", ".1%"),
        style.number("high", "to", ".1%"),
        style.number("count", "rows", ","),
    ]
    mark = {"type": "point", "filled": True, "size": 500, "opacity": 0, "aria": False}
    return {"mark": mark, "encoding": {"x": x, "y": y, "tooltip": tooltip}}


def _diagonal() -> Spec:
    corners = [{"predicted": 0, "frequency": 0}, {"predicted": 1, "frequency": 1}]
    mark = {"type": "line", "color": style.MUTED, "strokeDash": [5, 4], "strokeWidth": 1.2, "aria": False}
    return {"data": {"values": corners}, "mark": mark, "encoding": _corner_axes()}


def _sides() -> list[Spec]:
    """What it means to lie above or below the diagonal, in words."""
    sides = ((0.03, 0.95, "left", "it says too little"), (0.97, 0.05, "right", "it says too much"))
    return [
        {
            "data": {"values": [{"predicted": x, "frequency": y}]},
            "mark": {"type": "text", "text": words, "align": align, "color": style.MUTED, "fontSize": 12},
            "encoding": _corner_axes(),
        }
        for x, y, align, words in sides
    ]


def _corner_axes() -> Spec:
    return {
        "x": {"field": "predicted", "type": "quantitative"},
        "y": {"field": "frequency", "type": "quantitative"},
    }


def _worst_range(bounds: list[float] | None) -> list[Spec]:
    if bounds is None:
        return []
    return [
        {
            "data": {"values": [{"low": bounds[0], "high": bounds[1]}]},
            "mark": {"type": "rect", "color": style.WORST, "aria": False},
            "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        }
    ]


def _strip(curves: list[dict[str, Any]]) -> Spec:
    colour = style.series_scales(curves)["color"]
    y_axis = {"format": ".0%", "tickCount": 2, "grid": False}
    return {
        "width": style.WIDTH,
        "height": style.STRIP_HEIGHT,
        "mark": {"type": "rule", "strokeWidth": 7, "aria": False},
        "encoding": {
            "x": style.PROBABILITY_AXIS | {"title": "it says (predicted probability)"},
            "y": {"field": "share", "type": "quantitative", "title": "rows", "axis": y_axis},
            "y2": {"datum": 0},
            "color": colour,
            "tooltip": [
                style.number("predicted", "it says about", ".1%"),
                style.number("share", "share of rows", ".1%"),
                style.number("count", "rows", ","),
            ],
        },
    }
