"""Files behind a URL, by fsspec, which is imported when first needed: opened at any byte, or copied.

A URL may hold a password or a signature; what is shown of it does not.
"""

import importlib
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from polycal.storage.atomic import temporary_folder
from polycal.storage.damage import UnreachableError, check_claim

_DENIED, _MISSING = (401, 403), 404
_LOCAL = ("file", "local")
# Of a URL, or of the archive behind it: what depends on the folder where a process runs.
_RELATIVE = re.compile(r"(^|::)(file|local)://(?![/~])(.+?)(?=::|$)")
# Two letters at least: one is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z0-9]+::)*[A-Za-z][A-Za-z0-9+.-]+://")
# Before an at sign stands who asks, and a password; in the addresses of Azure, the container.
_USER = re.compile(r"(?<!abfs://)(?<!abfss://)(?<=://)[^/]+@")
# What follows the question mark is a signature or a key, where it is not part of a pattern.
_QUERY = re.compile(r"(https?://[^?]*)\?.*", flags=re.IGNORECASE | re.DOTALL)
# In what is said by errors, also of addresses without their host.
_SAID_QUERY = re.compile(r"\?\S*=\S*")
# They show the paths of what stands behind them.
_CACHES = ("simplecache", "filecache", "blockcache", "cached")
_WEB = ("http", "https")
# Their paths are whole without a host.
_HOSTLESS = ("file", "local", "memory")


