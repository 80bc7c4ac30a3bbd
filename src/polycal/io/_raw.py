"""What a predictions file holds, before the gate."""

from dataclasses import dataclass
from typing import Any

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
        """The classes, one for each column."""
        if self.proba.ndim != 2:
            raise ValueError(f"the probabilities must have shape (n, k); got shape {self.proba.shape}")
        return Classes(int(self.proba.shape[1]), self.class_names)
