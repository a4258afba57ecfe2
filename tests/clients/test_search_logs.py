"""Recorded events in the shapes of the UBI schemas 1.0 to 1.3, the loop over them, and logs as a warm start."""

import json

import pytest
from typer.testing import CliRunner

from feedrank.clients import Client
from feedrank.clients.search import Features, Reranker, elastic, prepare, ubi
from feedrank.clients.search.warm_start import Skipped, documents, lessons
from feedrank.clients.search_cli import app
from feedrank.embedded import Embedded

QUERY = {
    "application": "primary-search", "query_id": "q-1", "client_id": "browser-1", "user_query": "red shoes",
    "query_attributes": {}, "timestamp": "2025-02-18T10:00:00Z", "query_response_id": "r-1",
    "query_response_hit_ids": ["a", "b", "c", "7"],
}  # fmt: skip


def event(object, position=None, action="click", query_id="q-1", at="2025-02-18T10:00:01Z"):
    return {
        "application": "primary-search", "action_name": action, "query_id": query_id, "session_id": "s-1",
        "client_id": "browser-1", "timestamp": at, "message_type": "CONVERSION", "message": "",
        "event_attributes": {"object": object, "position": position if position is not None else {"ordinal": 1}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("object", "clicked"),
    [
        ({"object_id": "b", "object_id_field": "sku"}, ["b"]),
        ({"object_id": 7}, ["7"]),
        ([{"object_id": "a"}, {"object_id": "c"}], ["a", "c"]),
        ({"internal_id": "b"}, ["b"]),
        ({"object_id": "SKU 9", "object_id_field": "sku", "internal_id": "b"}, ["b"]),
        ({"object_id": "a", "internal_id": 99}, ["a"]),
        ({"object_id": "not a hit", "internal_id": "nor this"}, ["not a hit"]),
        ({"object_id": None}, []),
        ("b", []),
    ],
)
def test_objects_as_they_are_stored(object, clicked):
    for wrap in (
        lambda record: record,
        lambda record: {"_index": "ubi_events", "_id": "x", "_source": record},
    ):
        visit = ubi.visits([wrap(event(object))], [wrap(QUERY)])["q-1"]
        assert visit.clicked == clicked
        assert visit.engine == ["a", "b", "c", "7"]
        assert (visit.query, visit.unit) == ("red shoes", "browser-1")


@pytest.mark.parametrize(
    ("position", "place"),
    [
        ({"ordinal": 3}, 3),
        ({"ordinal": 3.0}, 3),
        ({"ordinal": "3"}, 3),
        ({"ordinal": {"value": 3}}, 3),
        (3, 3),
        ({"xy": {"x": 1, "y": 2}}, None),
        ({"ordinal": -1}, None),
        ({"ordinal": True}, None),
    ],
)
def test_places_as_they_are_stored(position, place):
    assert ubi.visits([event({"object_id": "b"}, position)])["q-1"].places.get("b") == place


def test_impressions_are_no_clicks_and_each_object_counts_once_by_time():
    events = [
        event({"object_id": "c"}, at="2025-02-18T10:00:05Z"),
        event({"object_id": "a"}, action="impression"),
        event({"object_id": "b"}, action="add_to_cart", at="2025-02-18T10:00:02Z"),
        event({"object_id": "c"}, at="2025-02-18T10:00:09Z"),
        {"action_name": "click", "timestamp": "x"},
    ]
    (visit,) = ubi.visits(events).values()
    assert visit.clicked == ["b", "c"]


def test_the_loop_over_the_plugins_records_gathers_evidence(tmp_path):
    hits = [
        {"_id": id, "_score": 9.0 - i, "_source": {"good": int(id == "c")}} for i, id in enumerate("abcde")
    ]
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'ubi.db'}")) as client:
        prepare(client, "shop")
        with Reranker(client, "shop", features=Features(extra=["good"]), deadline=300) as reranker:
            for number in range(150):
                reply = {"hits": {"hits": hits}, "ext": {"ubi": {"query_id": f"q-{number}"}}}
                page = reranker.rerank(
                    f"query {number}",
                    elastic.results(reply),
                    unit=f"u{number}",
                    prediction_id=ubi.query_id(reply),
                )
                assert page.prediction_id == f"q-{number}"
                place = page.page.shown.index("c") + 1
                stored = {"_source": event({"object_id": "c"}, {"ordinal": place}, query_id=f"q-{number}")}
                for visit in ubi.visits(ubi.hits({"hits": {"hits": [stored]}})).values():
                    assert reranker.closed(visit.query_id, visit.clicked)
                assert reranker.flush(300)
            assert reranker.outbox.counts.refused == 0
        state = client.experiment("shop").handover
        assert client.learner("shop").version == 150
        assert state["pages"] > 10
        assert state["evidence"] > 1


def test_logs_become_lessons():
    skipped = Skipped()
    fields = documents(
        ['{"_id": "a", "_source": {"title": "red"}}', '{"id": "b", "title": "blue"}', '{"title": "no id"}'],
        skipped,
    )
    plain = {
        "query": "red",
        "results": [{"id": "x", "score": 2}, {"id": "y", "fields": {"title": "red"}}],
        "clicks": ["y"],
    }
    lines = [
        json.dumps({"index": {}}),
        json.dumps({"_source": QUERY}),
        json.dumps(event({"object_id": "b"})),
        json.dumps(plain),
        json.dumps({**plain, "clicks": []}),
        json.dumps({**plain, "page": 1}),
        json.dumps({**plain, "page": "ten"}),
        json.dumps({**plain, "page": 0}),
        json.dumps({**plain, "clicks": "y"}),
        "not json",
        '{"what": 1}',
        "",
    ]
    one, two = lessons(lines, Features(text=["title"]), skipped, fields)
    assert (one["items"]["ids"], one["relevance"]) == (["x", "y"], {"y": 1})
    assert (two["items"]["ids"], two["relevance"]) == (["a", "b", "c", "7"], {"b": 1})
    assert two["feedback_id"] == "import:ubi:q-1"
    assert skipped.reasons == {
        "documents without an id": 1,
        "pages without a click on them": 2,
        "searches with an odd `page` or `clicks`": 3,
        "lines that are not JSON objects": 1,
        "lines of no known kind": 1,
    }


def test_the_command_teaches_a_log_once(tmp_path):
    log, fields, store = tmp_path / "log.jsonl", tmp_path / "docs.jsonl", f"sqlite:{tmp_path / 's.db'}"
    log.write_text("\n".join([json.dumps(QUERY), json.dumps(event({"object_id": "b"}))]))
    fields.write_text('{"id": "b", "title": "red shoes"}\n')
    command = ["import", str(log), "--documents", str(fields), "--text", "title", "--store", store]
    first, second = (CliRunner().invoke(app, command) for _ in range(2))
    assert first.stdout == "1 pages learned, 0 known before\n"
    assert second.stdout == "0 pages learned, 1 known before\n"
    with Client("http://embedded", transport=Embedded(store)) as client:
        assert client.learner("search").version == 1
