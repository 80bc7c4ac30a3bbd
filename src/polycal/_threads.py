"""Threads over independent pieces of work, the linear algebra's own threads, and the progress of long work."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition
from typing import Generic, TypeVar

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


def deal(items: Iterable[Item], workers: Sequence[Callable[[Item], object]]) -> None:
    """Give items to workers in turn, each of which works on a thread of its own.

    Every item is made by the thread that is to use it, one at a time: what is costly about items had better be left
    to the workers. Item i goes to worker ``i % len(workers)``, so that a worker gets the same items in every run.
    After an error no more are given out, and of several errors that of the first item is raised.
    """
    game = _Deal(iter(items), len(workers))
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            list(pool.map(game.serve, workers, range(len(workers))))
        finally:
            # Waiting may be interrupted by the user.
            game.end()
    if game.errors:
        raise game.errors[min(game.errors)]


class _Deal(Generic[Item]):
    """Items that are being given out."""

    def __init__(self, items: Iterator[Item], n_workers: int) -> None:
        self._items, self._n_workers = items, n_workers
        self._following, self._ended = 0, False
        self._turn = Condition()
        self.errors: dict[int, BaseException] = {}

    def serve(self, worker: Callable[[Item], object], place: int) -> None:
        """Give a worker its items until there are no more."""
        number = place
        try:
            while self._serve_one(worker, number):
                number += self._n_workers
        except BaseException as error:
            self.errors[number] = error
            self.end()

    def end(self) -> None:
        """Give out no more."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()

    def _serve_one(self, worker: Callable[[Item], object], number: int) -> bool:
        """Give a worker the item of this number; False if there is none."""
        with self._turn:
            self._turn.wait_for(lambda: self._ended or self._following == number)
            if self._ended:
                return False
            # Unless an item comes: making it may raise.
            self._ended = True
            item = next(self._items, _END)
            self._ended = item is _END
            self._following += 1
            self._turn.notify_all()
        if item is not _END:
            worker(item)  # type: ignore[arg-type]  # not the mark
        return item is not _END


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use one thread each while this lasts. Also a decorator."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - not at import

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@contextmanager
def progress_bar(text: str, total: int, progress: bool | None = None) -> Iterator[Callable[[], None]]:
    """A function to call after each of ``total`` steps. By default draws only when stderr is a terminal."""
    is_terminal = sys.stderr.isatty()
    if progress is False or (progress is None and not is_terminal):
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn
    from rich.progress import Progress  # noqa: PLC0415

    # In a file a bar cannot be wiped away: only its last state is written.
    with Progress(console=Console(stderr=True), transient=is_terminal) as bar:
        task = bar.add_task(text, total=total)
        yield lambda: bar.advance(task)
