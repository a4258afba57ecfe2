"""The re-ranker against the real service in process, and against services that are slow, down or wrong."""

import logging
import threading
from zlib import crc32

import httpx
import pytest

from feedrank.clients import Client, Conflict, Retry
from feedrank.clients.search import Features, Reranker, Result, Shown, prepare, spec
from feedrank.embedded import Embedded

RESULTS = [
    Result("loud", 3.0, {"title": "shoes shoes shoes", "good": 0}),
    Result("plain", 2.0, {"title": "red shoes", "good": 0.2}),
    Result("right", 1.0, {"title": "shoes", "good": 1}),
]
ENGINE = ["loud", "plain", "right"]
FEATURES = Features(text=["title"], extra=["good"])


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    transport = Embedded(f"sqlite:{tmp_path_factory.mktemp('search') / 'search.db'}")
    with Client("http://embedded", transport=transport) as client:
        yield client


@pytest.fixture
def make(client, request):
    """`make(**options)`: a re-ranker with a learner of its own."""
    made = []
    name = f"s{crc32(request.node.name.encode())}"  # coins belong to names: the same on every run
    prepare(client, name)

    def build(**options):
        made.append(Reranker(client, name, **{"features": FEATURES, "deadline": 300, **options}))
        return made[-1]

    yield build
    for one in made:
        one.close()
    client.delete_experiment(name)
    client.delete(name)


def ids(page):
    return [result.id for result in page.results]


def visit(reranker, number, clicked="right"):
    page = reranker.rerank(f"shoes {number}", RESULTS, unit=f"visitor {number}")
    assert reranker.closed(page, [clicked])
    assert reranker.flush(300)
    return page


def test_without_feedback_the_engines_order_stays(make):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS)
    assert ids(page) == ENGINE
    assert page.by == "engine"
    assert page.prediction_id
    assert page.results[0] is RESULTS[0]
    assert reranker.counts.engine == 1
    assert reranker.last_error is None


def test_evidence_grows_on_the_server_and_hands_over_for_every_client(make):
    first, second = make(), make()
    by = [visit(first if number % 2 else second, number).by for number in range(250)]
    assert by[:20] == ["engine"] * 20
    assert "mixed" in by
    status = first.status().handover
    assert status == second.status().handover
    assert status["proved"]
    assert status["share"] == 0.9
    assert status["examination"]["clicks"] > 0
    assert by[-30:].count("learned") > 20
    page = make().rerank("shoes", RESULTS, unit="a new process")
    assert ids(page)[0] == "right"


def test_what_is_not_on_the_page_can_neither_be_clicked_nor_skipped(make, client):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS, page=2)
    assert ids(page) == ["loud", "plain"]
    reranker.closed(page, ["right"])
    assert reranker.flush(300)
    assert reranker.outbox.counts.refused == 1
    assert "right" in reranker.last_error
    reranker.closed(page, ["plain"])
    assert reranker.flush(300)
    (event,) = client.events(reranker.name).events
    assert event["instance"]["items"]["ids"] == ["loud", "plain"]
    curve = reranker.status().handover["examination"]["curve"]
    assert event["truth"] == {"relevance": {"plain": pytest.approx(1 / curve[1], rel=1e-3)}}


def test_the_next_page_goes_on_where_the_last_one_ended(make):
    reranker = make()
    many = [Result(f"d{i}", 30.0 - i, {"good": i % 3}) for i in range(25)]
    for number in range(60):
        page = reranker.rerank(f"q{number}", many, unit=f"u{number}")
        reranker.closed(page, [page.page.shown[2]])
    assert reranker.flush(300)
    mixed = 0
    for number in range(30):
        pages = [reranker.rerank("again", many, offset=o, unit=f"v{number}") for o in (0, 10, 20, 30)]
        assert [len(one.results) for one in pages] == [10, 10, 5, 0]
        assert sorted(id for one in pages for id in ids(one)) == sorted(one.id for one in many)
        mixed += pages[0].by == "mixed"
    assert mixed


