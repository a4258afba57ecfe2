"""`feedrank mcp` through its own protocol: the official client starts the command and calls its tools."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from feedrank.clients import Client as Service
from feedrank.embedded import Embedded

mcp = pytest.importorskip("mcp")
FEEDRANK = str(Path(sys.executable).parent / "feedrank")


def session(arguments, body):
    async def main():
        command = mcp.StdioServerParameters(command=FEEDRANK, args=["mcp", *arguments])
        async with mcp.Client(command) as client:
            return await body(client)

    return asyncio.run(main())


async def said(client, name, **arguments):
    """(the JSON of a tool's reply, or its text if it failed; whether it failed)."""
    result = await client.call_tool(name, arguments)
    text = result.content[0].text
    return (text if result.is_error else json.loads(text)), bool(result.is_error)


def test_an_assistant_predicts_answers_and_looks(tmp_path):
    store = f"sqlite:{tmp_path / 'm.db'}"
    with Service("http://local", transport=Embedded(store)) as service:
        service.create("tickets", {"task": "multiclass"})

    async def body(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["learners", "predict", "explain", "feedback", "queue", "reliability"]
        listed, _ = await said(client, "learners")
        assert [one["name"] for one in listed["learners"]] == ["tickets"]
        for text, label in (("refund invoice", "billing"), ("password reset", "login")) * 3:
            served, _ = await said(client, "predict", learner="tickets", text=text, min_precision=0.9)
            assert "label" not in served
            outcome, _ = await said(
                client, "feedback", learner="tickets", prediction_id=served["prediction_id"], label=label
            )
        assert outcome["version"] == 6
        shown, _ = await said(client, "explain", learner="tickets", text="refund")
        assert shown["label"] == "billing"
        assert shown["ranking"][0]["contributions"]
        await said(client, "predict", learner="tickets", features={"refund": 1.0})
        waiting, _ = await said(client, "queue", learner="tickets")
        assert len(waiting["queue"]) == 1
        sure, _ = await said(client, "reliability", learner="tickets")
        assert sure["events"] == 6
        for name, arguments, why in (
            ("predict", {"learner": "none", "text": "x"}, "no learner"),
            ("predict", {"learner": "tickets"}, "give a text"),
            ("feedback", {"learner": "tickets", "text": "x", "labels": ["a"]}, "labels"),
        ):
            text, failed = await said(client, name, **arguments)
            assert failed
            assert why in text

    session(["--store", store], body)
