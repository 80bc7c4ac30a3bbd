"""Writing a file in one piece: a reader sees the old file or the new one, never a part."""

import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

# These end a process at once, unless it asks for them; on Windows there is no hang-up.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def check_writable(path: Path) -> None:
    """See that a file can be written here: its folder is there, and what it would replace is a regular file.

    For the start of long work, whose result would be lost otherwise.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file to write")
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: is a pipe or a device, which would be replaced; give the name of a file")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the same folder; it replaces ``path`` on success and is removed on failure."""
    check_writable(path)
    # Through a link, not over it.
    target = path.resolve()
    # Not tempfile: its files are private to the user, and the new file should get the usual permissions.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    with _signals_unwind():
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, also when a signal ends the process."""
    with _signals_unwind(), tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


class _SignalledError(BaseException):
    """A signal that ends the process, on its way up the stack."""


def _unwind(number: int, _frame: Any) -> None:
    raise _SignalledError(number)


@contextmanager
def _signals_unwind() -> Iterator[None]:
    """Let signals that would end the process at once go up the stack first, so that temporary files are removed.

    Afterwards the signal ends the process as it would have done. Handlers of the user's own stay; and as only the main
    thread can have handlers, work on other threads is not covered.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _unwind)
    ended = None
    try:
        yield
    except _SignalledError as error:
        if not taken:
            raise
        ended = error.args[0]
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
    if ended is not None:
        signal.raise_signal(ended)