def test_clicks_come_one_by_one_and_count_once_together(client):
    prepare(client, "windows", wait=0.2)
    with Reranker(client, "windows", features=FEATURES, deadline=300) as reranker:
        page = reranker.rerank("shoes", RESULTS)
        for id in ("right", "plain", "right"):
            assert reranker.clicked(Shown(**page.page.to_json()), [id])
        assert reranker.flush(300)
        assert reranker.outbox.counts.sent + reranker.outbox.counts.refused == 3
        done = threading.Event()
        for _ in range(600):
            if client.learner("windows").version:
                break
            done.wait(0.1)
        (event,) = client.events("windows").events
        assert set(event["truth"]["relevance"]) <= {"right", "plain"}


def test_a_query_id_of_ones_own_names_the_page(make, client):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS, prediction_id="ubi-query-1")
    assert page.prediction_id == "ubi-query-1"
    assert reranker.closed("ubi-query-1", ["right"])
    assert reranker.closed("ubi-query-1", ["right"])
    assert reranker.flush(300)
    assert client.learner(reranker.name).version == 1


def test_judgements_teach_too(make, client):
    reranker = make()
    reranker.judged(reranker.rerank("shoes", RESULTS), {"right": 2, "plain": 1})
    assert reranker.flush(300)
    (event,) = client.events(reranker.name).events
    assert event["truth"] == {"relevance": {"right": 2, "plain": 1}}


def test_behaviour_is_among_the_features_that_are_learned(make, client):
    reranker = make()
    for _ in range(2):
        page = reranker.rerank("shoes", RESULTS, unit="me")
        reranker.closed(page, ["right"])
        assert reranker.flush(300)
    first, second = (event["instance"]["items"] for event in client.events(reranker.name).events)
    names = ["behaviour:item", "behaviour:query", "behaviour:unit"]
    assert first["columns"][-3:] == second["columns"][-3:] == names
    before, after = (dict(zip(one["ids"], one["rows"], strict=True)) for one in (first, second))
    assert before["right"][-3:] == before["loud"][-3:]
    assert after["right"][-1] == 1
    assert after["loud"][-1] == 0
    assert after["right"][-2] > after["right"][-3] > after["loud"][-3] > after["loud"][-2]


def test_a_context_is_crossed_with_the_items(client):
    """Who searches on a phone wants what others do not."""
    prepare(client, "crossed", spec(context=True))
    with Reranker(client, "crossed", features=FEATURES, deadline=300) as reranker:
        for number in range(60):
            mobile = number % 2
            page = reranker.rerank(
                "shoes", RESULTS, unit=f"v{number}", context={"mobile": mobile, "desk": 1 - mobile}
            )
            assert page.by != "fallback"
            assert reranker.closed(page, ["right" if mobile else "loud"])
        assert reranker.flush(300)
        assert (reranker.outbox.counts.refused, reranker.last_error) == (0, None)
    table = FEATURES.table("shoes", RESULTS)
    first = [
        client.predict("crossed", {"items": table, "features": who}, remember=False).ranking[0].id
        for who in ({"mobile": 1, "desk": 0}, {"mobile": 0, "desk": 1})
    ]
    assert first == ["right", "loud"]


def test_nothing_found_is_nothing_to_ask(make):
    reranker = make()
    page = reranker.rerank("shoes", [])
    assert (page.results, page.prediction_id) == ([], None)
    assert not reranker.clicked(page, [])


def test_any_experiment_can_decide_who_sees_what(client):
    for name in ("old", "new"):
        client.create(name, spec())
    client.create_experiment("split", {"arms": ["old", "new"], "measure": "clicks"})
    with Reranker(client, "split", features=FEATURES, deadline=300) as reranker:
        assert {visit(reranker, number).by for number in range(12)} == {"old", "new"}
    assert client.learner("new").version == 12


# What is wrong is said


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([RESULTS[0], RESULTS[0]], "'loud' is duplicated"),
        ([RESULTS[0], Result(7, 1.0)], "7 is not"),
        ([RESULTS[0], Result("", 1.0)], "'' is not"),
    ],
)
def test_odd_ids_cost_the_new_order_not_the_page_and_are_said_once(make, caplog, results, reason):
    reranker = make()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert reranker.rerank("shoes", results).results == results
    assert reranker.counts.failed == 3
    assert reason in reranker.last_error
    assert len([one for one in caplog.records if reason in one.message]) == 1


def test_too_many_features_are_said(make):
    reranker = make(features=Features(extra=[f"n{i}" for i in range(200_000)]))
    assert reranker.rerank("shoes", RESULTS).by == "fallback"
    assert "features" in reranker.last_error


