"""The tools over the Model Context Protocol: on standard input and output, or over streamable HTTP.

Calls share nothing, so HTTP needs no sessions: each request is answered by itself, as JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deixis import __version__
from deixis.errors import DeixisError
from deixis.inference import Disambiguator
from deixis.serving.http_errors import STATUSES
from deixis.serving.limits import Limits
from deixis.serving.service import Service
from deixis.serving.tools import TOOLS, TextToLink, call

__all__ = ["PATH", "create_mcp_app", "create_mcp_server", "serve_stdio"]

PATH = "/mcp"
INSTRUCTIONS = (
    "deixis decides which Wikipedia entity each name in a text means. Give link_text a whole passage: the names of a "
    "text help one another. The probabilities are the model's own; under one half, say that it is not sure."
)

log = logging.getLogger(__name__)


def create_mcp_server(nlp: Disambiguator, limits: Limits | None = None) -> Server[Service]:
    """Return the server of the tools over a model, for any transport."""
    limits = limits or Limits()

    @asynccontextmanager
    async def lifespan(_: Server[Service]) -> AsyncIterator[Service]:
        service = Service(nlp, limits)
        try:
            yield service
        finally:
            await service.close()

    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=_tools(limits))

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            answer = await call(context.lifespan_context, params.name, params.arguments or {})
        except DeixisError as error:
            return _refused(str(error))
        except Exception:
            log.exception("the tool %s failed", params.name)
            return _refused("something went wrong in the server; its log has the details")
        text = TextContent(type="text", text=orjson.dumps(answer).decode())
        return CallToolResult(content=[text], structured_content=answer)

    return Server(
        "deixis",
        version=__version__,
        title="Entity linking",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(nlp: Disambiguator, limits: Limits | None = None) -> None:
    """Answer the client at the other end of standard input and output until it goes."""
    server = create_mcp_server(nlp, limits)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def create_mcp_app(nlp: Disambiguator, limits: Limits | None = None) -> ASGIApp:
    """Return the application that answers at PATH over streamable HTTP, to clients of this machine alone."""
    limits = limits or Limits()
    app = create_mcp_server(nlp, limits).streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, max_request_body_size=limits.max_body
    )
    return _InTime(app, limits.max_seconds)


def _tools(limits: Limits) -> list[Tool]:
    most = f"At most {limits.max_text:,} characters and {limits.max_mentions:,} mentions."
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return [
        Tool(
            name=name,
            title=tool.title,
            description=f"{tool.description} {most}" if issubclass(tool.takes, TextToLink) else tool.description,
            input_schema=tool.takes.model_json_schema(),
            output_schema=tool.answers.model_json_schema(),
            annotations=hints,
        )
        for name, tool in TOOLS.items()
    ]


def _refused(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


class _InTime:
    """Answer 408 to a body that takes too long to arrive; what comes after it may take its time."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self._seconds
        arrived = late = False

        async def timed() -> Message:
            nonlocal arrived, late
            try:
                async with asyncio.timeout_at(None if arrived else until):
                    message = await receive()
            except TimeoutError:
                late = True
                return {"type": "http.disconnect"}
            arrived = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def unless_late(message: Message) -> None:
            if not late:
                await send(message)

        await self._app(scope, timed, unless_late)
        if late:
            body = orjson.dumps({"error": f"{STATUSES[408][0].lower()}{STATUSES[408][1:-1]}; send it again"})
            await Response(body, 408, {"connection": "close"}, "application/json")(scope, receive, send)
