"""Who may ask: pages of this very origin, with the token that was given to the person who started the explorer."""

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"

# Vega sets style attributes on what it draws; style sheets and scripts come from files of ours only.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """Refuse what does not come from the explorer's own page, before the application sees it.

    - The Host header must be the explorer's own address: a foreign name that resolves to this machine (DNS
      rebinding) is refused.
    - An Origin header, and the browser's own word on where a request comes from, must be of the same origin.
    - Data need the token in an Authorization header. It is no cookie: cookies are shared by all ports of a host,
      hence with other programs on this machine, and are sent along with requests that other pages make.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self._credentials = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with 403, or let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope["path"], Headers(scope=scope))
        app = self._app if problem is None else PlainTextResponse(problem, status_code=403)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await app(scope, receive, send_guarded)

    def _problem(self, path: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or host not in self._hosts:
            return "This address is not the explorer's."
        if any(origin != f"http://{host}" for origin in headers.getlist("origin")):
            return "Other pages may not use the explorer."
        # A link in another page may lead to the page, which holds no data; nothing else may be used from there.
        if path != "/" and headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            return "Other pages may not use the explorer."
        if path == "/" or path.startswith("/assets/"):
            return None
        given = headers.get("authorization", "").encode()
        return None if secrets.compare_digest(given, self._credentials) else "Wrong token."
