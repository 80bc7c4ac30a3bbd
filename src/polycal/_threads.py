"""A budget of threads, for pools and for linear algebra together, and the progress of long work.

The number of threads is passed down, never guessed: a public function with an ``n_jobs`` opens a `thread_budget`, and
all that runs inside stays within it. A pool spends the whole budget, so that pools do not nest.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, lru_cache
from itertools import count
from threading import Event, Lock, Semaphore, Timer
from typing import Any, TypeVar

from polycal._validation import check_jobs

Item = TypeVar("Item")
Result = TypeVar("Result")
# Applies a function to each item, in order.
Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

# Threads allowed here; None outside of any budget, where there is one for each core.
_budget: ContextVar[int | None] = ContextVar("thread_budget", default=None)
# Multiplications in a matrix product, about 100 ms of work. The threads of smaller ones wait for one another longer
# than they work where the cores have other work too: fits of 1,000,000 probabilities took four times as long.
_LARGE_PRODUCT = 1 << 32
_END: Any = object()
# What tells the bar of long work what is going on; None where there is no bar, and none is forbidden.
_late: ContextVar[Callable[[str, float], None] | None] = ContextVar("late_bar", default=None)


@contextmanager
def thread_budget(n_jobs: int | None = -1) -> Iterator[None]:
    """Let all that runs inside use at most ``n_jobs`` threads, in linear algebra as well.

    As in scikit-learn -1 is one for each core, -2 all but one, None is 1. A budget within another cannot exceed it.
    """
    n_threads = thread_count(n_jobs)
    if n_jobs == -1 or n_threads == _budget.get():
        yield
        return
    token = _budget.set(n_threads)
    try:
        with _blas_limits.at_most(n_threads):
            yield
    finally:
        _budget.reset(token)


def thread_count(n_jobs: int | None = -1) -> int:
    """The number of threads that ``n_jobs`` stands for, within the budget."""
    wanted, allowed = check_jobs(n_jobs), _budget.get()
    if wanted == 1 or allowed == 1:
        return 1
    if wanted == -1 and allowed is not None:
        return allowed
    if wanted < 0:
        wanted = max(1, cpu_count() + 1 + wanted)
    return wanted if allowed is None else min(wanted, allowed)


@cache
def cpu_count() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    from joblib import cpu_count as usable_cores  # noqa: PLC0415 - slow to import

    return int(usable_cores())


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = -1
) -> list[Result]:
    """Apply ``function`` to each item, in order, on the threads of the budget, at most ``n_jobs`` of them."""
    work = list(items)
    with thread_pool(min(len(work), thread_count(n_jobs)) if len(work) > 1 else 1) as run:
        return run(function, work)


def map_here(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to each item on the caller's own thread."""
    return [function(item) for item in items]


def deal(items: Iterable[Item], workers: Sequence[Callable[[Item], object]]) -> None:
    """Give items to workers in turn, each of which works on a thread of its own.

    Every item is made by the thread that is to use it, one at a time: what is costly about items had better be left
    to the workers. Item i goes to worker ``i % len(workers)``, so that a worker gets the same items in every run.
    After an error no more are given out, and of several errors that of the first item is raised.
    """
    # A generator ends when making an item fails.
    source = (item for item in items)
    turns = [Semaphore(int(place == 0)) for place in range(len(workers))]
    ended, errors = Event(), dict[int, BaseException]()

    def take(place: int) -> Item:
        """The next item, made while it is this worker's turn."""
        turns[place].acquire()
        try:
            return _END if ended.is_set() else next(source, _END)
        finally:
            turns[(place + 1) % len(workers)].release()

    def serve(place: int) -> None:
        """Give a worker its items; after an error only its turns are passed on."""
        for number in count(place, len(workers)):
            try:
                if (item := take(place)) is _END:
                    return
                workers[place](item)
            except BaseException as error:
                errors[number] = error
                ended.set()

    with thread_pool(len(workers)) as run:
        try:
            run(serve, range(len(workers)))
        finally:
            # Waiting may be interrupted by the user.
            ended.set()
    if errors:
        raise errors[min(errors)]


@contextmanager
def thread_pool(n_threads: int) -> Iterator[Run]:
    """A function like `map` that works on so many threads, none of which may start others.

    For many short calls: `map_threads` starts its threads anew each time.
    """
    if n_threads == 1:
        yield map_here
        return

    with thread_budget(1), ThreadPoolExecutor(n_threads) as pool:

        def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
            # Each item in a copy of the caller's context: its budget, and NumPy's error handling.
            contexts = [copy_context() for _ in items]
            return list(pool.map(lambda context, item: context.run(function, item), contexts, items))

        yield run


