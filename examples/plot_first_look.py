"""Where do a network's probabilities go wrong? Two questions to the same network, in one figure.

Draws the cumulative residuals of "is it a shirt?" and "is it footwear?" for the shipped example, on the same
scale. Run it from anywhere; it writes ``docs/images/cumulative.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

import polycal as pc

QUESTIONS = {
    "Is it a shirt?": ["Shirt"],
    "Is it footwear?": ["Sandal", "Sneaker", "Ankle_boot"],
}
DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "cumulative.png"


def main(output: Path) -> None:
    """Draw both questions side by side and save the figure."""
    mpl.use("Agg")
    example = pc.datasets.load_fashion("evaluation")
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True, layout="constrained")
    for ax, (title, subset) in zip(axes, QUESTIONS.items(), strict=True):
        curve = pc.smooth_calibration_curve(
            example.labels, example.proba, subset=subset, class_names=example.class_names
        )
        pc.plot_cumulative(curve, ax=ax, title=title)
    axes[1].set_ylabel("")
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
