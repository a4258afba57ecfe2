"""Both clients against the real service: embedded, and over a socket with keys."""

import asyncio
import base64
import contextlib
import csv
import re
import subprocess
import sys
import threading

import httpx
import numpy as np
import pytest

from feedrank.clients import (
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NoReply,
    NotFound,
    Outcome,
    Prediction,
    Refused,
    Retry,
    TooLarge,
    Unauthorized,
    item_table,
)
from feedrank.clients.unit_rows import rows, write
from feedrank.embedded import Embedded

SPEC = {"task": "multiclass"}
FLIGHT, INVOICE = {"features": {"flight": 1, "boarding": 2}}, {"features": ["invoice"]}


class Served:
    """`feedrank serve` with keys, on a port of its own."""

    def __init__(self, folder):
        keys = folder / "keys"
        self.keys = {}
        for name, scopes in {"all": ("predict", "feedback", "admin"), "reader": ("predict",)}.items():
            arguments = [word for scope in scopes for word in ("--scope", scope)]
            command = [sys.executable, "-m", "feedrank.cli", "keys", "add", "--file", str(keys), *arguments]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            self.keys[name] = re.search(r"\S{20,}", printed).group()
        command = [
            sys.executable,
            "-m",
            "feedrank.cli",
            "serve",
            "--port",
            "0",
            "--store",
            f"sqlite:{folder / 's.db'}",
        ]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_env(FEEDRANK_KEYS_FILE=str(keys)),
        )
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+?:\d+", line).group()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def _env(**values):
    import os

    return {**os.environ, **values}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    running = Served(tmp_path_factory.mktemp("served"))
    yield running
    running.stop()


@pytest.fixture(params=["embedded", "served"])
def client(request, tmp_path, served):
    if request.param == "embedded":
        made = Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 's.db'}"))
    else:
        made = Client(served.url, key=served.keys["all"])
    with made:
        yield made
        with contextlib.suppress(NotFound):
            made.delete("mail")
        with contextlib.suppress(NotFound):
            made.delete("copy")


def test_a_learner_lives(client):
    made = client.create("mail", SPEC)
    assert (made.version, made.spec["task"], made.progress.rounds) == (0, "multiclass", 0)
    assert client.create("mail", SPEC) == made
    with pytest.raises(Conflict):
        client.create("mail", {"task": "binary", "labels": ["no", "yes"]})
    outcome = client.feedback("mail", {**FLIGHT, "label": "travel"})
    assert (outcome.version, outcome.duplicate) == (1, False)
    outcomes = client.feedback_many("mail", [{**INVOICE, "label": "money"}, {**FLIGHT, "label": "travel"}])
    assert [one.version for one in outcomes] == [2, 3]
    prediction = client.predict("mail", FLIGHT, explain=True, top=1)
    assert (prediction.label, len(prediction.ranking), prediction.ranking[0].label) == ("travel", 1, "travel")
    assert sum(prediction.ranking[0].contributions.values()) == pytest.approx(prediction.ranking[0].score)
    learned = client.feedback("mail", {"prediction_id": prediction.prediction_id, "label": "travel"})
    assert learned.served_loss == 0
    assert client.feedback("mail", {"prediction_id": prediction.prediction_id, "label": "travel"}).duplicate
    with pytest.raises(Conflict):
        client.feedback("mail", {"prediction_id": prediction.prediction_id, "label": "money"})
    many = client.predict_many("mail", [{**FLIGHT, "remember": False}, {**INVOICE, "min_version": 4}])
    assert [one.label for one in many] == ["travel", "money"]
    assert many[0].prediction_id is None
    assert client.learner("mail").progress.rounds == 4
    assert [one.name for one in client.learners().learners] == ["mail"]
    assert client.history("mail", points=2).points
    assert [(one.label, one.events) for one in client.labels("mail", limit=1).labels] == [("travel", 3)]
    loudest = client.weights("mail", "travel", limit=2)
    assert (loudest.label, len(loudest.features)) == ("travel", 2)
    assert "boarding" in {one.feature for one in loudest.features}
    log = client.events("mail", limit=3)
    assert (len(log.events), log.next) == (3, 3)
    client.live()
    client.ready()
    assert "feedrank" in client.metrics()


