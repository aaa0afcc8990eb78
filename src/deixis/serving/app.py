"""The endpoints: documents, texts and NIF in, resolutions out; health, metrics and the page beside them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deixis.documents import Document, Mention, Resolutions
from deixis.inference import Disambiguator
from deixis.serving.batcher import Batcher
from deixis.serving.http_errors import HANDLERS, HttpError
from deixis.serving.limits import Limits
from deixis.serving.metrics import Metrics
from deixis.serving.nif import read_nif_call, write_nif
from deixis.serving.openapi import openapi
from deixis.serving.requests import check_mentions, read_call, read_query
from deixis.settings import Settings

__all__ = ["PAGE", "create_app"]

PAGE = Path(__file__).parent / "page"
MEDIA = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
FILES = {path.name: path for path in PAGE.iterdir() if path.suffix in MEDIA}
HEADERS = {
    # The page asks this server only, runs no inline script and may not be framed.
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Endpoints:
    """A model with its queue, and what the server answers."""

    def __init__(self, nlp: Disambiguator, limits: Limits) -> None:
        self.nlp, self.limits, self.metrics = nlp, limits, Metrics()
        self.batcher = Batcher(nlp.disambiguate_many, self.metrics, queue=limits.queue, rows=limits.batch_rows)

    async def disambiguate(self, request: Request) -> Response:
        """Decide which candidate each given mention means: a document, a list, or `{"documents": […]}`."""
        call = read_call(await _body(request, self.limits), self.limits)
        return _json(call.answer(await self._resolve(call.documents, call.settings)))

    async def link(self, request: Request) -> Response:
        """Find the mentions of a text and decide what each means."""
        call = read_call(await _body(request, self.limits), self.limits, plain=True)
        return _json(call.answer(await self._link(call.documents, call.settings)))

    async def nif(self, request: Request) -> Response:
        """Annotate NIF in Turtle, as GERBIL asks: given phrases are disambiguated, a text without any is linked."""
        documents = read_nif_call(await _body(request, self.limits), self.limits)
        self._check_names()
        results = await asyncio.gather(
            *((self._resolve if one.mentions else self._link)([one], Settings()) for one in documents)
        )
        media = "application/x-turtle" if "x-turtle" in request.headers.get("accept", "x-turtle") else "text/turtle"
        return Response(write_nif(found for (found,) in results), media_type=media)

    async def candidates(self, request: Request) -> Response:
        """Return what a name may mean, with priors: by itself, or in a text whose words and names count too."""
        query = read_query(request.query_params)
        self._check_names()
        found = await run_in_threadpool(self._lookup, query.surface, query.text)
        return _json(orjson.dumps({"surface": query.surface, "candidates": found}))

    async def health(self, _: Request) -> Response:
        """Say that the server lives."""
        return _json(b'{"status":"alive"}')

    async def ready(self, _: Request) -> Response:
        """Say whether a request would be taken now."""
        if not self.batcher.ready:
            raise HttpError(503, "the queue is full or the server is stopping", 1)
        return _json(b'{"status":"ready"}')

    async def figures(self, _: Request) -> Response:
        """Return the server's figures for Prometheus."""
        return Response(self.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _resolve(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Answer documents with mentions, together with what else waits."""
        return await asyncio.wrap_future(self.batcher.submit(documents, settings))

    async def _link(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Find the mentions of plain texts and answer them."""
        self._check_names()
        found = [await run_in_threadpool(self.nlp.find, document) for document in documents]
        check_mentions(found, self.limits, settings)
        return await self._resolve(found, self.nlp.for_texts(settings))

    def _check_names(self) -> None:
        if self.nlp.detector is None or self.nlp.candidates is None:
            raise HttpError(
                501,
                "this model folder has no candidate store; give the candidates of each mention to POST /disambiguate",
            )

    def _lookup(self, surface: str, text: str | None) -> list[list[str | float | None]]:
        """Return the candidates that linking considers for a name, in a text if one is given."""
        document = Document(surface if text is None else text)
        start = document.text.index(surface)
        mention = Mention(start, start + len(surface))
        found = () if text is None else self.nlp.find(document).mentions
        others = (one for one in found if (one.start, one.end) != (mention.start, mention.end))
        asked = Document(document.text, (mention, *others))
        assert self.nlp.candidates is not None
        return [list(candidate) for candidate in self.nlp.candidates.candidates(asked)[0]]


def create_app(nlp: Disambiguator, limits: Limits | None = None) -> Starlette:
    """Return the server's application over a model."""
    limits = limits or Limits()
    serve = Endpoints(nlp, limits)
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
        await run_in_threadpool(serve.batcher.close)

    async def description(_: Request) -> Response:
        return _json(orjson.dumps(described))

    known = {*endpoints, "/", "/docs", "/openapi.json"}
    return Starlette(
        routes=[
            *(Route(path, endpoint, methods=[method]) for path, (method, endpoint) in endpoints.items()),
            Route("/openapi.json", description),
            Route("/", _page),
            Route("/docs", _page),
            Route("/page/{name}", _page),
        ],
        exception_handlers=HANDLERS,
        middleware=[Middleware(_Count, metrics=serve.metrics, known=known)],
        lifespan=lifespan,
    )


async def _page(request: Request) -> FileResponse:
    """Return a file of the page."""
    fixed = {"/": "index.html", "/docs": "docs.html"}.get(request.url.path)
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
