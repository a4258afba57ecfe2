"""`feedrank search`: a demo of search that learns from clicks."""

from __future__ import annotations

import signal
import sys
import tempfile
from typing import Annotated

import typer

from .errors import ClientError
from .serving import Key, Server, service

app = typer.Typer(
    help="Rank search results, learning from clicks.", no_args_is_help=True, add_completion=False
)


@app.callback()
def _search() -> None:
    """Rank search results, learning from clicks."""


@app.command()
def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="of the page; 0 takes a free one")] = 8080,
    server: Server = None,
    store: Annotated[
        str | None, typer.Option(help="keep what is learned, `sqlite:PATH`; else it is forgotten")
    ] = None,
    key: Key = None,
    modules: Annotated[int | None, typer.Option(min=1, help="search only so many modules")] = None,
) -> None:
    """Search the documentation of Python's library in a browser; clicks teach, and an A/B compares live."""
    from .search.demo.corpus import Index, documents  # noqa: PLC0415  (the help needs none of it)
    from .search.demo.site import Site  # noqa: PLC0415
    from .search.demo.web import serve  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as folder:
        place = store or (None if server else f"sqlite:{folder}/demo.db")
        try:
            with service(server, place, key) as client:
                site = Site(client, Index(documents(modules=modules)))
                with serve(site, port) as web:
                    print(
                        f"search and click: http://127.0.0.1:{web.server_port}/  (Ctrl-C ends it)", flush=True
                    )
                    try:
                        web.serve_forever()
                    except KeyboardInterrupt:
                        print("bye")
                    finally:
                        site.close()
        except (ClientError, OSError) as error:
            print(f"feedrank search: {error}", file=sys.stderr)
            raise typer.Exit(1) from error