def test_snapshots_aliases_retractions(client):
    client.create("mail", SPEC)
    client.feedback("mail", {**FLIGHT, "label": "travel", "feedback_id": "one"})
    client.feedback("mail", {**INVOICE, "label": "money", "feedback_id": "two"})
    file = client.snapshot("mail")
    restored = client.restore("copy", file)
    assert (restored.version, restored.labels) == (2, ["travel", "money"])
    with pytest.raises(Conflict):
        client.restore("copy", file)
    with pytest.raises(Invalid):
        client.restore("broken", file[:-5])
    assert client.alias("short", "copy").learner == "copy"
    assert ("short", "copy") in {(one.name, one.learner) for one in client.aliases().aliases}
    assert client.predict("short", FLIGHT, remember=False).label == "travel"
    client.delete("short")
    retracted = client.retract("mail", feedback_id="two")
    assert (retracted.retracted, retracted.version, retracted.duplicate) == (2, 3, False)
    assert client.retract("mail", feedback_id="two").duplicate
    assert client.learner("mail").labels == ["travel"]
    client.feedback("mail", {**INVOICE, "label": "money", "feedback_id": "three"}, subject="somebody")
    asked = client.predict("mail", FLIGHT, subject="somebody")
    assert client.erase("mail", prediction_id=asked.prediction_id).erased == 1
    everywhere = client.erase_subject("somebody")
    assert (everywhere.erased, everywhere.learners["mail"].erased, everywhere.state) == (1, 1, "done")
    with pytest.raises(Gone):
        client.feedback("mail", {**INVOICE, "label": "money", "feedback_id": "three"})
    renamed = client.rename_label("mail", "travel", "journeys")
    assert (renamed.version, renamed.labels, renamed.state) == (6, ["journeys"], "done")
    assert client.learner("mail").renames == {"travel": "journeys"}
    assert client.events("mail").events[-1]["rename"] == {"travel": "journeys"}


def test_clicks_ids_of_the_caller_weights_and_tables(client):
    client.create("mail", {"task": "subset-ranking"})
    items = item_table(["d1", "d2"], ["price", "age"], [[1, 2], [3, 4]])
    first = client.predict("mail", items, prediction_id="mine")
    assert first.prediction_id == "mine"
    assert {entry.id for entry in first.ranking} == {"d1", "d2"}
    assert client.predict("mail", items, prediction_id="mine") == first
    with pytest.raises(Conflict):
        client.predict("mail", item_table(["d1"], ["price"], [[1]]), prediction_id="mine")
    assert client.clicks("mail", "mine", ["d2"]).clicks == ["d2"]
    outcome = client.feedback("mail", {**items, "relevance": {"d2": 1}}, weight=3)
    assert outcome.version == 1


def test_errors_have_their_kinds(client):
    with pytest.raises(NotFound, match="404"):
        client.learner("nobody")
    with pytest.raises(Invalid) as caught:
        client.create("mail", {"task": "multiclass", "colour": "red"})
    assert caught.value.errors[0]["pointer"] == "/colour"
    client.create("mail", SPEC)
    with pytest.raises(Invalid):
        client.feedback_many("mail", [{**FLIGHT, "label": "travel"}, {**FLIGHT}])
    with pytest.raises(NotFound):
        client.feedback("mail", {"prediction_id": "unknown", "label": "x"})
    with pytest.raises((TooLarge, Invalid)):
        client.predict("mail", {"features": {"f" * (9 << 20): 1}})
    assert client.learner("mail").version == 0


