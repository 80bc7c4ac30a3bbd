"""
Files that do not fit into memory, day by day
=============================================

Everything that is computed over rows adds up. So an audit of many files is the audit of all rows, states of different
days or machines can be merged, and nothing needs more memory than a chunk.
"""

import tempfile
from pathlib import Path

import polycal as pc

# %%
# A folder with the predictions of four days, as a service would write them.

example = pc.datasets.load_fashion("evaluation")
folder = Path(tempfile.mkdtemp())
for day in range(4):
    rows = example.take(slice(2500 * day, 2500 * day + 2500))
    pc.write_predictions(folder / f"day-{day}.npz", rows.labels, rows.proba, class_names=example.class_names)

# %%
# One audit of all of them. ``memory=`` bounds what is used, and does not change the result.

audit = pc.audit_stream(folder, memory="1GiB")
in_memory = pc.audit(example.labels, example.proba, class_names=example.class_names)
print(audit.worst.question, f"at least {audit.worst.at_least:.4f}")
print("the same in memory:", f"{in_memory.worst.at_least:.4f}")

# %%
# A state follows one question. Each day makes its own, they are saved, and merged later.

footwear = ["Sandal", "Sneaker", "Ankle_boot"]
for day in range(4):
    state = pc.states.QuestionState(footwear, resolution=1 / 1024)
    for chunk in pc.open_predictions(folder / f"day-{day}.npz"):
        rows = chunk.sample
        state.update(rows.labels, rows.proba, class_names=rows.class_names)
    state.save(folder / f"day-{day}.polycal")

states = [pc.load(folder / f"day-{day}.polycal") for day in range(4)]
for day, state in enumerate(states):
    print(f"day {day}: {state.finish().value:.4f}")
whole = states[0]
for state in states[1:]:
    whole.merge(state)
summary = whole.finish()
exact = pc.smooth_calibration_error(
    example.labels, example.proba, subset=footwear, class_names=example.class_names
)
print(f"all days: {summary.value:.5f}, and the exact error is {exact:.5f}, within {summary.bound:.5f}")

# %%
# On a cluster, ``pc.distributed.audit("s3://bucket/month/*.parquet", client=...)`` runs the same audit where the data
# is.
