"""URLs as text: what they name, and what of them must not be shown. Nothing here connects."""

import re
from dataclasses import dataclass
from itertools import takewhile

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
