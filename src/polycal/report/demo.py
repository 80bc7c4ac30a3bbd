"""The words of ``polycal demo``: what a subset question is, and what the numbers say."""

from typing import Any

INTRODUCTION = (
    "A small neural network looked at 10,000 pictures of clothes it had never seen and gave each of ten classes a "
    'probability. Any set of classes is a yes/no question: the network\'s answer to "is it footwear?" is the sum of '
    "the probabilities of Sandal, Sneaker and Ankle_boot. The exact smooth calibration error (smCE) says how far "
    "such answers are from what happened: 0 means they can be taken at their word.\n"
)


def conclusion(audit: dict[str, Any]) -> str:
    """What the demo's audit found, in words, from its numbers."""
    best = min(audit["groups"], key=lambda group: group["smooth_error"])
    worst = max(audit["groups"], key=lambda group: group["smooth_error"])
    ratio = worst["smooth_error"] / best["smooth_error"]
    return (
        f'\nThe same network can be trusted very differently: its answers to "{best["name"]}" have an error of '
        f'{best["smooth_error"]:.4f}, those to "{worst["name"]}" ({", ".join(worst["classes"])}) one of '
        f"{worst['smooth_error']:.4f}, {ratio:.0f} times as much. No measure of the most likely class alone can tell "
        "these two questions apart.\n"
        "\nNext: polycal audit YOUR_PREDICTIONS.npz --groups YOUR_GROUPS.yaml"
    )
