"""Files behind a URL, by fsspec, which is imported when first needed: opened for reading at any place, or copied."""

import importlib
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from polycal.storage.damage import UnreachableError, check_claim

# Two letters at least: one is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z0-9]+::)*[A-Za-z][A-Za-z0-9+.-]+://")
# Perhaps behind a cache, as in simplecache::https://host.
_WEB = re.compile(r"([a-z]+::)*https?://", flags=re.IGNORECASE)
# Before an at sign stands who asks, and a password; in the addresses of Azure, the container.
_USER = re.compile(r"(?<!abfs://)(?<!abfss://)(?<=://)[^/]+@")
# What follows the question mark is a signature or a key, where it is not part of a pattern.
_QUERY = re.compile(r"(https?://[^?]*)\?.*", flags=re.IGNORECASE | re.DOTALL)
_DENIED, _MISSING = (401, 403), 404


def is_url(path: str) -> bool:
    """Tell whether a text is a URL, such as ``s3://bucket/file``, and not a path."""
    return _SCHEME.match(path) is not None


def hide_secrets(url: str) -> str:
    """A URL without user name, password and signature; any other text as it is."""
    return _QUERY.sub(r"\1?***", _USER.sub("***@", url))


@dataclass(frozen=True, repr=False)
class RemoteFile:
    """A URL: of a file, a folder or a pattern. It shows itself without credentials.

    Only the URL is kept, so that it can be sent to workers, which connect by themselves.
    """

    url: str

    def __str__(self) -> str:
        return hide_secrets(self.url)

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self._bare).name

    @property
    def suffix(self) -> str:
        """The end of the name, with its dot."""
        return PurePosixPath(self._bare).suffix

    @property
    def has_magic(self) -> bool:
        """Whether this is a pattern. In the addresses of the web a question mark is none."""
        marks = "*[" if self._is_web else "*[?"
        return any(mark in self.url for mark in marks)

    def is_dir(self) -> bool:
        """Whether this is a folder."""
        if self._is_web and self.suffix and not self.url.endswith("/"):
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
            size = files.info(path)["size"]
        if size is None:
            raise UnreachableError(
                f"{self}: its server does not tell its size, so that it cannot be read in parts"
            )
        return int(size)

    def inside(self) -> list["RemoteFile"]:
        """All files of the folder, at any depth."""
        with self._connected() as (files, path):
            return [self._beside(files, path, found) for found in sorted(files.find(path))]

    def matches(self) -> list["RemoteFile"]:
        """The files that the pattern stands for."""
        with self._connected() as (files, path):
            found = files.glob(path, detail=True)
            names = sorted(name for name in found if found[name]["type"] == "file")
            return [self._beside(files, path, name) for name in names]

    def open(self) -> "io.RawIOBase":
        """The file, opened for reading. Every read is a request of its own: nothing is read ahead or kept."""
        with self._connected() as (files, path):
            return _OpenRemote(self, files.open(path, "rb", cache_type="none"))

    @contextmanager
    def copied(self, max_bytes: int) -> Iterator[Path]:
        """A temporary copy on this machine's disk."""
        check_claim(self.size(), max_bytes)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, f"copy{self.suffix}")
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
            raise ImportError(f"{self}: needs a package that is not installed. {error}") from None
        except Exception as error:
            raise self._told(error) from None

    @property
    def _bare(self) -> str:
        """The path; on the web without the host before it and the query behind."""
        return self.url.split("?")[0].partition("://")[2].partition("/")[2] if self._is_web else self.url

    @property
    def _is_web(self) -> bool:
        return _WEB.match(self.url) is not None

    @contextmanager
    def _connected(self) -> Iterator[tuple[Any, str]]:
        """The filesystem, and the path in it."""
        core = _fsspec("core")
        with self.reaching():
            files, path = core.url_to_fs(self.url)
            yield files, path

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
        return f"{kind}: {said[0]}" if said and str(self) == self.url else kind

    def _beside(self, files: Any, path: str, found: str) -> "RemoteFile":
        """The URL of another path on the same filesystem."""
        if not path.strip("/"):
            return RemoteFile(files.unstrip_protocol(found))
        before, _, after = self.url.rstrip("/").rpartition(path.rstrip("/"))
        return RemoteFile(f"{before}{found}{after}")


class _OpenRemote(io.RawIOBase):
    """An open file whose failures name its URL."""

    def __init__(self, file: RemoteFile, stream: Any) -> None:
        super().__init__()
        self._file, self._stream = file, stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._reaching():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        with self._reaching():
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

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


def _fsspec(module: str) -> Any:
    try:
        return importlib.import_module(f"fsspec.{module}")
    except ImportError as error:
        raise ImportError(
            "URLs need fsspec, which is not installed: pip install 'polycal[remote]'"
        ) from error
