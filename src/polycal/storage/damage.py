"""How a bad file is reported: which file, what is wrong with it, and what to do."""

import difflib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

# Where Linux tells what a container may use: with control groups of the second and of the first version.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def default_max_bytes() -> int:
    """What a file may unpack to: 16 GiB, or three quarters of the memory where that is less."""
    sizes = [16 << 30]
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4)
    for limit in map(Path, _CONTAINER_LIMITS):
        # Without a limit there is no file, or a word in it.
        with suppress(ValueError, OSError):
            sizes.append(int(limit.read_text()) * 3 // 4)
    return max(1 << 20, min(sizes))


DEFAULT_MAX_BYTES = default_max_bytes()


class UnreachableError(OSError):
    """A file that may be sound, but whose storage did not answer."""


def check_file(path: Path) -> None:
    """See that there is such a file, and if not, look for one with a similar name."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    if path.is_file():
        return
    if path.exists():
        # Opening a pipe by its name would wait for a writer, for ever if there is none.
        raise ValueError(f"{path}: is a pipe or a device, not a regular file; copy what comes from it to one")
    if path.is_symlink():
        raise FileNotFoundError(f"{path}: is a link to {path.readlink()}, which is not there")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    similar = difflib.get_close_matches(path.name, (p.name for p in path.parent.iterdir()), n=1)
    hint = f"; did you mean {similar[0]}?" if similar else ""
    raise FileNotFoundError(f"{path}: there is no such file{hint}")


@contextmanager
def named(what: object) -> Iterator[None]:
    """Prefix what goes wrong inside with the file's name, or with whatever else it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from error
    except MemoryError as error:
        raise MemoryError(f"{what}: {str(error) or 'not enough memory'}") from error


def rows_from(start: int) -> AbstractContextManager[None]:
    """Errors inside count the rows of a chunk: they name the first of them, unless that is the file's first."""
    return named(f"rows from {start}") if start else nullcontext()


@contextmanager
def readable(kind: str) -> Iterator[None]:
    """Report any failure of a decoder as a damaged file: on damaged bytes decoders raise anything at all."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"not enough memory, or the sizes in the file are corrupt ({error})") from error
    except UnreachableError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(f"cannot be read as {kind}: the file is truncated or corrupt ({detail})") from error


def check_claim(claim: int, max_bytes: int) -> None:
    """Refuse a file that says it unpacks to more than the limit, before unpacking any of it."""
    if claim > max_bytes:
        raise ValueError(
            f"the file claims to unpack to {_gib(claim)}, more than the limit of {_gib(max_bytes)}. "
            f"If you trust it, pass max_bytes={claim}."
        )


def _gib(n_bytes: int) -> str:
    """Write a number of bytes for people."""
    return f"{n_bytes / 2**30:,.3g} GiB ({n_bytes:,} bytes)"
