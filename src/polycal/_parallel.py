"""Threads over independent pieces of work: kernels and NumPy's sorts release the interpreter lock."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = -1
) -> list[Result]:
    """Apply ``function`` to each item, in order, on ``n_jobs`` threads (-1: one per core)."""
    from joblib import Parallel, delayed  # noqa: PLC0415 - not at `import polycal`

    results: list[Result] = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(function)(item) for item in items
    )
    return results
