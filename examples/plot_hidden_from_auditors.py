"""What do auditors see of signs that were hidden to be hard to learn? Against degree, classes and rows.

Left: products of t signs (`polycal.hardness.make_hidden_xor`). No polynomial of lower degree than t sees anything, and
every further sign makes what is left to see smaller. Middle: a halfspace with noise (`make_hidden_halfspace`), the
whole distribution given: the searches for decisions and halfspaces have no guarantee, and do not reach it any more as
classes come in. Right: the same products, lifted to more classes where one steep sigmoid solves them, as
rows come in; a kernel so narrow that it knows each prediction by heart needs many rows of each, the polynomial kernel
of degree 1, for which the sigmoid's direction is a point of a very large ball, far more. What is proven is proven on
unseen rows at level 0.001; twins with calibrated labels show how often a proof is false.
Run it from anywhere; it writes ``docs/images/hidden_from_auditors.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import polycal as pc
from polycal.hardness import make_hidden_halfspace, make_hidden_xor

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "hidden_from_auditors.png"
SIGNS, DEGREES = (1, 2, 3, 4), range(9)
CLASSES, N_SEEDS = (4, 6, 9, 13, 20), 3
VARIABLES = {1: 6, 2: 6, 3: 5}
NARROW, PAPER = pc.KernelAuditor(pc.Laplace(0.03)), pc.KernelAuditor(pc.Multinomial(1))
ROWS, N_TRIALS, LEVEL = (200, 500, 1250, 3200, 8000), 3, 0.001
COLORS = ("#56B4E9", "#0072B2", "#1B2A49", "#CC79A7")


def ball_error(made, degree):
    """The error over the unit ball of the multinomial kernel, on the whole distribution."""
    gap = made.probabilities[:, None] * (made.conditionals - made.support)
    gram = pc.Multinomial(degree).block(made.support, made.support)
    return float(np.sqrt(np.maximum(np.einsum("il,ij,jl->l", gap, gram, gap), 0.0)).sum())


def draw_degrees(ax):
    """The product of t signs, by polynomials of growing degree."""
    for t, color in zip(SIGNS, COLORS, strict=True):
        made = make_hidden_xor(1, 5, t, degree=1)
        errors = np.array([ball_error(made, degree) for degree in DEGREES])
        seen = np.where(errors > 1e-8, errors, np.nan)
        ax.plot(DEGREES, seen, "o-", color=color, ms=4.5, lw=1.5, label=f"t = {t}")
        ax.plot(range(t), np.full(t, 2e-7), "x", color=color, ms=5, mew=1.2)
    ax.axhline(made.truth["canonical"], color="0.4", lw=0.9, ls="--")
    ax.text(8, 0.6, "canonical error", color="0.4", fontsize=8.5, ha="right", va="bottom")
    ax.text(0.1, 3.2e-7, "nothing", color="0.4", fontsize=8.5)
    ax.set(
        yscale="log", xlabel="degree", ylabel="error over the kernel's unit ball", title="Products of t signs"
    )
    ax.set_ylim(5e-8, 3)
    ax.legend(frameon=False, fontsize=8.5, loc=(0.76, 0.02))


def draw_classes(ax):
    """The share of a halfspace's error that the searches find."""
    found = {"halfspaces": [], "decisions": []}
    for k in CLASSES:
        shares = {name: [] for name in found}
        for seed in range(N_SEEDS):
            made = make_hidden_halfspace(1, k, random_state=seed)
            labels, proba, weight = made.population()
            for name, notion, truth in (
                ("halfspaces", pc.Halfspace(), made.truth["halfspace"]),
                ("decisions", pc.Decision(), made.truth["decision at least"]),
            ):
                error = pc.calibration_error(labels, proba, notion, sample_weight=weight)
                shares[name].append(error / truth)
        for name, values in shares.items():
            found[name].append(values)
    for (name, values), color, marker in zip(found.items(), (COLORS[1], "#D55E00"), "os", strict=True):
        ax.plot(np.repeat(CLASSES, N_SEEDS), np.ravel(values), ".", color=color, ms=4, alpha=0.5, mew=0)
        ax.plot(CLASSES, np.mean(values, axis=1), marker + "-", color=color, ms=4.5, lw=1.5, label=name)
    ax.axhline(1, color="0.4", lw=0.9, ls="--")
    ax.set(xlabel="classes", ylabel="share of the planted error", title="A hidden halfspace")
    ax.set_xticks(CLASSES)
    ax.set_ylim(0, 1.12)
    ax.legend(frameon=False, fontsize=8.5, loc="lower left")


def proven(auditor, made):
    """The lower bound, on one half of the rows, of what was found on the other."""
    half = len(made.labels) // 2
    witness = auditor.find_witness(made.labels[:half], made.proba[:half])
    return pc.certify(witness, made.labels[half:], made.proba[half:], alpha=LEVEL).lower_bound


def draw_rows(ax):
    """What kernel auditors prove of lifted products."""
    false = []
    for (t, n_variables), color in zip(VARIABLES.items(), COLORS, strict=False):
        bounds = np.zeros((2, len(ROWS), N_TRIALS))
        for column, n in enumerate(ROWS):
            for seed in range(N_TRIALS):
                made = make_hidden_xor(n, n_variables, t, random_state=seed)
                bounds[:, column, seed] = [proven(auditor, made) for auditor in (NARROW, PAPER)]
                twin = make_hidden_xor(n, n_variables, t, noise=0.5, random_state=seed)
                false += [proven(auditor, twin) for auditor in (NARROW, PAPER)]
        narrow, paper = np.maximum(bounds, 0).mean(axis=2)
        label = f"t = {t}: {made.proba.shape[1]} classes, {len(made.support)} predictions"
        ax.plot(ROWS, narrow, "o-", color=color, ms=4.5, lw=1.5, label=label)
        ax.plot(ROWS, paper, "^:", color=color, ms=4, lw=1.1)
    ax.plot([], [], "^:", color="0.35", ms=4, lw=1.1, label="multinomial kernel of degree 1")
    ax.axhline(made.truth["canonical"], color="0.4", lw=0.9, ls="--")
    ax.text(ROWS[0], made.truth["canonical"] * 1.015, "true error", color="0.4", fontsize=8.5, va="bottom")
    ax.set(xscale="log", xlabel="rows", ylabel="error proven on unseen rows", title="Products, lifted")
    ax.set_xticks(ROWS, [f"{n:,}" for n in ROWS])
    ax.minorticks_off()
    ax.set_ylim(-0.02, 0.82)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    print(f"False certificates: {np.sum(np.array(false) > 0)} of {len(false)}, on calibrated samples.")


def main(output: Path) -> None:
    """Draw the three panels and save."""
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 3, figsize=(13.2, 4.3), layout="constrained")
    for ax, draw in zip(axes, (draw_degrees, draw_classes, draw_rows), strict=True):
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
