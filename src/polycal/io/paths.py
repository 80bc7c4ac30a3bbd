"""Paths of files, on this machine or behind a URL; and the files that folders and patterns stand for."""

import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from glob import glob
from glob import has_magic as has_local_magic
from os import PathLike, fspath
from pathlib import Path

from polycal import _typing
from polycal.io.remote import RemoteFile, is_hidden, is_url, storages_of
from polycal.storage.damage import check_file

FilePath = Path | RemoteFile

# What is left of a URL that was made a path.
_SPOILT_URL = re.compile(r"(?:[A-Za-z0-9]+::)*([A-Za-z][A-Za-z0-9+.-]+:)/[^/]")


def file_path(path: _typing.Path | RemoteFile) -> FilePath:
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
    local = file_path(path)
    if isinstance(local, Path):
        return local
    raise ValueError(f"{argument}={str(local)!r} must be a file on this machine, not a URL.")


def is_pattern(path: FilePath) -> bool:
    """Tell whether a path stands for files of similar names. A file may be called like a pattern."""
    magic = path.has_magic if isinstance(path, RemoteFile) else has_local_magic(str(path))
    return magic and not path.exists()


def suffix_of(name: str, suffixes: Iterable[str]) -> str | None:
    """The longest of some suffixes that a file's name has; a suffix may have two parts, as ``.csv.gz`` has."""
    return max((end for end in suffixes if name.lower().endswith(end)), key=len, default=None)


def check_path(path: FilePath) -> None:
    """See that there is such a file."""
    if isinstance(path, Path):
        check_file(path)
    elif path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    else:
        path.size()


def find_files(path: _typing.Path | Sequence[_typing.Path], suffixes: Sequence[str]) -> tuple[FilePath, ...]:
    """The files that paths, URLs, folders and patterns stand for; of folders, those with one of the suffixes.

    A file that is there under several names is found once, under the first.
    """
    given = [path] if isinstance(path, str | PathLike) else list(path)
    return _distinct([found for one in given for found in _find(file_path(one), suffixes)])


def _distinct(paths: Sequence[FilePath]) -> tuple[FilePath, ...]:
    """Each file once: the second copy of a row could judge what the first was searched for."""
    storages = storages_of(path for path in paths if isinstance(path, RemoteFile))

    def identity(path: FilePath) -> Hashable:
        if isinstance(path, Path):
            return path.resolve()
        # Asking connects to the storage.
        local = path.local
        if local is not None:
            return local.resolve()
        files, named_by_url = storages[path.url]
        return files, path.path or named_by_url

    first: dict[Hashable, FilePath] = {}
    for path in paths:
        first.setdefault(identity(path), path)
    return tuple(first.values())


def _find(path: FilePath, suffixes: Sequence[str]) -> Sequence[FilePath]:
    if is_pattern(path):
        found = _matches(path)
        problem = f"{path}: no file has such a name"
    elif path.is_dir():
        found = [file for file in _inside(path) if _is_meant(file, suffixes)]
        problem = f"{path}: the folder has no file of predictions ({', '.join(suffixes)})"
    else:
        check_path(path)
        return [path]
    if not found:
        raise FileNotFoundError(problem)
    for file in found:
        local = _local(file)
        if local is not None:
            # What cannot be read must not go unnoticed: a link that leads nowhere, or a pipe.
            check_file(local)
    return found


def _local(path: FilePath) -> Path | None:
    """The path on this machine, which may have been given as a URL."""
    return path if isinstance(path, Path) else path.local


def _matches(path: FilePath) -> Sequence[FilePath]:
    if isinstance(path, RemoteFile):
        return path.matches()
    names = glob(str(path), recursive=True)  # noqa: PTH207 - the pattern may begin anywhere
    return sorted(Path(name) for name in names if not Path(name).is_dir())


def _inside(path: FilePath) -> Sequence[FilePath]:
    """All files of a folder, at any depth."""
    if isinstance(path, Path):
        return sorted(_walked(path))
    if path.local is None:
        return path.inside()
    return [replace(path, path=file.as_posix()) for file in sorted(_walked(path.local))]


def _walked(folder: Path) -> Iterator[Path]:
    """The files below a folder, but for those in hidden folders and behind links to folders."""

    def refuse(error: OSError) -> None:
        raise type(error)(f"{error.filename}: the folder cannot be read ({error.strerror})") from error

    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (Path(inside, name) for name in names)


def _is_meant(file: FilePath, suffixes: Sequence[str]) -> bool:
    """Whether a file in a folder is meant: hidden files and those beside an array are not."""
    beside = file.name.endswith((".labels.npy", ".weight.npy"))
    return suffix_of(file.name, suffixes) is not None and not beside and not is_hidden(file.name)
