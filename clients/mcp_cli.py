"""`feedrank mcp`: learners as tools of the Model Context Protocol, over standard input and output.

An assistant asks, answers and looks: predict, explain, feedback, queue, reliability, learners. Nothing here creates,
renames or removes anything, whatever the key may do; what the key may not do, the service refuses, and the tool says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import Any

import typer
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from feedrank import __version__

from .client import Client
from .connection import with_client
from .exceptions import BadRequest, ClientError
from .payloads import JSON

app = typer.Typer(add_completion=False)
GUIDE = (
    "Learners that label, learning from every piece of feedback. Predict with min_precision to get a label only where it "
    "is proved to be right so often; without a label, decide yourself, then send feedback with the prediction_id."
)


@app.command()
@with_client("mcp")
def mcp(client: Client) -> None:
    """Serve the tools to the assistant that started this command."""
    tools(client).run("stdio")


def tools(client: Client) -> MCPServer:
    """The server of a client's tools."""
    server = MCPServer("feedrank", instructions=GUIDE, version=__version__)
    for function in Tools(client).functions():
        server.tool()(saying_why(function))
    return server


def saying_why(function: Callable[..., JSON]) -> Callable[..., JSON]:
    """A tool that tells the assistant what the service refused, and what to do."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> JSON:
        try:
            return function(*args, **kwargs)
        except ClientError as error:
            raise ToolError(str(error)) from None

    return call


class Tools:
    """Each method is one tool: its name, its parameters and its text are what the assistant sees."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def functions(self) -> tuple[Callable[..., JSON], ...]:
        """All tools."""
        return self.learners, self.predict, self.explain, self.feedback, self.queue, self.reliability

    def learners(self, cursor: str | None = None) -> JSON:
        """The learners that there are, with their tasks; `next` is the cursor of the next page."""
        return plain(self._client.learners(cursor=cursor))

    def predict(
        self,
        learner: str,
        text: str | None = None,
        features: dict[str, float] | None = None,
        row: dict[str, Any] | None = None,
        min_precision: float | None = None,
        top: int = 5,
    ) -> JSON:
        """A learner's decision on a text, on features or on a row. With min_precision it abstains unless it is proved."""
        instance = instance_of(text, features, row)
        return plain(self._client.predict(learner, instance, top=top, min_precision=min_precision))

    def explain(
        self,
        learner: str,
        text: str | None = None,
        features: dict[str, float] | None = None,
        row: dict[str, Any] | None = None,
    ) -> JSON:
        """What each word or feature adds to the scores of the three likeliest labels; nothing is remembered."""
        instance = instance_of(text, features, row)
        return plain(self._client.predict(learner, instance, top=3, explain=True, remember=False))

    def feedback(
        self,
        learner: str,
        label: str | None = None,
        labels: list[str] | None = None,
        prediction_id: str | None = None,
        text: str | None = None,
        features: dict[str, float] | None = None,
        row: dict[str, Any] | None = None,
    ) -> JSON:
        """Tell a learner what is right, of a prediction or of an instance: `label`, or `labels` where it gives sets."""
        event: JSON = {"label": label} if labels is None else {"labels": labels}
        about = {"prediction_id": prediction_id} if prediction_id else instance_of(text, features, row)
        return plain(self._client.feedback(learner, {**about, **event}))

    def queue(self, learner: str, limit: int = 10, lease: float = 600.0) -> JSON:
        """What is most worth an answer, the least certain first, kept from others for `lease` seconds."""
        return plain(self._client.queue(learner, limit, lease=lease))

    def reliability(self, learner: str) -> JSON:
        """How often a learner's decisions were right by their stated probability and label, and what is proved."""
        return plain(self._client.reliability(learner))


def instance_of(text: str | None, features: dict[str, float] | None, row: dict[str, Any] | None) -> JSON:
    """What was given of an instance."""
    instance = {"text": text, "features": features, "row": row}
    parts = {name: value for name, value in instance.items() if value is not None}
    if not parts:
        raise BadRequest("give a text, features or a row")
    return parts


def plain(reply: object) -> JSON:
    """A reply as JSON, without what it leaves out."""
    assert is_dataclass(reply)
    assert not isinstance(reply, type)
    return {name: value for name, value in asdict(reply).items() if value is not None}
