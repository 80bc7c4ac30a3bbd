"""The server: on this machine only, until Ctrl-C."""

import errno
import secrets
import socket
from dataclasses import dataclass

try:
    import starlette  # noqa: F401 - asked for here, to say which extra has it
    import uvicorn
except ImportError as error:
    raise ImportError("The explorer needs starlette and uvicorn: pip install 'polycal[explore]'.") from error

from polycal.explorer.app import make_app
from polycal.explorer.guard import HOST
from polycal.explorer.state import Explorer


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
    )
    try:
        uvicorn.Server(config).run(sockets=[door.listener])
    finally:
        explorer.search.stop()
        door.listener.close()
