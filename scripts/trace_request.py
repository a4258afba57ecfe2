"""Which files of ours one predict and one feedback cross: `python scripts/trace_request.py`.

A server is started in this process on a fresh SQLite file; after a few rounds, so that everything is imported, loaded and
prepared, one call is made under a tracer that notes the file of every Python function that runs, in any thread.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from feedrank.service.contract.settings import Settings  # noqa: E402
from feedrank.service.http.app import create_app  # noqa: E402
from feedrank.service.runtime import memory  # noqa: E402

SPEC = {"task": "multiclass", "algorithm": "predtron"}
FEATURES = {"flight": 1, "boarding": 2}
LABELS = ("travel", "inbox")


class Tracer:
    """Files of this repository in the order in which they are first entered."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._known: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = relative(code.co_filename)
        if (name := self._known[code]) is not None:
            self.files.setdefault(name)

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


async def call(app: Any, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One POST straight into the ASGI app: what a server would hand to it."""
    sent: list[dict[str, Any]] = []
    arrived = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    method = "PUT" if path.count("/") == 3 else "POST"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return arrived.pop() if arrived else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    status = sent[0]["status"]
    reply: dict[str, Any] = json.loads(b"".join(part.get("body", b"") for part in sent[1:]) or b"{}")
    if status >= 400:
        raise SystemExit(f"{path} was answered {status}: {reply}")
    return reply


async def trace(folder: str) -> dict[str, list[str]]:
    """The files of one predict, and of one feedback to it."""
    # Work that looks long by the clock takes another way. On a busy machine that says nothing about the work.
    memory.SHORT = memory.TURN = 3600.0
    app = create_app(Settings(store=f"sqlite:{folder}/trace.db"))
    async with app.router.lifespan_context(app):
        learner = "/v1/learners/traced"
        await call(app, learner, SPEC)
        for number in range(8):
            reply = await call(app, f"{learner}/predict", {"features": FEATURES})
            truth = {"prediction_id": reply["prediction_id"], "label": LABELS[number % 2]}
            await call(app, f"{learner}/feedback", truth)
        await app.state.host.sweeper.close()  # what happens by itself is no part of a call
        with Tracer() as predict:
            reply = await call(app, f"{learner}/predict", {"features": FEATURES})
        with Tracer() as feedback:
            truth = {"prediction_id": reply["prediction_id"], "label": LABELS[0]}
            await call(app, f"{learner}/feedback", truth)
    return {"predict": list(predict.files), "feedback": list(feedback.files)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, files in asyncio.run(trace(folder)).items():
            print(f"{name}: {len(files)} files")
            for file in files:
                print(f"  {file}")


if __name__ == "__main__":
    main()
