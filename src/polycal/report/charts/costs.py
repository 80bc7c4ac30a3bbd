"""Promised against paid: what acting on predictions costs, with intervals, before and after a calibrator."""

from typing import Any

from polycal.report.charts import style
from polycal.report.charts.style import Spec

_ROW_HEIGHT = 36


def cost_chart(cost: dict[str, Any]) -> Spec:
    """A line for each of what was promised and what was paid (of `Cost.to_dict`); the longer the line, the dearer."""
    after = cost["recalibrated"]
    first = "as given" if after is None else "before"
    values = [_point(what, first, cost[what]) for what in ("promised", "paid")]
    if after is not None:
        values += [
            _point(what, "after", after[what], " after the calibrator") for what in ("promised", "paid")
        ]
    order = [value["what"] for value in values]
    y = {"field": "what", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 220}}
    x = {
        "type": "quantitative",
        "title": "cost per row",
        "scale": {"zero": True, "nice": True},
        "axis": {"tickCount": 5},
    }
    scales = style.series_scales([{"series": name} for name in dict.fromkeys(v["series"] for v in values)])
    colour, shape = (scales[channel] | {"legend": None} for channel in ("color", "shape"))
    tooltip = [
        {"field": "what", "type": "nominal", "title": "cost"},
        style.number("value", "mean", ".3~g"),
        style.number("at_least", "at least", ".3~g"),
        style.number("at_most", "at most", ".3~g"),
    ]
    words = ", ".join(f"{value['what']} {value['value']:.3g}" for value in values)
    return {
        "description": f"What acting costs per row for {cost['name']}: {words}.",
        "data": {"values": values},
        "width": style.WIDTH,
        "height": _ROW_HEIGHT * len(values),
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "aria": False},
                "encoding": {
                    "y": y,
                    "x": x | {"field": "at_least"},
                    "x2": {"field": "at_most"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": x | {"field": "value"},
                    "color": colour,
                    "shape": shape,
                    "tooltip": tooltip,
                },
            },
            {
                "mark": {"type": "text", "dy": -12, "color": style.INK, "fontSize": 12, "aria": False},
                "encoding": {"y": y, "x": x | {"field": "value"}, "text": style.number("value", "", ".3~g")},
            },
        ],
        "config": style.config(),
    }


def _point(what: str, series: str, mean: dict[str, Any], when: str = "") -> dict[str, Any]:
    return {"what": f"{what}{when}", "series": series, **mean}
