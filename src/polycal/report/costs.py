"""What acting on the predictions costs, in words and rows: shared by all renderers."""

from typing import Any

from polycal.report.charts.costs import cost_chart

# Actions to list, those that were taken most often first.
_MOST_ACTIONS = 12
# Swaps to say in a sentence.
_MOST_SWAPS = 3
COST_COLUMNS = ("loss", "", "promised", "paid", "between", "and")
ACTION_COLUMNS = ("action", "rows", "promised", "paid", "instead")
ABOUT = (
    "What the action of least expected cost was promised to cost by the predictions, what it cost, and what would have "
    "cost less; per row, in the unit of the loss. All bounds hold together with the others of this audit."
)


def cost_words(cost: dict[str, Any]) -> list[str]:
    """One loss in a few sentences, for readers who pay."""
    promised, paid = cost["promised"], cost["paid"]
    first = (
        f"Acting on these probabilities was promised to cost {amount(promised['value'])} per row. It cost "
        f"{amount(paid['value'])}{_excess_words(cost['excess'])}."
    )
    return [first, _swap_words(cost), *_recalibrated_words(cost["recalibrated"])]


def amount(value: float) -> str:
    """A cost, to three digits."""
    return f"{value:.3g}"


def _excess_words(excess: dict[str, Any]) -> str:
    if excess["at_least"] > 0:
        return f": at least {amount(excess['at_least'])} more than promised (proven)"
    if excess["at_most"] < 0:
        return f": at least {amount(-excess['at_most'])} less than promised (proven)"
    return "; that it differs from the promise is not shown"


def _swap_words(cost: dict[str, Any]) -> str:
    swaps, saving = cost["swaps"], cost["saving"]
    if saving is None:
        return "There are too few rows to look for swaps of actions on some and to judge them on others."
    if not swaps:
        return "No swap of one action for another looked as if it saved anything."
    pairs = [f"{swap['instead']} wherever {swap['action']} looks best" for swap in swaps]
    more = f" and {len(pairs) - _MOST_SWAPS} more swaps" if len(pairs) > _MOST_SWAPS else ""
    words = f"{', '.join(pairs[:_MOST_SWAPS])}{more}"
    if saving["lower_bound"] > 0:
        bound = amount(saving["lower_bound"])
        return f"Without any new model: take {words}. That saves at least {bound} per row (proven)."
    return f"Swaps were tried ({words}), but are not shown to save anything (estimate {amount(saving['estimate'])})."


def _recalibrated_words(recalibrated: dict[str, Any] | None) -> list[str]:
    if recalibrated is None:
        return []
    saving, paid = recalibrated["saving"], amount(recalibrated["paid"]["value"])
    if saving["lower_bound"] > 0:
        proven = f"recalibrating saves at least {amount(saving['lower_bound'])} per row (proven)"
    else:
        proven = f"that recalibrating saves anything is not shown (estimate {amount(saving['estimate'])})"
    return [f"After the calibrator, acting cost {paid}: {proven}."]


def cost_rows(costs: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each loss, and one more after a calibrator."""
    rows = []
    for cost in costs:
        repaired = cost["recalibrated"]
        named = [("as given", cost)] + ([("after the calibrator", repaired)] if repaired is not None else [])
        for number, (when, numbers) in enumerate(named):
            paid = numbers["paid"]
            cells = (numbers["promised"]["value"], paid["value"], paid["at_least"], paid["at_most"])
            rows.append(("" if number else cost["name"], when, *map(amount, cells)))
    return rows


def action_rows(cost: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each action that was taken, those taken most often first."""
    instead = {swap["action"]: swap["instead"] for swap in cost["swaps"]}
    taken = sorted((a for a in cost["by_action"] if a["share"] > 0), key=lambda a: -a["share"])
    return [
        (
            action["action"],
            f"{action['share']:.1%}",
            amount(action["promised"]),
            amount(action["paid"]),
            instead.get(action["action"], "–"),
        )
        for action in taken[:_MOST_ACTIONS]
    ]


def cost_parts(costs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every loss with its words, its picture and its actions, for pages."""
    return [
        {
            "id": f"cost-{i}",
            "name": cost["name"],
            "words": cost_words(cost),
            "rows": action_rows(cost),
            "chart": cost_chart(cost),
        }
        for i, cost in enumerate(costs)
    ]


def cost_advice(costs: list[dict[str, Any]]) -> list[str]:
    """What to do about costs: only what is proven."""
    lines = []
    for cost in costs:
        swaps, repaired = cost["saving"], cost["recalibrated"]
        if swaps is not None and swaps["lower_bound"] > 0:
            lines.append(
                f"{cost['name']}: swap actions as said below; that saves at least {amount(swaps['lower_bound'])} a row."
            )
        if repaired is not None and repaired["saving"]["lower_bound"] > 0:
            bound = amount(repaired["saving"]["lower_bound"])
            lines.append(
                f"{cost['name']}: act on the calibrator's output; that saves at least {bound} a row."
            )
    return lines
