"""Promised against paid: what acting on predictions costs, with intervals, before and after a calibrator."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec

_ROW_HEIGHT = 36
_WHAT = ("promised", "paid")
_NUMBERS = {"value": "mean", "at_least": "at least", "at_most": "at most"}
_AXIS: dict[str, Any] = {
    "type": "quantitative",
    "title": "cost per row",
    "scale": {"zero": True, "nice": True},
    "axis": {"tickCount": 5},
}


def cost_chart(cost: dict[str, Any]) -> Spec:
    """A line for each of what was promised and what was paid (of `Cost.to_dict`); the longer the line, the dearer."""
    after = cost["recalibrated"]
    values = [_point(what, "before" if after else "as given", cost[what]) for what in _WHAT]
    values += [_point(what, "after", after[what], " after the calibrator") for what in _WHAT if after]
    words = ", ".join(f"{value['what']} {value['value']:.3g}" for value in values)
    return {
        "description": f"What acting costs per row for {cost['name']}: {words}.",
        "data": {"values": values},
        "width": style.WIDTH,
        "height": _ROW_HEIGHT * len(values),
        "layer": _layers(values),
        "config": style.config(),
    }


def _point(what: str, series: str, mean: dict[str, Any], when: str = "") -> dict[str, Any]:
    return {"what": f"{what}{when}", "series": series, **mean}


def _layers(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The interval, the mean on it, and the mean as a number."""
    order = [value["what"] for value in values]
    y = {"field": "what", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 220}}
    scales = style.series_scales([{"series": name} for name in dict.fromkeys(v["series"] for v in values)])
    colour, shape = (scales[channel] | {"legend": None} for channel in ("color", "shape"))
    tooltip = [
        {"field": "what", "type": "nominal", "title": "cost"},
        *(style.number(field, words, ".3~g") for field, words in _NUMBERS.items()),
    ]
    interval = {"y": y, "x": _AXIS | {"field": "at_least"}, "x2": {"field": "at_most"}, "color": colour}
    mean = {"y": y, "x": _AXIS | {"field": "value"}}
    return [
        {"mark": {"type": "rule", "strokeWidth": 3, "aria": False}, "encoding": interval},
        {
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": mean | {"color": colour, "shape": shape, "tooltip": tooltip},
        },
        {
            "mark": {"type": "text", "dy": -12, "color": style.INK, "fontSize": 12, "aria": False},
            "encoding": mean | {"text": style.number("value", "", ".3~g")},
        },
    ]
