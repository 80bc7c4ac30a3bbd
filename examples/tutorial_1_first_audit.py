"""
A first audit: find the question that cannot be trusted
=======================================================

You have predicted probabilities and the true labels. In a few lines: find the question about the label that the
probabilities are most wrong about, read what it says and what happens, and look at it.
"""

from matplotlib import pyplot as plt

import polycal as pc

# %%
# The shipped example: a small neural network looked at pictures of clothes. Your own predictions may be a NumPy
# array of shape (n, k), a data frame with a column for each class, or a file (``pc.read_predictions("preds.csv")``).

example = pc.datasets.load_fashion("evaluation")
print(example)
print(", ".join(example.class_names))

# %%
# One call. Half of the rows are searched for the worst question, the other half judges what was found. The groups are
# sets of classes that somebody acts on.

audit = pc.audit(
    example.labels,
    example.proba,
    class_names=example.class_names,
    groups={
        "footwear": ["Sandal", "Sneaker", "Ankle_boot"],
        "tops": ["T-shirt/top", "Pullover", "Coat", "Shirt"],
    },
)
print(audit)

# %%
# The worst question in numbers. ``at_least`` is proven: with 95 % confidence the true error is no smaller, and that
# holds for everything the audit shows together.

worst = audit.worst
print(worst.question)
print(f"error about {worst.certificate.estimate:.3f}, at least {worst.at_least:.3f}")
print(f"says {worst.reading.predicted:.2f}, is {worst.reading.observed:.2f}")

# %%
# For questions that nobody searched for (confidence, ranks, your groups) all rows give bounds from both sides. So there
# are three verdicts: off, right to within 0.02, or not enough rows.

for question in (audit.confidence, *audit.groups):
    print(f"{question.name:12} {question.at_least:.4f} to {question.at_most:.4f}: {question.verdict()}")

# %%
# Where in the predictions does an error come from? Pictures stand from left to right by what the network predicted, and
# the curve adds up *outcome - predicted*: where it falls, "yes" is rarer than predicted.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, subset in zip(axes, (["Shirt"], ["Sandal", "Sneaker", "Ankle_boot"]), strict=True):
    curve = pc.smooth_calibration_curve(
        example.labels, example.proba, subset=subset, class_names=example.class_names
    )
    pc.plots.plot_cumulative(curve, ax=ax)

# %%
# The same question in bins, as most people know it:

curve = pc.reliability_curve(example.labels, example.proba, class_names=example.class_names)
ax = pc.plots.plot_reliability(curve)

# %%
# ``audit.to_html("report.html")`` writes all this as one page to pass around. On the command line:
# ``polycal audit preds.npz --html report.html``.
