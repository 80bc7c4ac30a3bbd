"""What a monitor tells: one HTML page that needs nothing else, and numbers for Prometheus."""

from typing import Any

from markupsafe import Markup

from polycal.report import assets
from polycal.report.charts.evidence import evidence_chart
from polycal.report.charts.reliability import reliability_chart

# Findings whose pictures are drawn.
_MOST_PICTURES = 6


def render_monitor(monitor: dict[str, Any], *, title: str | None = None) -> str:
    """The page of `Monitor.to_dict`. Every string is escaped; only the scripts of this package can run in it."""
    scripts = [
        assets.vega_bundle(),
        assets.inline_script(assets.static("page.js") + assets.static("monitor.js")),
    ]
    pictures = [_picture(finding, i) for i, finding in enumerate(monitor["findings"][:_MOST_PICTURES])]
    charts = [{"id": "evidence", "spec": evidence_chart(monitor)}] if monitor["history"]["row"] else []
    page: str = (
        assets.environment()
        .get_template("monitor.html")
        .render(
            monitor=monitor,
            title=title or "Monitor of predicted probabilities",
            badge=_badge(monitor),
            headline=_headline(monitor),
            meaning=_meaning(monitor),
            pictures=pictures,
            bets=sorted(monitor["bets"].items(), key=lambda bet: -bet[1]),
            policy=assets.policy(scripts),
            style=Markup(assets.static("report.css")),  # noqa: S704 - ours
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - ours and Vega's
            charts=Markup(assets.json_block([*charts, *(p["chart"] for p in pictures)])),  # noqa: S704 - escaped there
        )
    )
    return page


def _picture(finding: dict[str, Any], number: int) -> dict[str, Any]:
    """A finding with its chart."""
    drawn = {
        "question": finding["question"],
        "worst_range": [finding["low"], finding["high"]],
        "curves": finding["curves"],
    }
    name = f"finding-{number}"
    return finding | {"id": name, "chart": {"id": f"{name}-reliability", "spec": reliability_chart(drawn)}}


def _badge(monitor: dict[str, Any]) -> str:
    return "Alarm" if monitor["alarm"] else "No alarm"


def _headline(monitor: dict[str, Any]) -> str:
    if monitor["alarm"]:
        # Where the error was there from the first row on, its beginning is not exactly that row.
        changed = monitor["has_reference"] or monitor["since"] > monitor["alarm_row"] / 2
        return "The probabilities are no longer right" if changed else "The probabilities are not right"
    return "Nothing shows that the probabilities are wrong"


def _meaning(monitor: dict[str, Any]) -> str:
    """What an alarm, or none, means."""
    follows = "the calibrated predictions of the reference" if monitor["has_reference"] else "the predictions"
    if monitor["tolerance"]:
        right = f"If no question's error were above {monitor['tolerance']:g}"
    else:
        right = f"If the labels followed {follows}"
    if monitor["alarms"] == "many":
        return f"{right}, alarms would come at most once in {1 / monitor['alpha']:,.0f} rows on average."
    return f"{right}, there would ever be an alarm with probability at most {monitor['alpha']:g}."


def prometheus(monitor: dict[str, Any]) -> str:
    """The numbers of `Monitor.to_dict` in the text format of Prometheus, for its collector of text files."""
    plain = {
        "rows_total": ("counter", "Rows seen.", monitor["n_rows"]),
        "evidence_log10": (
            "gauge",
            "Logarithm of the e-value against the predictions, to base 10.",
            monitor["evidence"],
        ),
        "alarm": ("gauge", "Whether there was an alarm.", int(monitor["alarm"])),
        "alarms_total": ("counter", "Alarms so far, a thousand at most.", len(monitor["alarm_rows"])),
        "unlabelled_rows_total": ("counter", "Rows without a label.", monitor["n_unlabelled"]),
        "impossible_rows_total": (
            "counter",
            "Rows whose label had no probability.",
            monitor["n_impossible"],
        ),
    }
    lines = [
        line
        for name, (kind, help_, value) in plain.items()
        for line in _metric(name, kind, help_, {"": value})
    ]
    errors = {finding["question"]: finding["at_least"] for finding in monitor["findings"]}
    lines += _metric("error_at_least", "gauge", "Lower bound of the smooth error.", errors, "question")
    lines += _metric(
        "bet_log10", "gauge", "What bettors made of one coin, log 10.", monitor["bets"], "bettor"
    )
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, help_: str, values: dict[str, Any], label: str = "") -> list[str]:
    full = f"polycal_monitor_{name}"
    lines = [f"# HELP {full} {help_}", f"# TYPE {full} {kind}"]
    return lines + [
        f"{full}{{{label}={_quoted(key)}}} {value:.17g}" if label else f"{full} {value:.17g}"
        for key, value in values.items()
    ]


def _quoted(text: str) -> str:
    """The value of a label."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'
