"""Threads over independent pieces of work: kernels and NumPy's sorts release the interpreter lock."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = -1
) -> list[Result]:
    """Apply ``function`` to each item, in order, on ``n_jobs`` threads (-1: one per core; None: one)."""
    work = list(items)
    n_threads = min(len(work), thread_count(n_jobs))
    if n_threads <= 1:
        return [function(item) for item in work]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, work))


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, each made by another thread while the one before it is used."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, iterator, _END)
        while (item := following.result()) is not _END:
            following = pool.submit(next, iterator, _END)
            yield item  # type: ignore[misc]  # not the mark


_END = object()


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's convention: -1 is all cores, -2 all but one, None is 1."""
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def cpu_count() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
