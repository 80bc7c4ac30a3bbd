"""The gate for chunks, which unlike samples may be empty or without weight."""

from dataclasses import replace
from typing import Any

import numpy as np

from polycal._containers import to_numpy
from polycal._validation import check_sample
from polycal.sample import Sample


def check_chunk(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> Sample | None:
    """Validate a chunk of rows; None if it has none."""
    if to_numpy(y_true, "y_true").shape == (0,) and to_numpy(y_proba, "y_proba").shape[:1] == (0,):
        return None
    weight = None if sample_weight is None else to_numpy(sample_weight, "sample_weight")
    if weight is None or weight.dtype.kind not in "biuf" or weight.any():
        return check_sample(
            y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
        )
    # Rows that do not count are rows all the same; the weight of all chunks together must be positive.
    sample = check_sample(
        y_true, y_proba, sample_weight=weight + 1.0, class_names=class_names, from_logits=from_logits
    )
    return replace(sample, sample_weight=np.zeros(sample.n_samples))


def agree_names(before: tuple[str, ...], now: tuple[str, ...] | None) -> None:
    """Refuse classes of other names, or in another order; a chunk need not name them."""
    if now is None or now == before:
        return
    if len(now) != len(before):
        raise ValueError(f"the chunk has {len(now)} classes but those before had {len(before)}.")
    place = next(i for i in range(len(now)) if now[i] != before[i])
    raise ValueError(
        f"class {place} of the chunk is {now[place]!r} but was {before[place]!r} before; give all chunks the same "
        "classes in the same order."
    )
