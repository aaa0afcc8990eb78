"""HTTP errors: each is one sentence as JSON, `{"error": "…"}`, with a status and, where it helps, Retry-After."""

from __future__ import annotations

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from deixis.errors import DeixisError

__all__ = ["HANDLERS", "STATUSES", "HttpError"]

STATUSES = {
    400: "The body ended early.",
    408: "The body did not arrive in time.",
    413: "The body is over the limit.",
    415: "The body is compressed or a form.",
    422: "A field is wrong or over a limit; the message names it.",
    501: "The model folder has no names of its own.",
    503: "The queue is full, or the server is stopping; Retry-After says when to come back.",
}


class HttpError(DeixisError):
    """A request that is refused with a status; the text is meant for the client."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        again = f"; try again in {retry_after} s" if retry_after else ""
        super().__init__(message + again)
        self.status, self.retry_after = status, retry_after


async def _answer(request: Request, error: Exception) -> Response:
    status, message, headers = 500, "something went wrong in the server; its log has the details", {}
    if isinstance(error, HttpError):
        status, message = error.status, str(error)
        headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = f"{request.method} {request.url.path[:100]}: {error.detail.lower()}; GET /docs lists the endpoints"
    elif isinstance(error, ClientDisconnect | TimeoutError):
        status = 400 if isinstance(error, ClientDisconnect) else 408
        message = f"{STATUSES[status][0].lower()}{STATUSES[status][1:-1]}; send it again"
    return Response(orjson.dumps({"error": message}), status, headers, "application/json")


HANDLERS = dict.fromkeys((HttpError, HTTPException, ClientDisconnect, TimeoutError, Exception), _answer)
