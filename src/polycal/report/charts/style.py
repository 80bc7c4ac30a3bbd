"""What all pictures share: sizes, letters, and colours.

Colours are names of CSS variables, so that a page changes from light to dark, or to print, without drawing anew.
The page defines them; `polycal.report.static` holds a palette that colour-blind readers can tell apart.
"""

from typing import Any

Spec = dict[str, Any]

# Together with axes narrower than a phone.
WIDTH, HEIGHT, STRIP_HEIGHT = 330, 270, 40

INK, MUTED, GRID = "var(--ink)", "var(--muted)", "var(--grid)"
BAND, SHADE, WORST = "var(--band)", "var(--shade)", "var(--worst)"
# Series differ by colour, shape and dash: never by colour alone.
_COLOURS = {"as given": "var(--given)", "before": "var(--before)", "after": "var(--after)"}
_SHAPES = {"as given": "circle", "before": "diamond", "after": "circle"}
_DASHES: dict[str, list[int]] = {"as given": [1, 0], "before": [5, 3], "after": [1, 0]}

PROBABILITY_AXIS: Spec = {
    "field": "predicted",
    "type": "quantitative",
    "scale": {"domain": [0, 1]},
    "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%"},
}


def config() -> Spec:
    """The configuration common to all pictures."""
    text = {"labelColor": MUTED, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {
            **text,
            "titleFontWeight": "normal",
            "gridColor": GRID,
            "domainColor": GRID,
            "tickColor": GRID,
            "titlePadding": 8,
        },
        "legend": {**text, "orient": "top", "title": None, "symbolSize": 80},
    }


def series_scales(curves: list[dict[str, Any]]) -> dict[str, Spec]:
    """Colour, shape and dash of the series; with a legend where there is more than one."""
    names = [curve["series"] for curve in curves]
    legend = {} if len(names) > 1 else {"legend": None}

    def channel(values: dict[str, Any]) -> Spec:
        scale = {"domain": names, "range": [values[name] for name in names]}
        return {"field": "series", "type": "nominal", "scale": scale, **legend}

    return {"color": channel(_COLOURS), "shape": channel(_SHAPES), "strokeDash": channel(_DASHES)}


def rows_of(curve: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """The columns ``curve[part]`` as rows that know their series."""
    columns: dict[str, list[Any]] = curve[part]
    return [
        {"series": curve["series"], **dict(zip(columns, row, strict=True))}
        for row in zip(*columns.values(), strict=True)
    ]


def number(field: str, title: str, form: str) -> Spec:
    """A line of a tooltip."""
    return {"field": field, "type": "quantitative", "title": title, "format": form}
