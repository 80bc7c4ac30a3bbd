"""What a predictions file holds, before the gate."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Classes:
    """The classes of a file: how many, and what they are called."""

    n_classes: int
    names: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class RawPredictions:
    """The arrays of one file. Coming from a reader they are unchecked; the writers get them checked."""

    proba: NDArray[Any]
    from_logits: bool = False
    labels: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None
    evaluation: NDArray[Any] | None = None

    @property
    def classes(self) -> Classes:
        """The classes, one for each column; numbers without columns are probabilities of the second of two."""
        if self.proba.ndim not in {1, 2}:
            raise ValueError(f"the probabilities must have shape (n, k); got shape {self.proba.shape}")
        return Classes(2 if self.proba.ndim == 1 else int(self.proba.shape[1]), self.class_names)


def check_evaluation(evaluation: NDArray[Any], n_samples: int) -> None:
    """Refuse what does not mark rows."""
    if evaluation.dtype != np.bool_ or evaluation.shape != (n_samples,):
        raise ValueError(
            f"evaluation must be one boolean per row, {n_samples} in all; got shape {evaluation.shape} of "
            f"{evaluation.dtype}"
        )
