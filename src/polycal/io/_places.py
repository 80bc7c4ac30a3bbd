"""Where files are: a path on this machine or a URL; and what folders and patterns stand for."""

import re
from collections.abc import Sequence
from glob import glob
from glob import has_magic as has_local_magic
from os import PathLike, fspath
from pathlib import Path

from polycal import _typing
from polycal.io._remote import RemoteFile, is_url
from polycal.storage.damage import check_file

Place = Path | RemoteFile

# What is left of a URL that was made a path.
_SPOILT_URL = re.compile(r"(?:[A-Za-z0-9]+::)*([A-Za-z][A-Za-z0-9+.-]+:)/[^/]")


def place_of(path: _typing.Path | RemoteFile) -> Place:
    """A path, or the file behind a URL."""
    if isinstance(path, RemoteFile):
        return path
    text = fspath(path)
    if is_url(text):
        return RemoteFile(text)
    spoilt = _SPOILT_URL.match(text) if isinstance(path, PathLike) else None
    if spoilt and not Path(text).exists():
        # The rest may hold a password.
        raise ValueError(f"{spoilt[1]}/...: give a URL as text; a path leaves one of its slashes out")
    return Path(text)


def local_path(path: _typing.Path, argument: str) -> Path:
    """A path on this machine, where no URL will do."""
    place = place_of(path)
    if isinstance(place, Path):
        return place
    raise ValueError(f"{argument}={str(place)!r} must be a file on this machine, not a URL.")


def is_pattern(place: Place) -> bool:
    """Tell whether a place stands for files of similar names. A file may be called like a pattern."""
    magic = place.has_magic if isinstance(place, RemoteFile) else has_local_magic(str(place))
    return magic and not place.exists()


def check_place(place: Place) -> None:
    """See that there is such a file."""
    if isinstance(place, Path):
        check_file(place)
    elif place.is_dir():
        raise IsADirectoryError(f"{place} is a folder; give the name of a file in it")
    else:
        place.size()


def find_files(path: _typing.Path | Sequence[_typing.Path], suffixes: Sequence[str]) -> tuple[Place, ...]:
    """The files that paths, URLs, folders and patterns stand for; of folders, those with one of the suffixes."""
    given = [path] if isinstance(path, str | PathLike) else list(path)
    return tuple(found for one in given for found in _find(place_of(one), suffixes))


def _find(place: Place, suffixes: Sequence[str]) -> Sequence[Place]:
    if is_pattern(place):
        return _some(_matches(place), f"{place}: no file has such a name")
    if place.is_dir():
        found = [file for file in _inside(place) if _is_meant(file, suffixes)]
        return _some(found, f"{place}: the folder has no file of predictions ({', '.join(suffixes)})")
    check_place(place)
    return [place]


def _matches(place: Place) -> Sequence[Place]:
    if isinstance(place, RemoteFile):
        return place.matches()
    names = glob(str(place), recursive=True)  # noqa: PTH207 - the pattern may begin anywhere
    return sorted(Path(name) for name in names if Path(name).is_file())


def _inside(place: Place) -> Sequence[Place]:
    if isinstance(place, RemoteFile):
        return place.inside()
    return sorted(file for file in place.rglob("*") if file.is_file())


def _is_meant(file: Place, suffixes: Sequence[str]) -> bool:
    """Whether a file in a folder is meant: hidden files and those beside an array are not."""
    beside = file.name.endswith((".labels.npy", ".weight.npy"))
    hidden = file.name.startswith((".", "_"))
    return file.suffix.lower() in suffixes and not beside and not hidden


def _some(found: Sequence[Place], message: str) -> Sequence[Place]:
    if not found:
        raise FileNotFoundError(message)
    return found
