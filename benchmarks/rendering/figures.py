"""The figure of the benchmark page."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from benchmarks import ranking

SHOWN = {"log_loss": "log loss", "brier": "Brier score", "worst_subset": "worst subset, held out"}
MOST = 24


def draw_leaderboard(rows, path):
    """Average ranks in three columns, polycal's methods in colour."""
    mpl.use("Agg")
    order = [standing.method for standing in ranking.standings(rows, "log_loss")][:MOST]
    figure, axes = plt.subplots(1, len(SHOWN), figsize=(11, 1.2 + 0.25 * len(order)), sharey=True)
    for axis, (column, title) in zip(axes, SHOWN.items(), strict=True):
        places = {standing.method: standing for standing in ranking.standings(rows, column)}
        for height, method in enumerate(order):
            standing = places[method]
            colour = "tab:blue" if method.startswith("polycal") else "0.25" if method == "none" else "0.6"
            error = np.nan_to_num(standing.rank_error)
            axis.errorbar(standing.rank, height, xerr=error, fmt="o", color=colour, ecolor=colour, capsize=2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("average rank (1 is best)")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(order)), order, fontsize=8)
    axes[0].invert_yaxis()
    for label in axes[0].get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith("polycal") else "normal")
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
