"""Which set of classes can a network's probabilities be trusted least for? Found on one half, drawn on the other.

Searches one half of the shipped example for the set of classes whose summed probability is furthest off, and draws
that question's cumulative residuals on the half that the search never saw. Run it from anywhere; it writes
``docs/images/worst_subset.png``, or the file given as its argument.
"""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

import polycal as pc

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "worst_subset.png"


def main(output: Path) -> None:
    """Search, certify, draw and save."""
    mpl.use("Agg")
    half, other_half = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    auditor = pc.SubsetAuditor(random_state=0)
    witness = auditor.find_witness(half.labels, half.proba, class_names=half.class_names)
    certificate = pc.certify(witness, other_half.labels, other_half.proba)
    curve = pc.smooth_calibration_curve(other_half.labels, other_half.proba, subset=witness.members)
    print("Found on one half:", ", ".join(map(str, witness.subset)))
    print(f"Proven on the other: an error of at least {certificate.lower_bound:.4f}")

    figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
    title = f"Is it one of {', '.join(map(str, witness.subset))}?"
    pc.plot_cumulative(curve, ax=ax, title=title)
    output.parent.mkdir(parents=True, exist_ok=True)
    # Without the date and the version of matplotlib, so that the same picture is the same file.
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUTPUT)
