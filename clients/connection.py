"""The options `--server` and `--store` of commands: use a running service, or open a store in this process."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer

from . import local_socket
from .client import Client
from .exceptions import ClientError
from .payloads import JSON

Server = Annotated[str | None, typer.Option(envvar="FEEDRANK_SERVER", help="URL of a running service")]
Store = Annotated[
    str | None, typer.Option(help="`sqlite:PATH` or `redis://...`: open this store without a server")
]
LearnerName = Annotated[str, typer.Option(help="the learner")]
LearnerArgument = Annotated[str, typer.Argument(help="name of the learner, or an alias")]
Key = Annotated[
    str | None, typer.Option(envvar="FEEDRANK_KEY", help="key of the service, if it requires one")
]


def json_object(text: str) -> JSON:
    """An object given on the command line."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{text!r} is no JSON object")
    return value


def text_or_json(form: str) -> None:
    """Refuse another `--format`."""
    if form not in ("text", "json"):
        raise typer.BadParameter("--format is text or json")


@contextmanager
def one_line(command: str, *errors: type[Exception]) -> Iterator[None]:
    """What a person can mend (the service's refusals, the system's, and these) ends in one line, not in a stack trace."""
    mended: tuple[type[Exception], ...] = (ClientError, OSError, *errors)
    try:
        yield
    except mended as error:
        print(f"feedrank {command}: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


def with_client(
    command: str, *errors: type[Exception]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command line with --server, --store and --key for a function whose first parameter is a client; see `one_line`."""

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def call(*, server: Server, store: Store, key: Key, **options: Any) -> None:
            with one_line(command, *errors), service(server, store, key) as client:
                function(client, **options)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in (("server", Server), ("store", Store), ("key", Key))
        ]
        # What typer reads: it would follow `__wrapped__` to the function otherwise.
        del call.__wrapped__
        call.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
        return call

    return wrap


@contextmanager
def service(server: str | None, store: str | None, key: str | None) -> Iterator[Client]:
    """A client of the service at `server`, or of one in this process."""
    if server and store:
        raise typer.BadParameter("give --server or --store, not both")
    if store:
        client = _local(store)
    elif server:
        client = Client(server, key=key)
    else:
        # What is sent is people's words: never to whatever happens to listen on the usual port.
        raise typer.BadParameter("give --server URL or --store sqlite:PATH")
    with client:
        yield client


def _local(store: str) -> Client:
    """Of the process that has the store open and shares it, or of a service in here, which then shares it."""
    place = local_socket.socket_of(store)
    if place and local_socket.is_shared(place):
        return Client("http://localhost", transport=local_socket.transport(place))
    # Clients know the service over HTTP only: the umbrella package lends them a transport. Where the extra `service`
    # is missing, the command line says so.
    embedded = importlib.import_module("feedrank.embedded")
    try:
        transport = embedded.Embedded(store, place)
    except Exception as error:  # of whatever kind: the service's own errors are not known here
        raise ClientError(str(error) or type(error).__name__) from error
    return Client("http://embedded", transport=transport)
