"""What the service is compared with: a bare FastAPI endpoint that validates and returns the same bodies; with the
argument `asgi`, an application that reads the request and sends the same bytes to everyone.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from feedrank.service.http.server import settle


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")
    features: dict[str, float]
    top: int | None = None
    explain: bool = False
    remember: bool = True


class Entry(BaseModel):
    label: str
    score: float


class Reply(BaseModel):
    prediction_id: str | None = None
    learner: str
    version: int
    ranking: list[Entry]
    label: str
    abstained: bool
    margin: float


app = FastAPI()
RANKING = [{"label": f"folder-{i}", "score": 12.345678901 - i} for i in range(101)]


@app.post("/v1/learners/{name}/predict")
async def predict(name: str, request: Request) -> Reply:
    """The same ranking for everyone."""
    return Reply(
        learner=name,
        version=1000,
        ranking=RANKING[: request.top],
        label=RANKING[0]["label"],
        abstained=False,
        margin=1.0,
    )


REPLY = json.dumps(
    {
        "learner": "mail",
        "version": 1000,
        "ranking": RANKING[:10],
        "label": RANKING[0]["label"],
        "margin": 1.0,
        "abstained": False,
    },
    separators=(",", ":"),
).encode()
HEAD = [(b"content-type", b"application/json"), (b"content-length", str(len(REPLY)).encode())]


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """The least that an ASGI application can do with a call."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": REPLY})


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        settle()  # the service's own settings of the process
        config = uvicorn.Config(
            asgi if "asgi" in sys.argv else app, log_level="warning", access_log=False, server_header=False
        )
        uvicorn.Server(config).run(sockets=[listening])