def test_a_learner_of_another_task_is_said(client):
    for name in ("spam", "other"):
        client.create(name, {"task": "multiclass"})
    client.create_experiment("labels", {"arms": ["spam", "other"]})
    with Reranker(client, "labels", features=FEATURES, deadline=300) as reranker:
        assert reranker.rerank("shoes", RESULTS).by == "fallback"
        assert reranker.last_error.startswith("422")
    with pytest.raises(Conflict):
        prepare(client, "spam")


# Services that are slow, down or wrong


def test_a_slow_service_costs_the_deadline_and_no_more():
    hang, waited = threading.Event(), []

    def slow(request):
        waited.append(request)
        hang.wait()
        return httpx.Response(503)

    with Client("http://slow", transport=httpx.MockTransport(slow), retry=Retry(attempts=1)) as client:
        reranker = Reranker(client, "s", deadline=0.1, workers=2, queue=2)
        try:
            for _ in range(4):
                page = reranker.rerank("shoes", RESULTS)
                assert ids(page) == ENGINE
                assert (page.by, page.prediction_id) == ("fallback", None)
            assert (reranker.counts.late, reranker.counts.pages) == (4, 4)
            assert len(waited) <= 2  # all workers hang: nobody waits for them
            assert not reranker.clicked(page, ["right"])
            assert reranker.counts.unlearned == 1
            assert [reranker.clicked(f"p{i}", []) for i in range(6)][-1] is False  # full, and nobody waited
            assert reranker.outbox.counts.lost >= 3
        finally:
            hang.set()
            reranker.close()


def test_lost_clicks_are_sent_again_in_the_background():
    replies = iter([httpx.ConnectError("down"), 503, 202])
    seen = []

    def flaky(request):
        seen.append(request.url.path)
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply, json={})

    with (
        Client("http://x", transport=httpx.MockTransport(flaky), retry=Retry(attempts=1)) as client,
        Reranker(client, "s", pause=0.0) as reranker,
    ):
        assert reranker.clicked("p1", ["right"])
        assert reranker.flush(300)
        assert seen == ["/v1/experiments/s/clicks"] * 3
        counts = reranker.outbox.counts
        assert (counts.sent, counts.retried, counts.lost) == (1, 2, 0)


def test_clicks_that_never_get_through_are_counted():
    down = httpx.MockTransport(lambda _: httpx.Response(503))
    with (
        Client("http://x", transport=down, retry=Retry(attempts=1)) as client,
        Reranker(client, "s", pause=0.0) as reranker,
    ):
        assert reranker.clicked("p1", ["right"])
        assert reranker.flush(300)
        assert (reranker.outbox.counts.lost, reranker.outbox.counts.retried) == (1, 4)


def test_a_service_that_comes_back_is_used_again(make):
    reranker = make()
    name, reranker.name = reranker.name, "nobody"
    assert reranker.rerank("shoes", RESULTS).by == "fallback"
    assert reranker.counts.failed == 1
    assert "nobody" in reranker.last_error
    reranker.name = name
    assert reranker.rerank("shoes", RESULTS).by == "engine"


def test_a_service_that_is_down_is_counted():
    with (
        Client("http://127.0.0.1:1", retry=Retry(attempts=1)) as client,
        Reranker(client, "s", deadline=300) as reranker,
    ):
        assert ids(reranker.rerank("shoes", RESULTS)) == ENGINE
        assert reranker.counts.failed == 1


@pytest.mark.parametrize("content", [b"<html>", b'{"ranking": [{"id": "stranger", "score": 1}]}'])
def test_a_wrong_reply_is_counted(content):
    page = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    with Client("http://x", transport=page) as client, Reranker(client, "s", deadline=300) as reranker:
        assert ids(reranker.rerank("shoes", RESULTS)) == ENGINE
        assert reranker.counts.failed == 1


def test_threads_share_a_reranker(make, client):
    reranker = make()

    def visits(thread):
        for number in range(5):
            page = reranker.rerank("shoes", RESULTS, unit=f"{thread} {number}")
            reranker.closed(page, ["right"])

    threads = [threading.Thread(target=visits, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reranker.flush(300)
    assert reranker.counts.pages == 20
    assert client.learner(reranker.name).version == 20
