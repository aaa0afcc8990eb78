"""The endpoints: documents, texts and NIF in, resolutions out; health, metrics and the page beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deixis import __version__
from deixis.documents import Candidate, Document, Mention, Resolutions
from deixis.inference import Disambiguator
from deixis.serving.batcher import Batcher
from deixis.serving.http_errors import NotProvided, Refusal, TooLarge, Unusable
from deixis.serving.metrics import Metrics
from deixis.serving.nif import read_nif_call, write_nif
from deixis.serving.requests import Limits, read_call
from deixis.serving.schema import ERROR, TITLE_AND_NUMBER, answers, json_body, linking_body, turtle_body
from deixis.settings import Settings

__all__ = ["create_app"]

PAGE = Path(__file__).parent / "page"
MEDIA = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
FILES = {path.name: path for path in PAGE.iterdir() if path.suffix in MEDIA}
NO_STORE = "this model folder has no candidate store; give the candidates of each mention to POST /disambiguate"
HEADERS = {
    # The page asks this server only, runs no inline script and may be framed by nobody.
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Service:
    """A model with its queue: what the endpoints share."""

    def __init__(self, nlp: Disambiguator, limits: Limits) -> None:
        self.nlp, self.limits, self.metrics = nlp, limits, Metrics()
        self.batcher = Batcher(nlp.disambiguate_many, self.metrics, queue=limits.queue, rows=limits.rows)

    async def resolve(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Answer documents with mentions, together with what else waits."""
        return await asyncio.wrap_future(self.batcher.submit(documents, settings))

    async def link(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Find the mentions of plain texts and answer them."""
        if self.nlp.detector is None:
            raise NotProvided(NO_STORE)
        found = [await run_in_threadpool(self.nlp.find, document) for document in documents]
        count = sum(len(document.mentions) for document in found)
        limit = self.limits.traced if settings.trace else self.limits.mentions
        if count > limit:
            traced = " with a trace" if settings.trace else ""
            raise Unusable(f"text has {count:,} mentions; this server takes at most {limit:,} a request{traced}")
        return await self.resolve(found, self.nlp.for_texts(settings))

    def lookup(self, surface: str) -> Sequence[Candidate]:
        """Return the candidates of a surface: those of a text that has nothing else."""
        if self.nlp.candidates is None:
            raise NotProvided(NO_STORE)
        return self.nlp.candidates.candidates(Document(surface, (Mention(0, len(surface)),)))[0]


def create_app(nlp: Disambiguator, limits: Limits | None = None) -> FastAPI:
    """Return the server's application over a model."""
    service = Service(nlp, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.batcher.close)

    app = FastAPI(
        title="deixis",
        version=__version__,
        summary="Which Wikipedia entity does each name in a text mean?",
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere; /docs here does not
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_linking(app, service)
    _add_watching(app, service)
    _add_page(app)
    _add_refusals(app)
    app.add_middleware(_Count, metrics=service.metrics, app_of_routes=app)
    return app


def _add_linking(app: FastAPI, service: Service) -> None:
    limits = service.limits
    statuses = answers(limits, 413, 422, 501, 503)
    turtle: dict[int | str, dict[str, Any]] = statuses | {
        200: {
            "description": "The contexts with links",
            "content": {"application/x-turtle": {"schema": {"type": "string"}}},
        }
    }

    @app.post("/disambiguate", responses=answers(limits, 413, 422, 503), openapi_extra=json_body(limits))
    async def disambiguate(request: Request) -> Response:
        """Decide which candidate each given mention means: a document, a list, or `{"documents": […]}`."""
        call = read_call(await _body(request, limits.body), limits)
        return _json(call.answer(await service.resolve(call.documents, call.settings)))

    @app.post("/link", responses=statuses, openapi_extra=linking_body(limits))
    async def link(request: Request) -> Response:
        """Find the mentions of a text and decide what each means."""
        call = read_call(await _body(request, limits.body), limits, plain=True)
        return _json(call.answer(await service.link(call.documents, call.settings)))

    @app.post("/nif", responses=turtle, openapi_extra=turtle_body())
    async def nif(request: Request) -> Response:
        """Annotate NIF in Turtle, as GERBIL asks: phrases given are disambiguated, else the text is linked."""
        documents = read_nif_call(await _body(request, limits.body), limits)
        if service.nlp.candidates is None:
            raise NotProvided("this model folder has no candidate store, and NIF gives no candidates")
        asked = (
            (service.resolve if document.mentions else service.link)([document], Settings()) for document in documents
        )
        results = [found for (found,) in await asyncio.gather(*asked)]
        media = "application/x-turtle" if "x-turtle" in request.headers.get("accept", "x-turtle") else "text/turtle"
        return Response(write_nif(results), media_type=media)

    @app.get("/candidates", responses=_candidates_answers(statuses))
    async def candidates(surface: str = Query(min_length=1, max_length=1000)) -> Response:
        """Return what a surface may mean, with priors."""
        found = await run_in_threadpool(service.lookup, surface)
        return _json(orjson.dumps({"surface": surface, "candidates": [list(candidate) for candidate in found]}))


def _candidates_answers(statuses: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    listed = {"type": "array", "items": TITLE_AND_NUMBER}
    schema = {"type": "object", "properties": {"surface": {"type": "string"}, "candidates": listed}}
    found = {"description": "Candidates, most probable first", "content": {"application/json": {"schema": schema}}}
    return {200: found, 422: statuses[422], 501: statuses[501]}


def _add_watching(app: FastAPI, service: Service) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Say that the server lives."""
        return {"status": "alive"}

    @app.get("/ready", responses={503: {"content": {"application/json": {"schema": ERROR}}}})
    async def ready() -> Response:
        """Say whether a request would be taken now."""
        if service.batcher.ready:
            return _json(b'{"status":"ready"}')
        return _error(503, "the queue is full or the server is going down", 1)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Return the server's figures for Prometheus."""
        return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers=HEADERS)

    @app.get("/page/{name}", include_in_schema=False)
    async def file(name: str) -> FileResponse:
        if name not in FILES:
            raise HTTPException(404)
        return FileResponse(FILES[name], media_type=MEDIA[FILES[name].suffix], headers=HEADERS)


def _add_refusals(app: FastAPI) -> None:
    """Turn everything that can go wrong into a JSON error of one sentence."""

    @app.exception_handler(Refusal)
    async def refusal(_: Request, error: Refusal) -> Response:
        return _error(error.status, str(error), error.retry_after)

    @app.exception_handler(RequestValidationError)
    async def validation(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _error(422, f"{'.'.join(map(str, first['loc'][1:]))} is wrong: {first['msg'].lower()}")

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        answer = _error(error.status_code, f"{error.detail.lower()}; GET /docs lists the endpoints")
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return _error(400, "the body ended early")

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return _error(500, "something went wrong in the server; its log has the details")


async def _body(request: Request, limit: int) -> bytes:
    """Read a body up to the limit; of a larger one some more is read, or the client would never see the refusal."""
    length = request.headers.get("content-length", "")
    hopeless = length.isdecimal() and int(length) > 8 * limit
    parts: list[bytes] = []
    size = 0
    if not hopeless:
        async for part in request.stream():
            size += len(part)
            if size > 8 * limit:
                break
            if size <= limit:
                parts.append(part)
    if hopeless or size > limit:
        raise TooLarge(f"the body is over {limit:,} bytes, which is the most this server takes; send less at a time")
    return b"".join(parts)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _error(status: int, message: str, retry_after: int | None = None) -> Response:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Response(orjson.dumps({"error": message}), status, headers, "application/json")


class _Count:
    """Count answers by endpoint and status; paths that are no endpoint count as one, else anyone could fill memory."""

    def __init__(self, app: ASGIApp, metrics: Metrics, app_of_routes: FastAPI) -> None:
        self._app, self._metrics = app, metrics
        self._known = {getattr(route, "path", "") for route in app_of_routes.routes}

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
