"""What acting on probabilities costs: promised and paid, before and after a calibrator, against the price of asking.

A wrong tag costs 1, and asking a person costs what the axis says. Run it from anywhere; it writes
``docs/images/what_it_costs.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import polycal as pc

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "what_it_costs.png"
PRICES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
# From the palette of Okabe and Ito.
COLOURS = {"as given": "#D55E00", "recalibrated": "#0072B2"}


def main(output: Path) -> None:
    """Fit, act, draw and save."""
    mpl.use("Agg")
    known, later = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    calibrator = pc.KernelCalibrator().fit(known.proba, known.labels)
    losses = {str(price): np.vstack([1 - np.eye(10), np.full(10, price)]) for price in PRICES}
    audit = pc.audit(later.labels, later.proba, losses=losses, calibrator=calibrator, notions=(), auditors={})
    series = {"as given": list(audit.costs), "recalibrated": [cost.recalibrated for cost in audit.costs]}

    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, costs in series.items():
        paid = np.array([(c.paid.value, c.paid.at_least, c.paid.at_most) for c in costs]).T
        ax.plot(
            PRICES, [c.promised.value for c in costs], "--", color=COLOURS[name], label=f"promised, {name}"
        )
        ax.plot(PRICES, paid[0], "-", color=COLOURS[name], label=f"paid, {name}")
        ax.fill_between(PRICES, paid[1], paid[2], color=COLOURS[name], alpha=0.15, linewidth=0)
    ax.set(xlabel="price of asking a person (a wrong tag costs 1)", ylabel="cost per picture", ylim=(0, None))
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
