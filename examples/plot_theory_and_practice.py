"""What do the theorems ask for, and what is needed in practice? Degrees, norms and rows.

Left: how far polynomials are from the hardest Lipschitz function and from a sigmoid, with the bounds. Middle: how large
these polynomials are in the space of the multinomial kernel, where the theorems assume the worst. Right: how many rows
an audit needs, by theorem (`polycal.hardness.required_samples`) and as tried: the fewest with which four audits in
five proved something, for predictions that give half of the classes too little by a constant. Run it from anywhere;
it writes ``docs/images/theory_and_practice.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from numpy.polynomial import Chebyshev

import polycal as pc
from polycal.hardness import required_samples
from polycal.kernels.degree import (
    bounded_radius_squared,
    jackson_error,
    jackson_polynomial,
    projection_norm,
    sigmoid_degree,
    sigmoid_polynomial,
)

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "theory_and_practice.png"
T = np.linspace(-1, 1, 8001)
DEGREES = np.unique(np.geomspace(1, 64, 16).astype(int))
SLOPE = 8.0
ALPHAS, N_CLASSES, N_TRIALS, TOP = (0.4, 0.2, 0.1, 0.05), 10, 10, 1e33
BLUE, ORANGE, GREEN, DARK, PINK = "#0072B2", "#D55E00", "#009E73", "#1B2A49", "#CC79A7"


def tanh(t):
    """The sigmoid approximated."""
    return np.tanh(SLOPE * t)


def draw_degrees(ax):
    """Approximation errors against degree."""
    jackson = [np.abs(jackson_polynomial(np.abs, d)(T) - np.abs(T)).max() for d in DEGREES]
    ax.plot(
        DEGREES,
        [jackson_error(d) for d in DEGREES],
        "--",
        color=BLUE,
        lw=1,
        label="|t|: Jackson operator, bound",
    )
    ax.plot(DEGREES, jackson, "o-", color=BLUE, ms=4, lw=1.4, label="|t|: Jackson operator")
    ax.plot(
        DEGREES,
        np.pi / 2 / (DEGREES + 1),
        ":",
        color=DARK,
        lw=1.2,
        label="any Lipschitz function, best bound",
    )
    series = [Chebyshev.interpolate(tanh, 512).truncate(d + 1) for d in DEGREES]
    ax.plot(
        DEGREES,
        [np.abs(p(T) - tanh(T)).max() for p in series],
        "s-",
        color=ORANGE,
        ms=4,
        lw=1.4,
        label=f"tanh({SLOPE:g}t): Chebyshev series",
    )
    tolerances = np.geomspace(1e-3, 0.9, 60)
    needed = [sigmoid_degree(SLOPE, e) for e in tolerances]
    ax.plot(needed, tolerances, "--", color=ORANGE, lw=1, label=f"tanh({SLOPE:g}t): bound")
    ax.set(
        xscale="log", yscale="log", xlabel="degree", ylabel="largest error on [−1, 1]", title="Approximation"
    )
    ax.set_xlim(1, 80)
    ax.set_ylim(8e-4, 4)
    ax.legend(frameon=False, fontsize=8, loc="lower left")


def draw_norms(ax):
    """Norms of these polynomials of a projection onto 10 classes, against degree."""
    m = float(N_CLASSES)
    paper = 4.0**DEGREES * m ** (DEGREES / 2)
    ax.plot(DEGREES, paper, ":", color=DARK, lw=1.2, label="the paper's bound, $(4\\sqrt{m})^d$")
    worst = [float(bounded_radius_squared(int(d), m)) ** 0.5 for d in DEGREES]
    ax.plot(DEGREES, worst, "--", color=DARK, lw=1, label="largest of bounded polynomials")
    norms = [projection_norm(jackson_polynomial(np.abs, d), m**0.5) for d in DEGREES]
    ax.plot(DEGREES, norms, "o-", color=BLUE, ms=4, lw=1.4, label="|⟨a, v⟩|: Jackson operator")
    polynomials = [sigmoid_polynomial(SLOPE, 0.0, e) for e in (0.9, 0.5, 0.2, 0.05, 0.01, 0.001)]
    degrees = [p.degree() for p in polynomials]
    sigmoids = [projection_norm(p, m**0.5) for p in polynomials]
    ax.plot(degrees, sigmoids, "s-", color=ORANGE, ms=4, lw=1.4, label=f"tanh({SLOPE:g}⟨a, v⟩)")
    ax.set(yscale="log", xlabel="degree", ylabel="norm (bound), $\\|a\\|_2^2 = 10$", title="Norms")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    ax.set_ylim(0.3, 1e90)


def fewest_rows(auditor, alpha):
    """The fewest rows, doubling, with which 80 % of the audits prove something on the other half of the rows."""
    n = 32
    while True:
        proofs = 0
        for seed in range(N_TRIALS):
            made = pc.datasets.make_shifted_subset(n, N_CLASSES, error=alpha, random_state=seed)
            half = n // 2
            witness = auditor.find_witness(made.labels[:half], made.proba[:half])
            proofs += pc.certify(witness, made.labels[half:], made.proba[half:]).lower_bound > 0
        if proofs >= 0.8 * N_TRIALS:
            return n
        n *= 2


def draw_rows(ax):
    """Rows by theorem and as tried, against the error."""
    theory = {
        "projected smooth, by theorem": (pc.ProjectedSmooth(), PINK),
        "sigmoids of slope 2, by theorem": (pc.Sigmoid(2), ORANGE),
        "degree 2, by theorem": (pc.LowDegree(2), BLUE),
    }
    for label, (notion, color) in theory.items():
        rows = [float(required_samples(notion, alpha, N_CLASSES).n_samples) for alpha in ALPHAS]
        ax.plot(ALPHAS, rows, "--", color=color, lw=1.2, marker=".", label=label)
        if rows[1] > TOP:
            words = ", ".join(
                f"$10^{{{np.log10(n):.0f}}}$ at {a:g}" for a, n in zip(ALPHAS[1:], rows[1:], strict=True)
            )
            ax.text(0.36, 3e31, words + " ↑", color=color, fontsize=8, ha="right", va="center")
    auditors = {
        "degree 2, as tried": (pc.KernelAuditor(pc.Multinomial(2), amplify=False), "o", BLUE),
        "subset search, as tried": (pc.SubsetAuditor(), "D", GREEN),
    }
    for label, (auditor, marker, color) in auditors.items():
        rows = [fewest_rows(auditor, alpha) for alpha in ALPHAS]
        print(f"{label}: {dict(zip(ALPHAS, rows, strict=True))}")
        ax.plot(ALPHAS, rows, marker + "-", color=color, ms=4.5, lw=1.4, label=label)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="error to be found",
        ylabel="rows",
        title=f"Rows, {N_CLASSES} classes",
    )
    ax.set_xticks(ALPHAS, [f"{a:g}" for a in ALPHAS])
    ax.minorticks_off()
    ax.set_ylim(10, TOP)
    ax.legend(frameon=False, fontsize=8, loc=(0.4, 0.2))


def main(output: Path) -> None:
    """Draw the three panels and save."""
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 3, figsize=(13.2, 4.5), layout="constrained")
    for ax, draw in zip(axes, (draw_degrees, draw_norms, draw_rows), strict=True):
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
