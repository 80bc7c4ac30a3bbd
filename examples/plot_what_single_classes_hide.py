"""How wrong can a sum of classes be, when every single class is right?

The family of `polycal.hardness.make_hidden_subset`: class-wise, confidence and top-label calibration hold exactly, and
the summed probability of half of the classes is as wrong as it can be. On the left, what is measured and what is
proven on unseen rows (at level 0.001) as rows come in; on the right, for more and more classes. Twins of the same
samples with calibrated labels show how often a proof is false. Each dot is one sample: since no class is wrong on its
own, a search that changes one class at a time sometimes has nowhere to go. Run it from anywhere; it writes
``docs/images/what_single_classes_hide.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import polycal as pc
from polycal.hardness import largest_hidden_error, make_hidden_subset

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "what_single_classes_hide.png"
N_CLASSES, ERROR, N_TRIALS, LEVEL = 10, 0.1, 8, 0.001
ROWS = (250, 500, 1000, 2000, 4000, 8000, 16_000)
CLASSES, ROWS_EACH = (4, 6, 8, 12, 16, 24, 32), 4000
PROVEN, MEASURED = "a set of classes: proven on unseen rows", "the worst class: measured"
BLUE, ORANGE, DARK = "#0072B2", "#D55E00", "#1B2A49"


def proven(made, seed):
    """The lower bound, on one half of the rows, for the set found on the other."""
    half = len(made.labels) // 2
    witness = pc.SubsetAuditor(random_state=seed).find_witness(made.labels[:half], made.proba[:half])
    return pc.certify(witness, made.labels[half:], made.proba[half:], alpha=LEVEL).lower_bound


def trials(n, k, error):
    """Proven errors, class-wise errors, and what is proven about the calibrated twins."""
    bounds, classwise, false = [], [], []
    for seed in range(N_TRIALS):
        made = make_hidden_subset(n, k, error=error, random_state=seed)
        bounds.append(proven(made, seed))
        classwise.append(pc.calibration_error(made.labels, made.proba, pc.Classwise(smooth=True)))
        false.append(proven(make_hidden_subset(n, k, error=0.0, random_state=seed), seed))
    return np.array(bounds), np.array(classwise), np.array(false)


def trials_and_median(ax, x, values, color, label, marker="o"):
    """Every trial as a dot, and the median."""
    values = np.maximum(values, 0.0)
    ax.plot(np.repeat(x, N_TRIALS), values.ravel(), ".", color=color, ms=6, alpha=0.5, mew=0)
    ax.plot(x, np.median(values, axis=1), marker + "-", color=color, ms=4.5, lw=1.5, label=label)


def main(output: Path) -> None:
    """Draw both panels and save."""
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.4), layout="constrained")
    by_rows = [trials(n, N_CLASSES, ERROR) for n in ROWS]
    trials_and_median(left, ROWS, np.array([r[0] for r in by_rows]), BLUE, PROVEN)
    trials_and_median(left, ROWS, np.array([r[1] for r in by_rows]), ORANGE, MEASURED, "s")
    left.axhline(ERROR, color=BLUE, lw=0.9, ls="--")
    left.text(ROWS[0], ERROR * 1.02, "the true error of the set", color=BLUE, fontsize=8.5, va="bottom")
    left.axhline(0, color=ORANGE, lw=0.9, ls="--")
    left.text(
        ROWS[-1], -0.004, "the true error of every class", color=ORANGE, fontsize=8.5, va="top", ha="right"
    )
    left.set(xscale="log", xlabel="rows", ylabel="error", title=f"{N_CLASSES} classes")

    by_classes = [trials(ROWS_EACH, k, None) for k in CLASSES]
    trials_and_median(right, CLASSES, np.array([r[0] for r in by_classes]), BLUE, PROVEN)
    trials_and_median(right, CLASSES, np.array([r[1] for r in by_classes]), ORANGE, MEASURED, "s")
    k = np.arange(4, max(CLASSES) + 1, 2)
    right.plot(
        k, [largest_hidden_error(c) for c in k], "--", color=BLUE, lw=0.9, label="the true error of the set"
    )
    right.plot(
        k,
        [largest_hidden_error(c, sharpness=0) for c in k],
        ":",
        color=DARK,
        lw=1.1,
        label="the most that calibrated classes can hide",
    )
    right.set(xlabel="classes", title=f"{ROWS_EACH:,} rows")
    right.set_ylim(-0.02, 0.52)
    left.set_ylim(-0.014, 0.125)

    false = np.concatenate([r[2] for r in by_rows + by_classes])
    print(f"False certificates: {np.sum(false > 0)} of {false.size} calibrated samples.")
    right.legend(frameon=False, fontsize=8.5, loc=(0.36, 0.13))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
