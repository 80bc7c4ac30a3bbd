"""The words of ``polycal demo``: what a subset question is, and what the numbers say."""

from typing import Any

INTRODUCTION = (
    "A small neural network looked at 10,000 pictures of clothes it had never seen and gave each of ten classes a "
    'probability. Any set of classes is a yes/no question: the network\'s answer to "is it footwear?" is the sum of '
    "the probabilities of Sandal, Sneaker and Ankle_boot. The smooth calibration error (smCE) says how far such "
    "answers are from what happened: 0 means they can be taken at their word. An audit searches half of the pictures "
    "for the worst question, and puts it to the other half.\n"
)


def conclusion(audit: dict[str, Any]) -> str:
    """What to take away from the demo's audit, beside its verdict."""
    return f"\n{_comparison(audit)}\nNext: polycal audit YOUR_PREDICTIONS.npz --groups YOUR_GROUPS.yaml"


def _comparison(audit: dict[str, Any]) -> str:
    """The best group against the worst question proven, if there are both."""
    proven = [f for f in audit["findings"] if f["significant"] and f["is_question"]]
    best = min(audit["groups"], key=lambda group: group["smooth_error"], default=None)
    if not proven or best is None or best["smooth_error"] == 0:
        return ""
    ratio = proven[0]["estimate"] / best["smooth_error"]
    return (
        f'So one network can be trusted very differently: on "{best["name"]}" its answers have an error of '
        f"{best['smooth_error']:.4f}, on the worst question {ratio:.0f} times as much. Nobody had to think of that "
        "question: it was found on half of the pictures. And it is no fluke of the search: the other half, which the "
        "search never saw, confirms it.\n"
    )
