"""The cumulative residual: what happened minus what was predicted, summed from the smallest prediction up. No bins."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec

_X = {"field": "predicted", "type": "quantitative"}


def cumulative_chart(picture: dict[str, Any], heights: list[float] | None = None) -> Spec:
    """The curve F of a picture (of `Audit.to_dict`), with the band that calibrated predictions would stay in.

    One series also shows S, the nearest monotone curve, and the area between: its error. Two would be too much.
    ``heights`` is the range of the vertical axis, for charts that stand side by side.
    """
    curves = picture["curves"]
    values = [row for curve in curves for row in style.rows_of(curve, "steps")]
    only = curves[0] if len(curves) == 1 else None
    return {
        "description": f"Cumulative residuals: {picture['question']} Level where the predictions are right.",
        "data": {"values": values},
        "width": style.WIDTH,
        "height": style.HEIGHT + style.STRIP_HEIGHT + 25,
        "layer": [
            _band(max(curve["band"] for curve in curves)),
            *([_area()] if only else []),
            _zero(),
            _line(curves, heights),
            *([_mean_residual(only["mean_residual"])] if only else []),
            _targets(curves, heights),
        ],
        "config": style.config(),
    }


def _band(height: float) -> Spec:
    band = [{"low": -height, "high": height}]
    mark = {"type": "rect", "color": style.BAND, "aria": False}
    encoding = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    return {"data": {"values": band}, "mark": mark, "encoding": encoding}


def _area() -> Spec:
    """Between F and S: with the height of the bracket at the end, this area is the error."""
    mark = {"type": "area", "interpolate": "step-after", "color": style.SHADE, "aria": False}
    y = {"field": "cumulative", "type": "quantitative"}
    return {"mark": mark, "encoding": {"x": _X, "y": y, "y2": {"field": "monotone"}}}


def _zero() -> Spec:
    return {"mark": {"type": "rule", "color": style.MUTED, "aria": False}, "encoding": {"y": {"datum": 0}}}


def _line(curves: list[dict[str, Any]], heights: list[float] | None) -> Spec:
    scales = _strokes(curves)
    return {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
        "encoding": {
            "x": style.PROBABILITY_AXIS | {"title": "it says (predicted probability)"},
            "y": _y(heights),
            "color": scales["color"],
            "strokeDash": scales["strokeDash"],
        },
    }


def _strokes(curves: list[dict[str, Any]]) -> dict[str, Spec]:
    """The series, with strokes in the legend."""
    legend = {"legend": {"symbolType": "stroke", "symbolStrokeWidth": 2.5}} if len(curves) > 1 else {}
    return {channel: spec | legend for channel, spec in style.series_scales(curves).items()}


def _y(heights: list[float] | None) -> Spec:
    axis = {"format": "+.3~g", "tickCount": 6}
    return {
        "field": "cumulative",
        "type": "quantitative",
        "title": "happened − predicted, summed up to here",
        "axis": axis,
        **({} if heights is None else {"scale": {"domain": heights, "nice": False}}),
    }


def _mean_residual(height: float) -> Spec:
    """The mean residual as a bracket at the end."""
    mark = {"type": "rule", "strokeWidth": 4, "color": style.INK, "aria": False}
    encoding = {
        "x": {"field": "predicted", "type": "quantitative"},
        "y": {"field": "from", "type": "quantitative"},
        "y2": {"field": "to"},
        "tooltip": style.number("to", "happened − predicted, over all rows", "+.4f"),
    }
    return {
        "data": {"values": [{"predicted": 1, "from": 0, "to": height}]},
        "mark": mark,
        "encoding": encoding,
    }


def _targets(curves: list[dict[str, Any]], heights: list[float] | None) -> Spec:
    """The nearest point of the curve shows itself and its numbers."""
    hover = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    return {
        "params": [{"name": "hover", "select": hover}],
        "mark": {"type": "point", "filled": True, "size": 60, "aria": False},
        "encoding": {
            "x": _X,
            "y": _y(heights),
            "color": _strokes(curves)["color"],
            "opacity": {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0},
            "tooltip": [
                style.number("predicted", "predictions up to", ".1%"),
                style.number("cumulative", "happened − predicted, summed", "+.4f"),
            ],
        },
    }
