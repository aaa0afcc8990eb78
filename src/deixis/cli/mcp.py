"""`deixis mcp`: the model as tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import typer

from deixis.cli.options import Machine, Model, Wikidata, open_model, with_settings
from deixis.cli.serve import address, listen, run
from deixis.errors import MissingExtra
from deixis.serving.limits import Limits

__all__ = ["mcp"]

NEEDED = ("mcp", "mcp_types", "prometheus_client", "starlette", "uvicorn")


@with_settings
def mcp(
    model: Model = None,
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Serve streamable HTTP at this port of this machine; 0 takes a free one."
    ),
    wikidata: Wikidata = None,
    *,
    machine: Machine,
    limits: Limits,
) -> None:
    """Offer a model to agents as tools: link_text, disambiguate_mentions, find_candidates, entity.

    Without --port it speaks the Model Context Protocol on standard input and output, as agents start it; with it, over
    HTTP at /mcp.

        deixis mcp

        deixis mcp --port 8001 --model model
    """
    try:
        from deixis.serving.mcp import PATH, create_mcp_app, serve_stdio
    except ImportError as error:
        if (error.name or "").split(".")[0] in NEEDED:
            raise MissingExtra("The mcp package, which speaks the protocol,", "mcp") from None
        raise
    import anyio

    nlp = open_model(model, machine, wikidata)
    if port is None:
        anyio.run(serve_stdio, nlp, limits)
        return
    with listen("127.0.0.1", port) as sock:
        where = address(sock).rstrip("/") + PATH
        typer.echo(f"deixis offers {model or 'the packaged model'} to agents at {where} (Ctrl-C stops)", err=True)
        run(create_mcp_app(nlp, limits), sock)
