"""Which of our files and functions one call crosses: `python scripts/trace_request.py`; with `--calls NAME` every function.

A server is started in this process on a fresh SQLite file; after a few rounds, so that everything is imported, loaded and
prepared, each call is sent over a socket under a tracer that notes every Python function of ours that runs, in any thread.
A coroutine that is resumed counts once more. The lines of a stream are counted by what each of them adds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import uvicorn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from feedrank.service.contract.settings import Settings  # noqa: E402
from feedrank.service.http import app as apps  # noqa: E402
from feedrank.service.http.server import listen, protocol  # noqa: E402
from feedrank.service.runtime import memory  # noqa: E402

SPEC = {"task": "multiclass", "algorithm": "predtron"}
FEATURES = {"flight": 1, "boarding": 2}
LABELS = ("travel", "inbox")
ROUNDS = (
    36  # of each call the shortest counts: which coroutine is resumed how often is a matter of the moment
)
FEW, MANY = 64, 192  # lines of a stream, whose difference is what lines take
Json = dict[str, Any]


class Tracer:
    """Files of this repository in the order in which they are first entered, and how often each function is."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.calls: Counter[str] = Counter()
        self._known: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = relative(code.co_filename)
        if (name := self._known[code]) is not None:
            self.files.setdefault(name)
            self.calls[f"{name} {code.co_qualname}"] += 1

    def __enter__(self) -> Tracer:
        threading.setprofile_all_threads(self) if sys.version_info >= (3, 12) else threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def relative(file: str) -> str | None:
    """The path under the repository, without what is not ours."""
    path = Path(file).resolve()
    if not path.is_relative_to(ROOT) or path == Path(__file__).resolve():
        return None
    name = path.relative_to(ROOT)
    return str(name) if name.parts[0] in ("learners", "service", "clients", "feedrank") else None


class Connection:
    """A client's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, method: str, path: str, body: bytes) -> bytes:
        """The body of a reply."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        reply = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        lengths = [int(line.split(b":")[1]) for line in reply if line.startswith(b"content-length:")]
        if lengths:
            data = await self._reader.readexactly(lengths[0])
        else:
            data = b""
            while size := int(await self._reader.readline(), 16):
                data += (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readexactly(2)
        if not reply[0].split()[1].startswith(b"2"):
            raise SystemExit(f"{path} was answered {data.decode()}")
        return data

    async def post(self, path: str, body: Json) -> Json:
        reply: Json = json.loads(await self.send("POST", path, json.dumps(body).encode()))
        return reply

    def close(self) -> None:
        self._writer.close()


async def trace(folder: str) -> dict[str, Tracer]:
    """What one call of each kind crosses."""
    # Work that looks long by the clock takes another way. On a busy machine that says nothing about the work.
    memory.SHORT = memory.TURN = apps.FIRST_REPLIES = 3600.0
    settings = Settings(store=f"sqlite:{folder}/trace.db")
    app = apps.create_app(settings)
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(app, http=protocol(settings, app), lifespan="off", log_config=None)
        async with app.router.lifespan_context(app):
            server = uvicorn.Server(config)
            server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            connection = Connection(*await asyncio.open_connection(*listener.getsockname()[:2]))
            for name in ("traced", "other"):
                await connection.send("PUT", f"/v1/learners/{name}", json.dumps(SPEC).encode())
            arms = json.dumps({"arms": ["traced", "other"], "method": "split"}).encode()
            await connection.send("PUT", "/v1/experiments/traced", arms)
            ways = await one_of_each(connection, 0)
            await app.state.host.sweeper.close()  # what happens by itself is no part of a call
            for number in range(1, ROUNDS):
                for name, way in (await one_of_each(connection, number)).items():
                    ways[name] = min(ways[name], way, key=lambda way: way.calls.total())
            connection.close()
            server.should_exit = True
            await serving
    return ways


async def one_of_each(connection: Connection, number: int) -> dict[str, Tracer]:
    """One call of each kind, traced."""
    label = LABELS[number % 2]
    learner, experiment = "/v1/learners/traced", "/v1/experiments/traced"
    ways: dict[str, Tracer] = {}

    async def traced(name: str, path: str, body: Json) -> Json:
        with Tracer() as ways[name]:
            reply = await connection.post(path, body)
            await asyncio.sleep(0.01)  # what the reply leaves to do
        return reply

    asked = await traced("predict", f"{learner}/predict", {"features": FEATURES})
    await traced("feedback", f"{learner}/feedback", {"features": FEATURES, "label": label})
    truth = {"prediction_id": asked["prediction_id"], "label": label}
    await traced("feedback by id", f"{learner}/feedback", truth)
    for count in (FEW, MANY):
        both = [{"predict": {"features": FEATURES, "remember": False}}]
        both.append({"feedback": {"features": FEATURES, "label": label}})
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in both * (count // 2))
        with Tracer() as ways[f"stream of {count} lines"]:
            await connection.send("POST", f"{learner}/stream", lines)
            await asyncio.sleep(0.01)
    asked = await connection.post(f"{experiment}/predict", {"features": FEATURES, "unit": f"u{number}"})
    truth = {"prediction_id": asked["prediction_id"], "label": label}
    await traced("feedback to an experiment", f"{experiment}/feedback", truth)
    return ways


def summary(ways: dict[str, Tracer]) -> str:
    """The table of docs/architecture.md, and the files of a predict and a feedback."""
    lines = ["| call | files | functions called |", "|---|---|---|"]
    for name in ("predict", "feedback", "feedback by id", "feedback to an experiment"):
        lines.append(f"| {name} | {len(ways[name].files)} | {ways[name].calls.total()} |")
    few, many = (ways[f"stream of {count} lines"].calls.total() for count in (FEW, MANY))
    lines.append(f"| a line of a stream | | {round((many - few) / (MANY - FEW))} |")
    for name in ("predict", "feedback"):
        lines += ["", f"{name}:", "", *(f"    {file}" for file in ways[name].files)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--calls", metavar="NAME", help="show every function of one call, and how often it runs"
    )
    name = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        ways = asyncio.run(trace(folder))
    if name is None:
        print(summary(ways))
    else:
        for function, count in ways[name].calls.items():
            print(f"{count:5} {function}")


if __name__ == "__main__":
    main()