@contextmanager
def one_blas_thread(multiplications: int = 0) -> Iterator[None]:
    """Let each matrix product use one thread, unless it has so many multiplications that more are worth it.

    Pools may use several. Also a decorator.
    """
    if _budget.get() == 1 or multiplications >= _LARGE_PRODUCT:
        yield
        return
    with _blas_limits.at_most(1):
        yield


class _BlasLimits:
    """Limits on the threads of linear algebra. There is one number for the process: the smallest limit asked for holds.

    The numbers found by the first to come are restored by the last to leave, whatever the order in which they go.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limits: list[int] = []
        self._found: dict[str, tuple[Any, int]] = {}

    @contextmanager
    def at_most(self, n_threads: int) -> Iterator[None]:
        """A limit while this lasts."""
        with self._lock:
            self._find()
            self._limits.append(n_threads)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._limits.remove(n_threads)
                self._apply()

    def _find(self) -> None:
        """Note the numbers of threads before any limit, also of libraries that were loaded under one."""
        if not self._limits:
            self._found.clear()
        for library in _blas_libraries(len(sys.modules)):
            self._found.setdefault(library.filepath, (library, library.num_threads))

    def _apply(self) -> None:
        for library, number in self._found.values():
            # From version 3.8 threadpoolctl listens to one thread, so that threads do not overrule one another. Here
            # they take turns, and agree.
            listen = getattr(library, "clear_controlling_thread", lambda *, force: force)
            listen(force=True)
            library.set_num_threads(min([number, *self._limits]))
            listen(force=True)


_blas_limits = _BlasLimits()


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> list[Any]:  # noqa: ARG001 - a library comes with a module that is imported
    """The libraries of linear algebra that are loaded. Looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - not at import

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def progress_bar(text: str, total: int, progress: bool | None = None) -> Iterator[Callable[[], None]]:
    """A function to call after each of ``total`` steps. By default draws only when stderr is a terminal."""
    is_terminal = sys.stderr.isatty()
    with the_only_bar():
        if progress is False or (progress is None and not is_terminal):
            yield lambda: None
            return
        from rich.console import Console  # noqa: PLC0415 - only where something is drawn
        from rich.progress import Progress  # noqa: PLC0415

        # In a file a bar cannot be wiped away: only its last state is written.
        with Progress(console=Console(stderr=True), transient=is_terminal) as bar:
            task = bar.add_task(text, total=total)
            yield lambda: bar.advance(task)


@contextmanager
def the_only_bar() -> Iterator[None]:
    """Let no `late_bar` be drawn inside: something is shown already, or nothing is wanted."""
    token = _late.set(lambda _text, _part: None)
    try:
        yield
    finally:
        _late.reset(token)


@contextmanager
def late_bar(text: str, seconds: float = 2.0) -> Iterator[None]:
    """A bar for work that takes longer than some seconds, on stderr where that is a terminal; see `now_doing`."""
    if _late.get() is not None or not sys.stderr.isatty():
        yield
        return
    bar = _LateBar(text)
    timer, token = Timer(seconds, bar.draw), _late.set(bar.tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        _late.reset(token)
        timer.cancel()
        # It may be drawing just now.
        timer.join()
        bar.close()


def now_doing(text: str, part: float) -> None:
    """Say on the `late_bar`, if there is one, what comes next, and what part of the work is done."""
    tell = _late.get()
    if tell is not None:
        tell(text, part)


class _LateBar:
    """What is told is kept, and shown from `draw` on."""

    def __init__(self, text: str) -> None:
        self._text, self._doing, self._part = text, "", 0.0
        self._bar: Any = None

    def draw(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only where something is drawn
        from rich.progress import Progress  # noqa: PLC0415

        bar = Progress(console=Console(stderr=True), transient=True)
        bar.add_task(self._text, total=1.0)
        self._bar = bar
        self.tell(self._doing, self._part)
        bar.start()

    def tell(self, text: str, part: float) -> None:
        self._doing, self._part = text, part
        if self._bar is not None:
            shown = f"{self._text}: {text}" if text else self._text
            self._bar.update(self._bar.task_ids[0], description=shown, completed=part)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
