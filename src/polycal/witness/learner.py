"""Witnesses made of fitted estimators, one per class."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.witness._base import State, Witness


@dataclass(frozen=True, eq=False, repr=False)
class LearnerWitness(Witness):
    """w_j(v) = clip(c h_j(v), -1, 1) for the classes j that have an estimator, 0 for the others.

    Attributes
    ----------
    members : ndarray of int64
        The classes with an estimator, increasing.
    estimators : tuple
        The fitted estimators of these classes.
    amplification : float
        c, at least 1.
    """

    members: Ints
    estimators: tuple[Any, ...]
    amplification: float
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "learner"

    def evaluate(self, proba: Floats) -> Float64s:
        """The estimators' values, amplified and clipped."""
        out = np.zeros(proba.shape)
        for j, estimator in zip(self.members, self.estimators, strict=True):
            out[:, j] = self.amplification * signed_values(estimator, proba)
        return np.clip(out, -1.0, 1.0, out=out)

    def describe(self) -> str:
        """The estimator, and the classes it looks at."""
        if not self.estimators:
            return "no class"
        names = [self.name(int(j)) for j in self.members[:4]]
        more = f" and {self.members.size - 4} more" if self.members.size > 4 else ""
        return f"{type(self.estimators[0]).__name__} on {', '.join(names)}{more}"

    def state(self) -> State:
        """Refuse: estimators could only be saved as a pickle."""
        raise TypeError(
            "A witness of fitted estimators cannot be saved: polycal never writes pickles. Keep the estimators in "
            "your own way, or look for a witness with KernelAuditor."
        )

    @classmethod
    def from_state(
        cls,
        state: State,  # noqa: ARG003
        n_classes: int,  # noqa: ARG003
        class_names: tuple[str, ...] | None,  # noqa: ARG003
    ) -> "LearnerWitness":
        """Refuse, as `state` does."""
        raise TypeError("A witness of fitted estimators cannot be loaded, because it cannot be saved.")


def signed_values(estimator: Any, proba: Floats) -> Float64s:
    """A fitted estimator's values in [-1, 1]: 2 P(+1) - 1 for a classifier of -1 and +1, else its predictions."""
    if hasattr(estimator, "predict_proba"):
        positive = estimator.predict_proba(proba)[:, list(estimator.classes_).index(1)]
        values = 2.0 * np.asarray(positive, dtype=np.float64) - 1.0
    else:
        values = np.asarray(estimator.predict(proba), dtype=np.float64).ravel()
    return np.clip(values, -1.0, 1.0)
