"""What became of each try, where it was not an answer."""

from collections import Counter

from benchmarks.rendering import markdown

# How rows of old results say that a method was not tried, which then had the status "time limit".
NOT_TRIED = ", so not tried here"
# In this order.
STATUSES = ("failed", "time limit", "skipped", "not run")


def outcome(row):
    """Status and error of a row: "skipped" where the method was not tried, as it had been too slow before."""
    status, error = row["status"], row.get("error", "")
    if status == "time limit" and error.startswith("not tried"):
        return "skipped", error
    if status == "time limit" and error.endswith(NOT_TRIED):
        return "skipped", error.removesuffix(NOT_TRIED)
    return status, error


def tally(rows, n_splits):
    """On how many of its splits a method did not finish, such as "failed on 1 of 5 splits"."""
    counts = Counter(outcome(row)[0] for row in rows)
    counts["not run"] = n_splits - len(rows)
    said = ", ".join(f"{status} on {counts[status]}" for status in STATUSES if counts[status])
    return f"{said} of {markdown.count(n_splits, 'split')}" if said else ""


def failures_part(rows):
    """What failed, took too long or was skipped, with the error; and answers that had to be mended."""
    found = {}
    for row in rows:
        status, error = outcome(row)
        if status != "ok":
            found.setdefault((row["method"], row["set"], status), []).append(error)
    lines = [
        [method, name, len(errors), status, errors[0]]
        for (method, name, status), errors in sorted(found.items(), key=_place)
    ]
    header = ["method", "set", "splits", "what", "error"]
    parts = [
        "## What failed, took too long or was skipped",
        markdown.table(header, lines, text=(0, 1, 3, 4)) if lines else "Nothing.",
    ]
    mended = {row["method"]: row["note"] for row in reversed(rows) if row.get("note")}
    if mended:
        said = "; ".join(f"{markdown.escape(m)} ({markdown.escape(mended[m])})" for m in sorted(mended))
        parts.append(f"Answers that had to be mended: {said}.")
    return "\n\n".join(parts)


def _place(item):
    (method, name, status), _ = item
    return method, name, STATUSES.index(status)