@dataclass(frozen=True, repr=False)
class RemoteFile:
    """What is behind a URL: a file, a folder or a pattern. It shows itself without credentials.

    What was found in a folder has the folder's URL, and its own path in that filesystem: each driver has its own way to
    make a path of a URL, and none has a way back. Both are text, and can be sent to workers, which connect themselves.

    Attributes
    ----------
    url : str
        The URL as it was given.
    path : str, optional
        The path in its filesystem, if it is not the one that the URL names.
    """

    url: str
    path: str | None = None

    def __str__(self) -> str:
        return hide_secrets(self._own_url)

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    @property
    def name(self) -> str:
        """The last part of the path; nothing where there is only a host."""
        return PurePosixPath(self._bare).name

    @property
    def suffix(self) -> str:
        """The end of the name, with its dot."""
        return PurePosixPath(self._bare).suffix

    @property
    def has_magic(self) -> bool:
        """Whether this is a pattern."""
        return any(mark in take_apart(self.url).asked for mark in "*[?")

    @property
    def local(self) -> Path | None:
        """The path, if it is one on this machine."""
        parts = take_apart(self.url)
        if parts.scheme not in _LOCAL or parts.caches or parts.behind:
            return None
        with self._connected() as (_, path):
            return Path(path)

    def absolute(self) -> "RemoteFile":
        """The same in any working folder, for other processes."""
        url = _RELATIVE.sub(lambda m: f"{m[1]}{m[2]}://{Path(m[3]).absolute().as_posix()}", self.url)
        return replace(self, url=url)

    def is_dir(self) -> bool:
        """Whether this is a folder."""
        if self._is_web and self.suffix and not self._bare.endswith("/"):
            # Asked for a list of links, a web server would send the whole file.
            return False
        with self._connected() as (files, path):
            return bool(files.isdir(path))

    def exists(self) -> bool:
        """Whether there is a file or a folder of this name."""
        with self._connected() as (files, path):
            return bool(files.exists(path))

    def size(self) -> int:
        """Bytes of the file."""
        with self._connected() as (files, path):
            about = files.info(path)
        if about["type"] == "other":
            raise ValueError(f"{self}: is a pipe or a device, not a regular file")
        if about["size"] is None:
            raise UnreachableError(
                f"{self}: its server does not tell its size, so that it cannot be read in parts"
            )
        return int(about["size"])

    def inside(self) -> list["RemoteFile"]:
        """All files of the folder, at any depth, but for those in hidden folders."""
        with self._connected() as (files, path):
            found = files.find(path, detail=True)
            seen = {name: found[name] for name in found if not _is_in_hidden(name, path)}
            return self._found(files, seen)

    def matches(self) -> list["RemoteFile"]:
        """The files that the pattern stands for."""
        with self._connected() as (files, path):
            return self._found(files, files.glob(path, detail=True))

    def open(self) -> "io.RawIOBase":
        """The file, opened for reading. Every read is a request of its own: nothing is read ahead or kept."""
        with self._connected() as (files, path):
            return _OpenRemote(self, files, files.open(path, "rb", cache_type="none"))

    @contextmanager
    def copied(self, max_bytes: int) -> Iterator[Path]:
        """A temporary copy on this machine's disk."""
        check_claim(self.size(), max_bytes)
        with temporary_folder() as folder:
            copy = folder / f"copy{self.suffix}"
            with self._connected() as (files, path):
                files.get_file(path, str(copy))
            yield copy

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Report what storage says, by the URL without its credentials, which what is raised there may hold."""
        try:
            yield
        except ImportError as error:
            # The words of fsspec name the package that knows this kind of storage.
            raise ImportError(
                f"{self}: needs a package that is not installed. {hide_said_secrets(str(error))}"
            ) from None
        except Exception as error:
            raise self._told(error) from None

    @property
    def _own_url(self) -> str:
        return self.url if self.path is None else url_of(self.path, self.url)

    @property
    def _bare(self) -> str:
        """The path, without host and query."""
        own = self.url if self.path is None else self.path
        return take_apart(own).path if is_url(own) else own

    @property
    def _is_web(self) -> bool:
        return take_apart(self.url).is_web

    @contextmanager
    def _connected(self) -> Iterator[tuple[Any, str]]:
        """The filesystem, and the path in it."""
        core = _fsspec("core")
        with self.reaching():
            files, path = core.url_to_fs(self.url)
            yield files, path if self.path is None else self.path

    def _told(self, error: Exception) -> OSError:
        """An error of storage as one of ours."""
        # On the web, whatever goes wrong is first called a missing file.
        cause = error.__cause__ if self._is_web and isinstance(error, FileNotFoundError) else None
        error = cause if isinstance(cause, Exception) else error
        status = getattr(error, "status", None)
        if isinstance(error, PermissionError) or status in _DENIED:
            return PermissionError(
                f"{self}: may not be read; give this process, and every worker, the credentials of its storage"
            )
        if isinstance(error, FileNotFoundError) or status == _MISSING:
            return FileNotFoundError(f"{self}: there is no such file or folder")
        return UnreachableError(f"{self}: cannot be reached ({self._words(error)})")

    def _words(self, error: Exception) -> str:
        """What an error says; only its kind where it might say what must not be printed."""
        kind = type(error).__name__
        said = str(error).splitlines()
        is_open = all(text == hide_secrets(text) for text in (self.url, self._own_url))
        return f"{kind}: {hide_said_secrets(said[0])}" if said and is_open else kind

    def _found(self, files: Any, found: dict[str, dict[str, Any]]) -> list["RemoteFile"]:
        """The files among what a driver lists."""
        return [RemoteFile(self.url, name) for name in sorted(found) if _is_file(files, name, found[name])]


class _OpenRemote(io.RawIOBase):
    """An open file whose failures name its URL."""

    def __init__(self, file: RemoteFile, files: Any, stream: Any) -> None:
        super().__init__()
        # An archive closes its files when its filesystem is gone.
        self._file, self._files, self._stream = file, files, stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._reaching():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def read(self, size: int = -1, /) -> bytes:
        # Not by way of readinto, which would hold it twice.
        with self._reaching():
            return bytes(self._stream.read(size))

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Of one kind, whatever goes wrong: it was there when it was opened, and decoders must not call it damaged."""
        try:
            with self._file.reaching():
                yield
        except (FileNotFoundError, PermissionError) as error:
            raise UnreachableError(str(error)) from None

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def is_hidden(name: str) -> bool:
    """Whether a file or folder has the name of one that is not meant to be read, such as ``_temporary``."""
    return name.startswith((".", "_"))


