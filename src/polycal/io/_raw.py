"""What a predictions file holds, before the gate."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RawPredictions:
    """The arrays of one file. Coming from a reader they are unchecked; the writers get them checked."""

    proba: NDArray[Any]
    from_logits: bool = False
    labels: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None
    evaluation: NDArray[Any] | None = None
