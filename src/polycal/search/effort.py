"""How hard a search looks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Random starts, starts followed to the end, and steps taken by each.

    Attributes
    ----------
    n_random, n_finalists, n_steps : int
    """

    n_random: int
    n_finalists: int
    n_steps: int

    @classmethod
    def for_classes(cls, n_classes: int) -> "Effort":
        """Less for each coordinate where there are many."""
        if n_classes <= 20:
            return cls(n_random=6, n_finalists=4, n_steps=30)
        return cls(n_random=2, n_finalists=2, n_steps=20) if n_classes <= 200 else cls(0, 1, 10)
