"""GitHub Actions: one step that audits files and ends in pass, fail or not enough rows. `action.yml` runs it."""

import os
import sys
from collections.abc import Mapping

from polycal._text import printable
from polycal._validation import check_choice
from polycal.auditing.audit import audit_stream
from polycal.integrations.gate import Judgement, judge
from polycal.io.groups import read_groups
from polycal.report.words import TOLERANCE

# How GitHub shows a line: red, yellow, or as a note.
_LEVELS = {"pass": "notice", "fail": "error", "not enough rows": "warning"}


def run(inputs: Mapping[str, str]) -> tuple[Judgement, str]:
    """Audit the files that the inputs of a step name; the judgement, and the report as Markdown.

    Parameters
    ----------
    inputs : mapping of str to str
        "files" (patterns, one in each line), and if wanted "groups", "at-most", "alpha" and "html"; and what the
        columns are, as for the command: "label", "weight", "classes", "drop", "from-logits" and "normalize".
    """
    files = inputs.get("files", "").split()
    if not files:
        raise ValueError("files is empty; name the files that hold predictions with labels.")
    groups, page = inputs.get("groups"), inputs.get("html")
    result = audit_stream(
        files,
        groups=read_groups(groups) if groups else None,
        alpha=_number(inputs, "alpha", 0.05),
        label=inputs.get("label"),
        weight=inputs.get("weight"),
        classes=_names(inputs, "classes") or None,
        drop=_names(inputs, "drop"),
        from_logits=_flag(inputs, "from-logits"),
        normalize=_flag(inputs, "normalize"),
    )
    if page:
        result.to_html(page, title=" ".join(files))
    return judge(result, at_most=_number(inputs, "at-most", TOLERANCE)), result.to_markdown(
        title=" ".join(files)
    )


def main() -> int:
    """Run as a step: inputs from ``INPUT_...``, the outcome to GitHub's files, 1 if the step fails.

    Examples
    --------
    ``python -m polycal.integrations.github`` with ``INPUT_FILES=preds.npz`` and ``INPUT_AT-MOST=0.02``.
    """
    inputs = {
        name.removeprefix("INPUT_").lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("INPUT_") and value
    }
    try:
        unsure = check_choice(inputs.get("if-unsure", "fail"), "if-unsure", ("fail", "pass"))
        judged, report = run(inputs)
    except (ValueError, TypeError, OSError, ImportError) as error:
        sys.stdout.write(annotation("error", str(error)))
        return 2
    for line in judged.reasons or (judged.outcome,):
        sys.stdout.write(annotation(_LEVELS[judged.outcome], line))
    _append("GITHUB_OUTPUT", f"outcome={judged.outcome}\n")
    _append("GITHUB_STEP_SUMMARY", report)
    return int(judged.outcome == "fail" or (judged.outcome == "not enough rows" and unsure == "fail"))


def annotation(level: str, text: str) -> str:
    """A line that GitHub shows beside the step; nothing in the text can be taken for a command.

    Parameters
    ----------
    level : {"notice", "warning", "error"}
    text : str
        Names of classes in it come from data.
    """
    shown = printable(text, lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title=polycal::{shown}\n"


def _number(inputs: Mapping[str, str], name: str, default: float) -> float:
    text = inputs.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise ValueError(f"{name} must be a number; got {text!r}.") from None


def _names(inputs: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in inputs.get(name, "").split(",") if part.strip()]


def _flag(inputs: Mapping[str, str], name: str) -> bool:
    return check_choice(inputs.get(name, "false"), name, ("true", "false")) == "true"


def _append(variable: str, text: str) -> None:
    """Add to the file that an environment variable names, if there is one."""
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - appended to, as GitHub asks
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
