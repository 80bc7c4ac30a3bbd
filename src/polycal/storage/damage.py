"""How a bad file is reported: which file, what is wrong with it, and what to do."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEFAULT_MAX_BYTES = 16 << 30


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
        raise MemoryError(f"{what}: {str(error) or 'there is not memory enough'}") from error


@contextmanager
def readable(kind: str) -> Iterator[None]:
    """Report any failure of a decoder as a damaged file: on damaged bytes decoders raise anything at all."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"there is not memory enough, or the sizes in the file are corrupt ({error})"
        ) from error
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
