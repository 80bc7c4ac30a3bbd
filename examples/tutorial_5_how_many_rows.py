"""
How many rows are enough? Gates that know when they do not know
===============================================================

A number without its uncertainty passes bad models and stops good ones. Here predictions that are known to be right, and
others that are known to be wrong, are judged with more and more rows.
"""

import numpy as np
from matplotlib import pyplot as plt

import polycal as pc
from polycal.integrations import NotEnoughRows, assert_calibrated

# %%
# The plain error of *calibrated* predictions is not 0: it falls like one over the square root of the number of rows.
# The bounds are honest about it.

sizes = [250, 500, 1000, 2000, 4000, 8000, 16000]
right, wrong = [], []
for n in sizes:
    made = pc.datasets.make_calibrated(n, 5, random_state=1)
    right.append(pc.audit(made.labels, made.proba, auditors={}).confidence)
    off = pc.datasets.make_temperature(n, 5, temperature=0.8, random_state=1)
    wrong.append(pc.audit(off.labels, off.proba, auditors={}).confidence)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, questions, title in zip(axes, (right, wrong), ("calibrated", "too sure"), strict=True):
    low = np.array([question.at_least for question in questions])
    high = np.array([question.at_most for question in questions])
    ax.fill_between(sizes, low, high, alpha=0.3, label="between the bounds")
    ax.plot(sizes, [question.smooth_error for question in questions], "o-", label="plain error")
    ax.axhline(0.02, color="0.4", linestyle="--", label="tolerance 0.02")
    ax.set(xscale="log", ylim=(0, 0.15), xlabel="rows", title=title)
axes[0].set_ylabel("error of confidence")
axes[1].legend()

# %%
# So a gate has three outcomes.

for n, question, other in zip(sizes, right, wrong, strict=True):
    print(f"{n:6} rows: calibrated: {question.verdict():16} too sure: {other.verdict()}")

# %%
# About how many rows would show that predictions are right to within a tolerance, if they are? Chance may ask for
# somewhat more, as it did above.

for tolerance in (0.05, 0.02, 0.01):
    print(f"within {tolerance}: about {round(right[3].rows_needed(2000, tolerance), -3):,} rows")

# %%
# In a test suite, ``assert_calibrated`` raises ``NotEnoughRows`` (an ``AssertionError``) where nothing can be said.

made = pc.datasets.make_calibrated(1000, 5, random_state=1)
try:
    assert_calibrated(made.labels, made.proba, at_most=0.02)
except NotEnoughRows as said:
    print(said)