def storages_of(files: Iterable[RemoteFile]) -> dict[str, tuple[Any, str]]:
    """By URL, the filesystem, which can be compared to others, and the path in it."""
    storages = {}
    for url in {file.url for file in files}:
        with RemoteFile(url)._connected() as storage:
            storages[url] = storage
    return storages


def _is_in_hidden(name: str, folder: str) -> bool:
    """Whether a file is in a hidden folder below the given one, whose own name does not matter."""
    below = name.strip("/").removeprefix(folder.strip("/"))
    return any(map(is_hidden, PurePosixPath(below).parts[:-1]))


def _is_file(files: Any, name: str, listed: dict[str, Any]) -> bool:
    if listed["type"] in ("file", "directory"):
        return bool(listed["type"] == "file")
    # A link: only where it leads tells what it is. Opening one that leads nowhere will say so.
    return not files.isdir(name)


def _fsspec(module: str) -> Any:
    try:
        return importlib.import_module(f"fsspec.{module}")
    except ImportError as error:
        raise ImportError(
            "URLs need fsspec, which is not installed: pip install 'polycal[remote]'"
        ) from error


def is_url(path: str) -> bool:
    """Tell whether a text is a URL, such as ``s3://bucket/file``, and not a path."""
    return _SCHEME.match(path) is not None


def hide_secrets(text: str) -> str:
    """A text with its URLs without user names, passwords and signatures."""
    return _QUERY.sub(r"\1?***", _USER.sub("***@", text))


def hide_said_secrets(text: str) -> str:
    """What an error says, without what it may tell of requests that were signed or sent elsewhere."""
    return hide_secrets(_SAID_QUERY.sub("?***", text))


@dataclass(frozen=True)
class UrlParts:
    """A chain of URLs, such as ``simplecache::zip://a.csv::https://host/x.zip``, around the one that names a file.

    Here the four are ``simplecache::``, ``zip``, ``a.csv`` and ``::https://host/x.zip``.
    """

    caches: str
    scheme: str
    inner: str
    behind: str

    @property
    def is_web(self) -> bool:
        """Whether the file has an address of the web."""
        return self.scheme.lower() in _WEB

    @property
    def host(self) -> str:
        """What stands before the first slash: a host, or else a bucket or the first folder."""
        return self.inner.partition("/")[0]

    @property
    def path(self) -> str:
        """The path, without user, host and query."""
        if self.is_web or "@" in self.host:
            return self.asked.partition("/")[2]
        return self.asked

    @property
    def asked(self) -> str:
        """The path with its host, without a query. Only on the web a question mark begins one."""
        return self.inner.partition("?")[0] if self.is_web else self.inner


def take_apart(url: str) -> UrlParts:
    """The parts of a URL."""
    links = url.split("::")
    n_caches = sum(1 for _ in takewhile(lambda link: link.removesuffix("://") in _CACHES, links[:-1]))
    scheme, _, inner = links[n_caches].partition("://")
    before, behind = links[:n_caches], links[n_caches + 1 :]
    return UrlParts("".join(f"{link}::" for link in before), scheme, inner, "".join(f"::{x}" for x in behind))


def url_of(path: str, url: str) -> str:
    """The URL of a path in the filesystem of another URL, to be shown: drivers differ in what they call a path."""
    parts = take_apart(url)
    if is_url(path):
        return f"{parts.caches}{path}{parts.behind}"
    if path.lstrip("/").partition("/")[0] == parts.host:
        own = path.lstrip("/")
    elif path.startswith("/") and parts.scheme not in _HOSTLESS:
        own = f"{parts.host}{path}"
    elif "@" in parts.host and parts.scheme not in _HOSTLESS:
        return f"{url} ({path})"
    else:
        own = path
    return f"{parts.caches}{parts.scheme}://{own}{parts.behind}"
