"""`deixis serve`: the model over HTTP, with a page that plays the inference."""

from __future__ import annotations

import signal
import socket
import sys
from typing import TYPE_CHECKING

import typer

from deixis.cli.options import Machine, Model, Wikidata, open_model, with_settings
from deixis.errors import InputError, MissingExtra
from deixis.serving.limits import Limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["address", "listen", "run", "serve"]


@with_settings
def serve(
    model: Model = None,
    host: str = typer.Option("127.0.0.1", help="Address to listen on; the default is this machine alone."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
    wikidata: Wikidata = None,
    *,
    machine: Machine,
    limits: Limits,
) -> None:
    """Serve a model: POST /disambiguate, /link and /nif, GET /candidates; the page is at /, the reference at /docs.

    Requests of concurrent clients are answered together. Ctrl-C or SIGTERM answers what waits, then stops.

        deixis serve --port 8000

        deixis serve --model model --max-mentions 200 --queue 32

        curl localhost:8000/link -d '{"text": "Messi won the World Cup."}'
    """
    try:
        import uvicorn  # noqa: F401 - run() needs it

        from deixis.serving.app import create_app
    except ImportError as error:
        if (error.name or "").split(".")[0] in ("starlette", "uvicorn", "prometheus_client"):
            raise MissingExtra("Starlette or uvicorn, which the server needs,", "serve") from None
        raise
    nlp = open_model(model, machine, wikidata)
    with listen(host, port) as sock:
        typer.echo(f"deixis serves {model or 'the packaged model'} at {address(sock)} (Ctrl-C stops)", err=True)
        run(create_app(nlp, limits), sock)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None


def address(sock: socket.socket) -> str:
    """Return the address of what listens."""
    host, port = sock.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run(app: ASGIApp, sock: socket.socket) -> None:
    """Serve an application until Ctrl-C or SIGTERM; what was taken is answered."""
    import uvicorn

    # When all is answered, uvicorn raises the signal again for the handler from before: such a stop is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=30)
    uvicorn.Server(config).run([sock])
