"""`feedrank search`: a demo of search that learns from clicks, and logs of searches as a warm start."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from .connection import Key, Server, service
from .exceptions import ClientError
from .payloads import JSON

app = typer.Typer(
    help="Re-rank search results, learning from clicks.", no_args_is_help=True, add_completion=False
)


@app.callback()
def _search() -> None:
    """Re-rank search results, learning from clicks."""


@app.command()
def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the page; 0: any free port")] = 8080,
    server: Server = None,
    store: Annotated[
        str | None, typer.Option(help="store for what is learned, `sqlite:PATH`; default: nothing is kept")
    ] = None,
    key: Key = None,
    modules: Annotated[int | None, typer.Option(min=1, help="index only this many modules")] = None,
) -> None:
    """Search Python's documentation in a browser. The learner learns from clicks and is compared with the engine live."""
    from .search.demo.corpus import SearchIndex, documents  # noqa: PLC0415  (the help needs none of it)
    from .search.demo.site import Site  # noqa: PLC0415
    from .search.demo.web import serve  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as folder:
        place = store or (None if server else f"sqlite:{folder}/demo.db")
        try:
            with service(server, place, key) as client:
                site = Site(client, SearchIndex(documents(modules=modules)))
                with serve(site, port) as web:
                    print(
                        f"search and click: http://127.0.0.1:{web.server_port}/  (stop with Ctrl-C)",
                        flush=True,
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


@app.command("import")
def import_logs(
    logs: Annotated[
        list[Path],
        typer.Argument(
            exists=True, dir_okay=False, help="files of JSON lines: UBI records, or plain searches"
        ),
    ],
    name: Annotated[str, typer.Option(help="name of the search; created if it does not exist")] = "search",
    documents: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="JSON lines with the fields of the documents (UBI logs only ids)",
        ),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="text field; may be repeated")] = None,
    extra: Annotated[list[str] | None, typer.Option(help="numeric field; may be repeated")] = None,
    freshness: Annotated[str | None, typer.Option(help="field with the date")] = None,
    popularity: Annotated[str | None, typer.Option(help="field with the popularity")] = None,
    page: Annotated[int, typer.Option(min=1, help="results per page")] = 10,
    server: Server = None,
    store: Annotated[str | None, typer.Option(help="`sqlite:PATH`, to work without a server")] = None,
    key: Key = None,
) -> None:
    """Learn from old search logs before the first live search; importing a search twice counts once."""
    from .search import Features, prepare, warm_start  # noqa: PLC0415

    skipped = warm_start.Skipped()
    features = Features(text=text or (), extra=extra or (), freshness=freshness, popularity=popularity)
    try:
        fields = warm_start.documents(_lines(documents or []), skipped)
        with service(server, store, key) as client:
            prepare(client, name)
            new = again = 0
            events = warm_start.lessons(_lines(logs), features, skipped, fields, page)
            for some in _batches(events, 100):
                for outcome in client.feedback_many(name, some):
                    new += not outcome.duplicate
                    again += outcome.duplicate
    except (ClientError, OSError, UnicodeDecodeError) as error:
        print(f"feedrank search: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(f"{new} pages learned, {again} known before")
    for reason, count in sorted(skipped.reasons.items()):
        print(f"{count} {reason}", file=sys.stderr)


def _lines(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            yield from file


def _batches(events: Iterator[JSON], size: int) -> Iterator[list[JSON]]:
    while some := list(islice(events, size)):
        yield some
