"""The tree of classes with what is shown of every node: shared by the page and the explorer."""

from typing import Any

from polycal.report.words import TOLERANCE, between

# What a node is marked with: found wrong, proven right, neither.
MARKS = {"worse": "✕", "better": "✓", "same": "○"}


def mark(node: dict[str, Any]) -> str:
    """Whether a node is found wrong ("worse"), proven right ("better"), or neither ("same")."""
    if node["discovered"]:
        return "worse"
    return "better" if node["at_most"] is not None and node["at_most"] <= TOLERANCE else "same"


def node_words(node: dict[str, Any]) -> str:
    """What is said and what happens, the error, and its bounds."""
    words = (
        f"says {node['predicted']:.4f}, is {node['frequency']:.4f}, error "
        f"{between(node['smooth_error'], node['smooth_error_high'])}"
    )
    if node["at_least"] is None:
        return words
    return f"{words}, at least {node['at_least']:.4f}, at most {node['at_most']:.4f}"


def tree_words(nodes: list[dict[str, Any]]) -> str:
    """How many nodes there are of each kind."""
    counts = {kind: sum(mark(node) == kind for node in nodes) for kind in MARKS}
    return (
        f"{len(nodes):,} nodes: {counts['worse']:,} found wrong, {counts['better']:,} proven right, "
        f"{counts['same']:,} open"
    )


def tree_of(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes from the top, each with its mark, its words, and those below it."""
    after = {} if audit["after"] is None else {node["path"]: node for node in audit["after"]["nodes"]}
    at: dict[str | None, dict[str, Any]] = {}
    tops: list[dict[str, Any]] = []
    for node in audit["nodes"]:
        repaired = after.get(node["path"])
        at[node["path"]] = row = {
            "name": node["name"],
            "mark": mark(node),
            "words": node_words(node),
            "after": None if repaired is None else (mark(repaired), f"{repaired['smooth_error']:.4f}"),
            "size": len(node["classes"]),
            "below": [],
        }
        # A node with all classes below is no question, and not there.
        above = at.get(node["parent"])
        (tops if above is None else above["below"]).append(row)
    _mark_below(tops)
    return tops


def _mark_below(rows: list[dict[str, Any]]) -> int:
    """Say of each node how many below it are found wrong; returns how many of these nodes and below are."""
    total = 0
    for row in rows:
        row["wrong_below"] = _mark_below(row["below"])
        total += row["wrong_below"] + (row["mark"] == "worse")
    return total
