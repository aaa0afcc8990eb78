"""`deixis serve`: the model over HTTP, with a page that plays the inference."""

from __future__ import annotations

import socket
from pathlib import Path

import typer

from deixis.errors import InputError, MissingExtra

__all__ = ["serve"]


def serve(
    model: Path | None = typer.Option(None, "--model", "-m", help="The model folder; the packaged model if not given."),
    host: str = typer.Option("127.0.0.1", help="The address to listen on; the default is this machine alone."),
    port: int = typer.Option(8000, min=0, max=65535, help="The port to listen on; 0 takes a free one."),
    wikidata: Path | None = typer.Option(
        None, help="Titles to Wikidata ids, lines title TAB id, that results are to tell."
    ),
    device: str = typer.Option("cpu", help="Where the network runs, e.g. cpu or cuda."),
    precision: str | None = typer.Option(
        None, help="What the network computes in: fp32, bf16, int8 (CPUs only); on a GPU bf16 if not given, else fp32."
    ),
    queue: int = typer.Option(128, min=1, help="How many documents may wait; more are answered with 503."),
    rows: int = typer.Option(8192, min=1, help="How many word pieces and mentions one run of the network takes."),
    body: int = typer.Option(8 << 20, min=1, help="The largest body of a request, in bytes."),
    mentions: int = typer.Option(1000, min=1, help="The most mentions of a request."),
) -> None:
    """Serve a model: POST /disambiguate, /link and /nif, GET /candidates; the page is at /, the reference at /docs.

    Requests of concurrent clients are answered together. Ctrl-C or SIGTERM answers what waits, then stops.

        deixis serve --port 8000

        deixis serve --model model
    """
    try:
        import uvicorn

        from deixis.serving.app import create_app
    except ImportError as error:
        if (error.name or "").split(".")[0] in ("fastapi", "starlette", "uvicorn", "prometheus_client"):
            raise MissingExtra("FastAPI, on which the server stands,", "serve") from None
        raise
    from deixis.inference import Disambiguator
    from deixis.knowledge.entities import read_wikidata
    from deixis.serving.requests import Limits

    nlp = Disambiguator.load(model, device, precision=precision)  # type: ignore[arg-type]  # checked there
    if wikidata is not None:
        nlp.wikidata = read_wikidata(wikidata)
    limits = Limits(queue=queue, rows=rows, body=body, mentions=mentions)
    config = uvicorn.Config(
        create_app(nlp, limits),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=30,
    )
    sock = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    typer.echo(
        f"deixis serves {model or 'the packaged model'} at http://{name}:{sock.getsockname()[1]}/ (Ctrl-C stops)",
        err=True,
    )
    uvicorn.Server(config).run([sock])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
