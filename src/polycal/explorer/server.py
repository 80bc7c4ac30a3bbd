"""The server: on this machine only, until Ctrl-C."""

import asyncio
import errno
import logging
import secrets
import socket
import warnings
from dataclasses import dataclass
from typing import Any

try:
    import starlette  # noqa: F401 - asked for here, to say which extra has it
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError("The explorer needs starlette and uvicorn: pip install 'polycal[explore]'.") from error

from polycal.explorer.app import make_app
from polycal.explorer.guard import HOST
from polycal.explorer.state import Explorer

# A browser opens six connections at a time. Who has not sent a whole question after so many seconds is not answered.
_MAX_CONNECTIONS, _PATIENCE = 32, 10.0
# Connections taken in at once: before the next are, there must be time to close others.
_BACKLOG = 16
# Lines that the server may write in all: what goes wrong a thousand times is one thing.
_MAX_MESSAGES = 5


@dataclass(frozen=True, eq=False, repr=False)
class Door:
    """Where the explorer listens, and the token that opens it.

    Attributes
    ----------
    listener : socket.socket
        Bound to the loopback address: nobody outside this machine can reach it.
    token : str
        Random, and in the fragment of `url`, which browsers send to nobody.
    """

    listener: socket.socket
    token: str

    @property
    def port(self) -> int:
        """The port, chosen by the system if 0 was asked for."""
        return int(self.listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{HOST}:{self.port}/#token={self.token}"


def open_door(port: int) -> Door:
    """Begin to listen; a port that cannot be had is an error which says what to do."""
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        advice = "choose another with --port, or leave --port out for any free one"
        if error.errno == errno.EADDRINUSE:
            raise OSError(f"port {port} is in use by another program; {advice}.") from None
        raise OSError(f"port {port} cannot be opened ({error.strerror}); {advice}.") from None
    # Connections inherit it. Without, the end of an answer waits 40 ms for the browser to confirm its beginning.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Door(listener, secrets.token_urlsafe(32))


def serve(explorer: Explorer, door: Door) -> None:
    """Answer until Ctrl-C (a KeyboardInterrupt for the caller), then end the search too."""
    config = uvicorn.Config(
        make_app(explorer, door.port, door.token),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
        http=_Connection,
        backlog=_BACKLOG,
    )
    few = _Few()
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(few)
    # Ctrl-C just before the server begins is no error.
    warnings.filterwarnings("ignore", "coroutine 'Server.serve' was never awaited", RuntimeWarning)
    try:
        uvicorn.Server(config).run(sockets=[door.listener])
    finally:
        explorer.search.stop()
        door.listener.close()


class _Connection(H11Protocol):
    """A connection that is closed when nothing comes, and, where there are too many, when it has waited longest."""

    _since = 0.0
    _asked: Any = None
    _check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Make room for the new connection at the cost of the one that has been silent for longest."""
        super().connection_made(transport)
        self._since = self.loop.time()
        # What is closed stays among the connections for a turn, while others come in.
        opened = [c for c in self.connections if isinstance(c, _Connection) and not c.transport.is_closing()]
        if len(opened) > _MAX_CONNECTIONS:
            silent = [connection for connection in opened if connection.is_waiting]
            min(silent, key=lambda connection: connection._since).transport.abort()
        self._check = self.loop.call_later(_PATIENCE, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether a question is still to come, or the rest of one, or the answer to be taken."""
        is_asking = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        return is_asking or self.transport.get_write_buffer_size() > 0

    def _close_if_silent(self) -> None:
        """Close it if it has been waiting for the same question since the last look."""
        if self.is_waiting and self.cycle is self._asked:
            self.transport.abort()
            return
        self._asked = self.cycle
        self._check = self.loop.call_later(_PATIENCE, self._close_if_silent)


class _Few(logging.Filter):
    """The first messages only."""

    def __init__(self) -> None:
        super().__init__()
        self._left = _MAX_MESSAGES

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - whatever it is
        """Whether to write it."""
        self._left -= 1
        return self._left >= 0
