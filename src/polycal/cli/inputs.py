"""Files that the subcommands read: predictions, also from standard input, and models."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polycal as pc
from polycal.cli.output import tell_roles
from polycal.io.layout import Layout
from polycal.io.paths import file_path
from polycal.io.predictions import read_with_roles
from polycal.storage.atomic import temporary_folder

STDIN = "-"
# The first bytes of each format; anything else is read as CSV.
_STARTS = {
    b"PK\x03\x04": ".npz",
    b"\x93NUMPY": ".npy",
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x1f\x8b": ".csv.gz",
}


@contextmanager
def readable_file(path: str, layout: Layout) -> Iterator[str]:
    """The file itself, or its URL; for ``-``, what comes on standard input, as a temporary file of the right suffix."""
    if path != STDIN:
        yield path
        return
    # It is None where it was closed before the start.
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError(
            "nothing is piped to standard input; give a file, or pipe one: polycal audit - < preds.npz"
        )
    start = sys.stdin.buffer.read(8)
    found = next((suffix for mark, suffix in _STARTS.items() if start.startswith(mark)), ".csv")
    suffix = layout.format or found
    with temporary_folder() as folder:
        copy = folder / f"stdin{suffix}"
        with copy.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield str(copy)


@contextmanager
def readable_files(files: list[str], layout: Layout) -> Iterator[list[str]]:
    """As `readable_file`, for several; what comes on standard input is not held in memory."""
    with ExitStack() as stack:
        yield [stack.enter_context(readable_file(file, layout)) for file in files]


def usable_memory() -> int:
    """Bytes that a command may use unless told otherwise: half of the machine's memory, at least 1 GiB."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        machine = 0
    return max(1 << 30, machine // 2)


def shown(files: list[str]) -> str:
    """What to call the input."""
    name = "standard input" if files[0] == STDIN else _name_of(files[0])
    return name if len(files) == 1 else f"{name} and {len(files) - 1} more"


def _name_of(file: str) -> str:
    path = file_path(file)
    return path.name or str(path)


def read_sample(path: str, part: str, layout: Layout, *, quiet: bool) -> "pc.Sample":
    """Predictions with labels; what was made of the columns is told, where the file leaves that open."""
    with readable_file(path, layout) as file:
        sample, roles = read_with_roles(file, part, layout)  # type: ignore[arg-type]  # checked by the reader
    if not quiet:
        tell_roles(roles, layout)
    return sample


def read_calibrator(path: Path) -> "pc.Calibrator":
    """A calibrator that ``polycal recalibrate`` wrote."""
    model = pc.load(path)
    if not isinstance(model, pc.Calibrator):
        raise TypeError(f"{path} holds a {type(model).__name__}, not a calibrator")
    return model
