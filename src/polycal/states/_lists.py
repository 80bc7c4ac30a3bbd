"""States of predictions that are lists of classes."""

from typing import Any, Self

import numpy as np

from polycal.sparse._gate import check_sparse_chunk
from polycal.states._base import State


class ListState(State):
    """A state whose chunks are SciPy sparse matrices.

    Attributes
    ----------
    remainder : str
        What is said of the probability that lists leave over.
    """

    remainder: str

    def update(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
        first_row: int | None = None,
    ) -> Self:
        """Take in a chunk of rows, as a SciPy sparse matrix; otherwise as every state."""
        del first_row
        if from_logits:
            raise ValueError("logits cannot be truncated: a class that is not listed would have logit 0.")
        sample = check_sparse_chunk(
            y_true, y_proba, remainder=self.remainder, sample_weight=sample_weight, class_names=class_names
        )
        self.absorb(sample, np.empty(0, dtype=np.int64))  # type: ignore[arg-type]  # it has what is asked of it
        return self
