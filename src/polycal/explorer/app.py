"""The web application: one page, its assets, and five things to ask for as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from polycal.explorer.answers import answer, describe, found_chart, noise_floor
from polycal.explorer.guard import Guard
from polycal.explorer.state import Asked, Explorer
from polycal.report import assets

_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
# Enough for the indices of a million classes.
_MAX_BODY = 8 << 20

Endpoint = Callable[[Request], Awaitable[Response]]
Answerer = Callable[[Explorer, Asked], dict[str, Any]]


def make_app(explorer: Explorer, port: int, token: str) -> Starlette:
    """The application, which answers only at this port and to who has the token."""
    return Starlette(
        routes=[
            Route("/", _asset("explorer.html")),
            *(Route(f"/assets/{name}", _asset(name)) for name in _ASSETS),
            Route("/api/sample", _sample(explorer)),
            Route("/api/worst", _worst(explorer)),
            Route("/api/nodes", _nodes(explorer)),
            Route("/api/question", _asking(explorer, answer), methods=["POST"]),
            Route("/api/floor", _asking(explorer, noise_floor), methods=["POST"]),
        ],
        middleware=[Middleware(Guard, port, token)],
    )


@cache
def _static(name: str) -> str:
    return files("polycal.explorer").joinpath("static", name).read_text(encoding="utf-8")


# Style and scripts of the report are the explorer's too.
_ASSETS: dict[str, Callable[[], str]] = {
    "vega.js": assets.vega_bundle,
    "page.js": lambda: assets.static("page.js"),
    "tree.js": lambda: assets.static("tree.js"),
    "report.css": lambda: assets.static("report.css"),
    "explorer.css": lambda: _static("explorer.css"),
    "explorer.js": lambda: _static("explorer.js"),
    "icon.svg": lambda: _static("icon.svg"),
}


def _asset(name: str) -> Endpoint:
    # Made once: what bundles the scripts opens dozens of files each time it is asked, until there is an answer to keep.
    lock = asyncio.Lock()

    async def endpoint(_: Request) -> Response:
        async with lock:
            text = await run_in_threadpool(_ASSETS[name] if name in _ASSETS else lambda: _static(name))
        return Response(text, media_type=_TYPES[name.rpartition(".")[2]])

    return endpoint


def _sample(explorer: Explorer) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return JSONResponse(describe(explorer))

    return endpoint


def _worst(explorer: Explorer) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        state, found = explorer.search.state, explorer.search.found
        return JSONResponse({"state": state, "found": found, "chart": found_chart(found)})

    return endpoint


def _nodes(explorer: Explorer) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return JSONResponse({"nodes": explorer.search.nodes})

    return endpoint


def _asking(explorer: Explorer, answerer: Answerer) -> Endpoint:
    """An endpoint that computes, on a thread of its own."""

    async def endpoint(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return JSONResponse({"error": "the question is too long"}, status_code=413)
        try:
            asked = explorer.check(json.loads(body))
        except (ValueError, TypeError, RecursionError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse(await run_in_threadpool(answerer, explorer, asked))

    return endpoint


async def _body(request: Request) -> bytes | None:
    """What was sent; None if that is too much."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return None
    return body