def test_streams_keep_order_and_go_on_after_a_bad_line(client):
    client.create("mail", SPEC)

    def lines():
        for number in range(300):
            yield {"feedback": {"features": {f"f{number}": 1, "x" * 1000: 1}, "label": f"l{number % 3}"}}
            yield {"predict": {"features": {f"f{number}": 1}, "remember": False}}
            if number % 100 == 0:
                yield {"feedback": {"features": {"a": 1}}}

    replies = list(client.stream("mail", lines()))
    kinds = [type(one) for one in replies[:4]]
    assert kinds == [Outcome, Prediction, Invalid, Outcome]
    assert len([one for one in replies if isinstance(one, Refused)]) == 3
    outcomes = [one.version for one in replies if isinstance(one, Outcome)]
    assert outcomes == list(range(1, 301))
    with pytest.raises(NotFound):
        list(client.stream("nobody", [{"predict": FLIGHT}]))


def test_one_client_serves_many_threads(client):
    client.create("mail", SPEC)

    def teach(number):
        for count in range(10):
            client.feedback("mail", {**FLIGHT, "label": "travel", "feedback_id": f"{number % 4}-{count}"})

    threads = [threading.Thread(target=teach, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.learner("mail").version == 40


def test_a_lost_reply_teaches_nothing_twice(served):
    class Losing(httpx.HTTPTransport):
        """Every second reply is lost after the service has done its work."""

        count = 0

        def handle_request(self, request):
            response = super().handle_request(request)
            self.count += 1
            if self.count % 2:
                response.read()
                raise httpx.ReadError("lost", request=request)
            return response

    retry = Retry(attempts=3, first=0.001)
    with Client(served.url, key=served.keys["all"], transport=Losing(), retry=retry) as client:
        client.create("lost", SPEC)
        for number in range(20):
            outcome = client.feedback("lost", {**FLIGHT, "label": "travel"})
            assert (outcome.version, outcome.duplicate) == (number + 1, True)
        assert client.learner("lost").version == 20
        client.delete("lost")


def test_experiments(client):
    for name in ("mail", "copy"):
        client.create(name, SPEC)
    plan = {"arms": ["mail", "copy"], "method": "split", "measure": "loss", "confidence": 0.9}
    name = f"trial-{id(client)}"
    assert client.create_experiment(name, plan).verdict == "undecided"
    served = client.experiment_predict(name, "user-1", FLIGHT)
    assert served.prediction_id
    assert client.experiment_feedback(name, {"prediction_id": served.prediction_id, "label": "travel"})
    now = client.experiment(name)
    assert set(now.arms) == {"mail", "copy"}
    assert client.learner("mail").version == client.learner("copy").version == 1
    assert name in {entry["name"] for entry in client.experiments()["experiments"]}
    assert client.experiment_history(name)["points"]
    assert client.pause_experiment(name).status == "paused"
    assert client.resume_experiment(name).status == "running"
    assert client.promote(name, arm="copy", alias=f"best-{id(client)}").status == "stopped"
    assert client.predict(f"best-{id(client)}", FLIGHT).learner == "copy"
    client.delete_experiment(name)
    other = client.create_experiment(name, plan)
    assert client.stop_experiment(other.name).status == "stopped"
    client.delete_experiment(name)


def test_units_of_an_experiment_as_rows(client, tmp_path):
    for name in ("one", "two"):
        client.create(name, SPEC)
    name = f"units-{id(client)}"
    per = {"window": 60, "value": "total", "cap": 9}
    plan = {
        "arms": ["one", "two"],
        "measure": "reward",
        "per": per,
        "segments": {"country": []},
        "share": 0.9,
    }
    client.create_experiment(name, plan)
    assert client.ramp(name, 1).share == 1
    assigned = client.assign(name, "user-1", segments={"country": "DE"})
    assert client.assign(name, "user-2", before=0.5).counted
    assert client.unit_event(name, "user-1", "reward", 4)["duplicate"] is False
    table = list(rows(client.units(name)))
    assert [row["unit"] for row in table] == ["user-1", "user-2"]
    assert (table[0]["arm"], table[0]["segment:country"], table[0]["value:reward"]) == (
        assigned.arm,
        "DE",
        4.0,
    )
    assert write(client.units(name), tmp_path / "units.csv") == 2
    with (tmp_path / "units.csv").open(newline="") as file:
        assert [row["segment:country"] for row in csv.DictReader(file)] == ["DE", ""]
    pytest.importorskip("pyarrow")
    assert write(client.units(name), tmp_path / "units.parquet") == 2
    assert parquet_rows(tmp_path / "units.parquet") == [{"segment:country": None, **row} for row in table]
    client.delete_experiment(name)


def parquet_rows(path):
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist()


def test_keys(served):
    with Client(served.url) as nobody, pytest.raises(Unauthorized):
        nobody.learners()
    with Client(served.url, key=served.keys["reader"]) as reader, pytest.raises(Forbidden):
        reader.create("mail", SPEC)


def test_no_service_is_no_reply():
    with Client("http://127.0.0.1:9", retry=Retry(attempts=2, first=0.001)) as client, pytest.raises(NoReply):
        client.live()


def test_asyncio_does_the_same(served):
    async def run():
        async with AsyncClient(served.url, key=served.keys["all"]) as client:
            await client.create("async", SPEC)
            events = [{**FLIGHT, "label": "travel", "feedback_id": f"a{number}"} for number in range(10)]
            outcomes = await asyncio.gather(*(client.feedback("async", event) for event in events))
            assert sorted(one.version for one in outcomes) == list(range(1, 11))

            async def lines():
                yield {"predict": FLIGHT}
                yield {"feedback": {**INVOICE, "label": "money"}}

            replies = [reply async for reply in client.stream("async", lines())]
            assert [type(one) for one in replies] == [Prediction, Outcome]
            with pytest.raises(NotFound):
                await client.learner("nobody")
            await client.delete("async")

    asyncio.run(run())


def test_embedded_refuses_what_it_cannot_open_and_keeps_what_it_learned(tmp_path):
    path = tmp_path / "s.db"
    with Client("http://embedded", transport=Embedded(f"sqlite:{path}")) as client:
        client.create("mail", SPEC)
        client.feedback("mail", {**FLIGHT, "label": "travel"})
    with Client("http://embedded", transport=Embedded(f"sqlite:{path}")) as client:
        assert client.predict("mail", FLIGHT).label == "travel"
        assert client.learner("mail").version == 1
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(Exception, match=r"s\.db"):
        Embedded(f"sqlite:{path}")
    assert threading.active_count() < 20


def test_gone_is_its_own_kind():
    transport = httpx.MockTransport(lambda request: httpx.Response(410, json={"detail": "expired"}))
    with Client(transport=transport) as client, pytest.raises(Gone, match="expired"):
        client.feedback("mail", {"prediction_id": "p", "label": "x"})


def test_arrays_are_sent_as_base64_wherever_they_stand(client):
    client.create("arrays", {"task": "multiclass"})
    vector = np.linspace(-1, 1, 8)
    for kind in (np.float64, np.float32, ">f8"):
        client.feedback("arrays", {"vector": vector.astype(kind), "label": "a"})
    client.feedback("arrays", {"vector": vector.tolist(), "label": "a"})
    list(client.stream("arrays", [{"feedback": {"vector": vector, "label": "a"}}]))
    sent = [event["instance"]["vector"] for event in client.events("arrays").events]
    assert len(sent) == 5
    assert set(sent) == {base64.b64encode(vector.astype("<f4").tobytes()).decode()}
    client.create("shop", {"task": "subset-ranking"})
    rows = {"ids": ["a", "b"], "columns": ["x", "y"], "rows": np.ones((2, 2))}
    assert {entry.id for entry in client.predict("shop", {"items": rows}).ranking} == {"a", "b"}
    for wrong in (np.array(["a"]), np.zeros(()), object()):
        with pytest.raises(BadRequest):
            client.predict("arrays", {"vector": wrong})
