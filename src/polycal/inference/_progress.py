"""A progress bar for people: on stderr, and only where somebody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
