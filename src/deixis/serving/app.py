"""The endpoints: documents, texts and NIF in, resolutions out; health, metrics and the page beside them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deixis.inference import Disambiguator
from deixis.serving.http_errors import HANDLERS, HttpError
from deixis.serving.limits import Limits
from deixis.serving.metrics import Metrics
from deixis.serving.nif import read_nif_call, write_nif
from deixis.serving.openapi import openapi
from deixis.serving.requests import read_call, read_query
from deixis.serving.service import Service
from deixis.settings import Settings

__all__ = ["PAGE", "create_app"]

PAGE = Path(__file__).parent / "page"
PAGES = {"/": "index.html", "/names": "names.html", "/docs": "docs.html"}
MEDIA = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
FILES = {path.name: path for path in PAGE.iterdir() if path.suffix in MEDIA}
HEADERS = {
    # The page asks this server only, runs no inline script and may not be framed.
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Endpoints:
    """What the server answers over HTTP."""

    def __init__(self, service: Service) -> None:
        self.service, self.limits = service, service.limits

    async def disambiguate(self, request: Request) -> Response:
        """Decide which candidate each given mention means: a document, a list, or `{"documents": […]}`."""
        call = read_call(await _body(request, self.limits), self.limits)
        return _json(call.answer(await self.service.disambiguate(call.documents, call.settings)))

    async def link(self, request: Request) -> Response:
        """Find the mentions of a text and decide what each means."""
        call = read_call(await _body(request, self.limits), self.limits, plain=True)
        return _json(call.answer(await self.service.link(call.documents, call.settings)))

    async def nif(self, request: Request) -> Response:
        """Annotate NIF in Turtle, as GERBIL asks: given phrases are disambiguated, a text without any is linked."""
        documents = read_nif_call(await _body(request, self.limits), self.limits)
        self.service.check_names()
        answer, link = self.service.disambiguate, self.service.link
        results = await asyncio.gather(*((answer if one.mentions else link)([one], Settings()) for one in documents))
        media = "application/x-turtle" if "x-turtle" in request.headers.get("accept", "x-turtle") else "text/turtle"
        return Response(write_nif(found for (found,) in results), media_type=media)

    async def candidates(self, request: Request) -> Response:
        """Return what a name may mean, with priors: by itself, or in a text whose words and names count too.

        `entities` tells what is known of each candidate, in the same order.
        """
        query = read_query(request.query_params)
        found = await self.service.candidates(query)
        entities = [self.service.known(title) for title, _ in found]
        answer = {"surface": query.surface, "candidates": [list(one) for one in found], "entities": entities}
        return _json(orjson.dumps(answer))

    async def health(self, _: Request) -> Response:
        """Say that the server lives."""
        return _json(b'{"status":"alive"}')

    async def ready(self, _: Request) -> Response:
        """Say whether a request would be taken now."""
        if not self.service.batcher.ready:
            raise HttpError(503, "the queue is full or the server is stopping", 1)
        return _json(b'{"status":"ready"}')

    async def figures(self, _: Request) -> Response:
        """Return the server's figures for Prometheus."""
        return Response(self.service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def create_app(nlp: Disambiguator, limits: Limits | None = None) -> Starlette:
    """Return the server's application over a model."""
    limits = limits or Limits()
    service = Service(nlp, limits)
    serve = Endpoints(service)
    endpoints = {
        "/disambiguate": ("POST", serve.disambiguate),
        "/link": ("POST", serve.link),
        "/nif": ("POST", serve.nif),
        "/candidates": ("GET", serve.candidates),
        "/health": ("GET", serve.health),
        "/ready": ("GET", serve.ready),
        "/metrics": ("GET", serve.figures),
    }
    described = openapi(
        limits, {path: (method, inspect.getdoc(one) or "") for path, (method, one) in endpoints.items()}
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await service.close()

    async def description(_: Request) -> Response:
        return _json(orjson.dumps(described))

    known = {*endpoints, *PAGES, "/openapi.json"}
    return Starlette(
        routes=[
            *(Route(path, endpoint, methods=[method]) for path, (method, endpoint) in endpoints.items()),
            Route("/openapi.json", description),
            *(Route(path, _page) for path in PAGES),
            Route("/page/{name}", _page),
        ],
        exception_handlers=HANDLERS,
        middleware=[Middleware(_Count, metrics=service.metrics, known=known)],
        lifespan=lifespan,
    )


async def _page(request: Request) -> FileResponse:
    """Return a file of the page."""
    fixed = PAGES.get(request.url.path)
    if fixed is not None:
        return FileResponse(PAGE / fixed, headers=HEADERS)
    path = FILES.get(request.path_params["name"])
    if path is None:
        raise HTTPException(404)
    return FileResponse(path, media_type=MEDIA[path.suffix], headers=HEADERS)


async def _body(request: Request, limits: Limits) -> bytes:
    """Read a body up to the limits; of a larger one some more is read, or the client would never see the refusal."""
    if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
        raise HttpError(415, f"content-encoding is {encoding[:60]!r}; send the body uncompressed")
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HttpError(415, "the body is a multipart form; send the document itself as the body")
    length = request.headers.get("content-length", "")
    limit, size, parts = limits.max_body, 0, []
    hopeless = length.isdecimal() and int(length) > 8 * limit
    async with asyncio.timeout(limits.max_seconds):
        async for part in request.stream():
            size += len(part)
            if hopeless or size > 8 * limit:
                break
            if size <= limit:
                parts.append(part)
    if hopeless or size > limit:
        raise HttpError(413, f"the body is over {limit:,} bytes, the most this server takes; send less at a time")
    return b"".join(parts)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


class _Count:
    """Count answers by endpoint and status; unknown paths count as one, or anyone could fill the memory."""

    def __init__(self, app: ASGIApp, metrics: Metrics, known: set[str]) -> None:
        self._app, self._metrics, self._known = app, metrics, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = scope["path"] if scope["path"] in self._known else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(endpoint, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)
