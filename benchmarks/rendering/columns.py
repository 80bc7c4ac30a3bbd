"""The columns of the leaderboard."""

import math

import numpy as np

WORST_SUBSET = (
    "smooth calibration error of the worst subset of the classes: found on one half of the evaluation part by "
    "polycal's subset auditor, measured on the other half, where calibrated predictions would not read 0 either"
)
CANONICAL = (
    "squared canonical calibration error, debiased: the mean inner product of a row's residual with those of the √n "
    "rows of nearest prediction; 0 on average for calibrated predictions, so it may be negative, which ranks as 0"
)
# Columns of the results: title, decimals, and what it is.
COLUMNS = {
    "log_loss": ("log loss", 4, "mean of -log of the true class's probability, floored at 2.2e-16"),
    "brier": ("Brier", 4, "mean squared distance of prediction and one-hot label, summed over classes"),
    "worst_subset": ("worst subset", 4, WORST_SUBSET),
    "canonical": ("canonical", 5, CANONICAL),
    "classwise_ece": ("class-wise ECE", 5, "mean over classes, 15 equal-width bins"),
    "ece": ("ECE-15", 4, "of the most likely class, 15 equal-width bins"),
    "accuracy": ("accuracy", 4, "higher is better"),
}
# Those whose ratio to the input is shown.
SCORES = ("log_loss", "brier")
# Those shown with the difference to the best method.
PAIRED = ("log_loss", "brier", "worst_subset")


def median(values):
    """The median; NaN where there are none."""
    values = list(values)
    return float(np.median(values)) if values else math.nan
