"""When can anybody see that labels were fixed in advance? Not before predictions repeat.

Two distributions on the same predictions, far apart from each other: in one the labels are drawn anew from each
prediction, which is perfect calibration; in the other each prediction has one label for ever. As long as no prediction
is seen twice they are the same to everybody, so no test that accuses calibrated predictions one time in twenty
accuses the others more often than that plus the chance of a repeat (dashed). That chance depends on the number of rows
over the square root of the number of predictions, and there are exponentially many predictions in the number of
classes. Run it from anywhere; it writes ``docs/images/blind_until_repeats.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import polycal as pc
from polycal.hardness import Packing, make_fixed_labels, make_fresh_labels, pack_simplex, repeat_probability

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "blind_until_repeats.png"
LEVEL, N_DRAWS, N_TRIALS, N_FULL_TRIALS = 0.05, 19, 40, 20
SIZES = (100, 400, 1600)
RATIOS = np.array([0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0])
FULL_RATIOS = np.array([0.3, 1.0, 3.0, 8.0, 16.0])
COLORS = ("#56B4E9", "#0072B2", "#1B2A49")


def kernel_rejects(made, seed):
    """A kernel test so narrow that only equal predictions are alike."""
    test = pc.kernel_test(
        made.labels, made.proba, kernel=pc.Laplace(0.01), n_draws=N_DRAWS, random_state=seed, alpha=LEVEL
    )
    return test.is_significant


def full_smooth_rejects(made, seed):
    """The full smooth error, judged by redrawing labels."""
    notion = pc.FullSmooth(n_floor_draws=0)
    test = pc.calibration_test(
        made.labels, made.proba, notion, n_draws=N_DRAWS, random_state=seed, alpha=LEVEL, progress=False
    )
    return test.is_significant


def rejection_rates(packing, n, rejects, n_trials):
    """How often fixed and fresh labels are called miscalibrated."""
    fixed = [
        rejects(make_fixed_labels(packing, n, label_state=t, random_state=t), t) for t in range(n_trials)
    ]
    fresh = [rejects(make_fresh_labels(packing, n, random_state=t), t) for t in range(n_trials)]
    return np.mean(fixed), np.mean(fresh)


def main(output: Path) -> None:
    """Test many samples of both distributions, draw and save."""
    mpl.use("Agg")
    whole = pack_simplex(6, 0.18, max_points=max(SIZES))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.4), sharey=True, layout="constrained")
    false_alarms = []
    for size, color in zip(SIZES, COLORS, strict=True):
        packing = Packing(whole.points[:size], whole.separation)
        rows = np.unique(np.maximum(2, np.round(RATIOS * size**0.5).astype(int)))
        rates = np.array([rejection_rates(packing, n, kernel_rejects, N_TRIALS) for n in rows])
        false_alarms += rates[:, 1].tolist()
        fine = np.unique(np.geomspace(2, rows[-1], 60).astype(int))
        ceiling = [min(1, LEVEL + repeat_probability(packing, n)) for n in fine]
        for ax, scale in ((left, 1.0), (right, size**0.5)):
            label = f"{size:,} predictions"
            ax.plot(rows / scale, rates[:, 0], "o-", color=color, ms=4.5, lw=1.4, label=label)
            ax.plot(fine / scale, ceiling, "--", color=color, lw=0.9)
            ax.plot(rows / scale, rates[:, 1], "s", color=color, ms=3.5, mfc="white", mew=0.9)
    packing = Packing(whole.points[: SIZES[0]], whole.separation)
    rows = np.round(FULL_RATIOS * SIZES[0] ** 0.5).astype(int)
    rates = np.array([rejection_rates(packing, n, full_smooth_rejects, N_FULL_TRIALS) for n in rows])
    false_alarms += rates[:, 1].tolist()
    right.plot(FULL_RATIOS, rates[:, 0], "D-", color="#D55E00", ms=4.5, lw=1.4)
    right.annotate(
        "the full smooth error,\n100 predictions",
        (FULL_RATIOS[2], rates[2, 0]),
        (10, -12),
        textcoords="offset points",
        color="#D55E00",
        fontsize=8.5,
    )
    print(f"Calibrated labels accused: {np.mean(false_alarms):.3f} of the time, at level {LEVEL}.")
    left.set(xscale="log", xlabel="rows", ylabel="called miscalibrated", title="By the number of rows")
    right.set(xscale="log", xlabel="rows / √(number of predictions)", title="By the chance of a repeat")
    right.set_xlim(0.18, 22)
    left.set_ylim(-0.03, 1.05)
    left.plot([], [], "--", color="0.35", lw=0.9, label="no test can do better")
    left.plot([], [], "s", color="0.35", ms=3.5, mfc="white", mew=0.9, label="calibrated labels")
    left.legend(frameon=False, fontsize=8.5, loc=(0.02, 0.6))
    for ax in (left, right):
        ax.axhline(LEVEL, color="0.8", lw=0.8, zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
