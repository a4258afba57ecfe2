"""Which service a command line talks to: one at an address, or one in this process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from .client import Client

Server = Annotated[str | None, typer.Option(envvar="FEEDRANK_SERVER", help="URL of a running service")]
Store = Annotated[
    str | None, typer.Option(help="`sqlite:PATH` or `redis://...`: no server, the service runs in here")
]
Key = Annotated[
    str | None, typer.Option(envvar="FEEDRANK_KEY", help="key of the service, if it asks for one")
]


@contextmanager
def service(server: str | None, store: str | None, key: str | None) -> Iterator[Client]:
    """A client of the service at `server`, or of one in this process."""
    if server and store:
        raise typer.BadParameter("give --server or --store, not both")
    if store:
        # Clients know the service over HTTP only: the umbrella package lends them a transport.
        try:
            embedded = importlib.import_module("feedrank.embedded")
        except ModuleNotFoundError as error:
            raise typer.BadParameter(
                f"a service in here needs {error.name}: pip install 'feedrank[service]'"
            ) from error
        client = Client("http://embedded", transport=embedded.Embedded(store))
    else:
        client = Client(server or "http://127.0.0.1:8000", key=key)
    with client:
        yield client
