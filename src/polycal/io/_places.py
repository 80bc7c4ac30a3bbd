"""Where files are: a path on this machine or a URL; and what folders and patterns stand for."""

import os
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from glob import glob
from glob import has_magic as has_local_magic
from os import PathLike, fspath
from pathlib import Path

from polycal import _typing
from polycal.io._remote import RemoteFile, is_hidden, is_url, storages_of
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
    """The files that paths, URLs, folders and patterns stand for; of folders, those with one of the suffixes.

    A file that is there under several names is found once, under the first.
    """
    given = [path] if isinstance(path, str | PathLike) else list(path)
    return _distinct([found for one in given for found in _find(place_of(one), suffixes)])


def _distinct(places: Sequence[Place]) -> tuple[Place, ...]:
    """Each file once: the second copy of a row could judge what the first was searched for."""
    storages = storages_of(place for place in places if isinstance(place, RemoteFile))

    def identity(place: Place) -> Hashable:
        if isinstance(place, Path):
            return place.resolve()
        # Asking connects to the storage.
        local = place.local
        if local is not None:
            return local.resolve()
        files, path = storages[place.url]
        return files, place.path or path

    first: dict[Hashable, Place] = {}
    for place in places:
        first.setdefault(identity(place), place)
    return tuple(first.values())


def _find(place: Place, suffixes: Sequence[str]) -> Sequence[Place]:
    if is_pattern(place):
        found = _matches(place)
        problem = f"{place}: no file has such a name"
    elif place.is_dir():
        found = [file for file in _inside(place) if _is_meant(file, suffixes)]
        problem = f"{place}: the folder has no file of predictions ({', '.join(suffixes)})"
    else:
        check_place(place)
        return [place]
    if not found:
        raise FileNotFoundError(problem)
    for file in found:
        local = _local(file)
        if local is not None:
            # What cannot be read must not go unnoticed: a link that leads nowhere, or a pipe.
            check_file(local)
    return found


def _local(place: Place) -> Path | None:
    """The path of a place on this machine, which may have been given as a URL."""
    return place if isinstance(place, Path) else place.local


def _matches(place: Place) -> Sequence[Place]:
    if isinstance(place, RemoteFile):
        return place.matches()
    names = glob(str(place), recursive=True)  # noqa: PTH207 - the pattern may begin anywhere
    return sorted(Path(name) for name in names if not Path(name).is_dir())


def _inside(place: Place) -> Sequence[Place]:
    """All files of a folder, at any depth."""
    if isinstance(place, Path):
        return sorted(_walked(place))
    if place.local is None:
        return place.inside()
    return [replace(place, path=file.as_posix()) for file in sorted(_walked(place.local))]


def _walked(folder: Path) -> Iterator[Path]:
    """The files below a folder, but for those in hidden folders and behind links to folders."""

    def refuse(error: OSError) -> None:
        raise type(error)(f"{error.filename}: the folder cannot be read ({error.strerror})") from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (Path(place, name) for name in names)


def _is_meant(file: Place, suffixes: Sequence[str]) -> bool:
    """Whether a file in a folder is meant: hidden files and those beside an array are not."""
    beside = file.name.endswith((".labels.npy", ".weight.npy"))
    return file.suffix.lower() in suffixes and not beside and not is_hidden(file.name)
