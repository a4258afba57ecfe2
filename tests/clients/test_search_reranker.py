"""The re-ranker against the real service in process, and against services that are slow, down or wrong."""

import threading
import time
from zlib import crc32

import httpx
import pytest

from feedrank.clients import Client, Conflict, NotFound, Retry
from feedrank.clients.search import Evidence, Features, Reranker, Result, Shown, spec, ubi
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
    client.create(name, spec())

    def build(**options):
        made.append(Reranker(client, name, **{"features": FEATURES, "deadline": 30, **options}))
        return made[-1]

    yield build
    for one in made:
        one.close()
    client.delete(name)


def ids(page):
    return [result.id for result in page.results]


def test_without_feedback_the_engines_order_stays(make):
    reranker = make(evidence=Evidence(start=0.999999))
    page = reranker.rerank("shoes", RESULTS)
    assert ids(page) == ENGINE
    assert (page.by, page.version) == ("engine", 0)
    assert page.prediction_id
    assert page.results[0] is RESULTS[0]
    assert reranker.counts.engine == 1


def test_clicks_change_the_order(make):
    reranker = make(evidence=Evidence(start=0.999999))
    for _ in range(5):
        assert reranker.clicked(reranker.rerank("shoes", RESULTS), ["right"])
    page = reranker.rerank("shoes", RESULTS)
    assert ids(page)[0] == "right"
    assert (page.by, page.version) == ("learned", 5)
    assert reranker.counts.learned == 5  # the first page had nothing to go by


def test_judgements_change_the_order_and_are_no_evidence_of_clicks(make):
    reranker = make()
    before = reranker.evidence.share
    for _ in range(3):
        assert reranker.judged(reranker.rerank("shoes", RESULTS), {"right": 2, "plain": 1})
    assert list(reranker.rerank("shoes", RESULTS).page.learned) == ["right", "plain", "loud"]
    assert reranker.evidence.share == before


def test_the_learned_order_waits_for_evidence_then_takes_over(make):
    reranker = make()
    by = []
    for number in range(120):
        page = reranker.rerank(f"shoes {number}", RESULTS)
        by.append(page.by)
        reranker.clicked(page, ["right"])
    assert by[:5] == ["engine"] * 5
    assert by[-5:] == ["learned"] * 5
    assert reranker.evidence.pages == 120
    assert reranker.evidence.share > 0.99


def test_clicks_are_read_by_the_page_that_was_shown(make, client):
    reranker = make(evidence=Evidence(start=1e-9))
    reranker.judged(reranker.rerank("shoes", RESULTS), {"right": 1})
    page = reranker.rerank("shoes", RESULTS)
    assert page.page.learned[0] == "right"
    assert ids(page) == ENGINE
    reranker.clicked(page, ["plain"])
    *_, event = client.events(reranker.name).events
    assert event["served"] == {"ranking": ENGINE}


def test_a_click_counts_once_and_other_clicks_on_the_same_page_are_refused(make):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS)
    assert reranker.clicked(page, ["right"])
    assert not reranker.clicked(page, ["right", "right"])
    assert reranker.evidence.pages == 1
    with pytest.raises(Conflict):
        reranker.clicked(page, ["plain"])


def test_pages_travel_as_json_and_as_bare_ids(make, client):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS)
    assert make().clicked(Shown(**page.page.to_json()), ["right"])
    assert reranker.clicked(reranker.rerank("shoes", RESULTS).prediction_id, ["plain"])
    assert client.learner(reranker.name).version == 2


def test_ubi_events_teach(make, client):
    reranker = make()
    page = reranker.rerank("shoes", RESULTS)
    events = [ubi.click_event(page, "right", client_id="me")]
    for visit in ubi.visits(events, [ubi.query_record(page, "shoes", client_id="me")]).values():
        assert reranker.clicked(visit.page, visit.clicked)
    (event,) = client.events(reranker.name).events
    assert event["truth"] == {"clicks": ["right"]}
    assert event["served"] == {"ranking": ENGINE}


def test_nothing_found_is_nothing_to_ask(make):
    reranker = make()
    page = reranker.rerank("shoes", [])
    assert (page.results, page.prediction_id) == ([], None)
    assert not reranker.clicked(page, [])


@pytest.mark.parametrize("method", ["split", "interleave"])
def test_an_experiment_decides_who_sees_what(client, method):
    for name in ("engine", "learned"):
        client.create(f"{method}-{name}", spec())
    plan = {
        "arms": [f"{method}-engine", f"{method}-learned"],
        "method": method,
        "learn": [f"{method}-learned"],
    }
    client.create_experiment(method, {**plan, "measure": "clicks"})
    with Reranker(client, method, experiment=True, features=FEATURES, deadline=30) as reranker:
        for number in range(12):
            page = reranker.rerank("shoes", RESULTS, unit=f"user {number}")
            assert reranker.clicked(page, ["right"])
        learned = [reranker.rerank("shoes", RESULTS, unit=f"user {number}") for number in range(12, 32)]
    assert client.learner(f"{method}-engine").version == 0
    assert client.learner(f"{method}-learned").version == 12
    orders = {tuple(ids(page)) for page in learned}
    assert tuple(ENGINE) in orders or method == "interleave"
    assert any(order[0] == "right" for order in orders)
    assert any(order[0] == "loud" for order in orders)
    assert {page.by for page in learned} == ({"interleaved"} if method == "interleave" else set(plan["arms"]))


# Services that are slow, down or wrong


def test_a_slow_service_costs_the_deadline_and_no_more():
    hang = threading.Event()

    def slow(_):
        hang.wait(10)
        return httpx.Response(503)

    with Client("http://slow", transport=httpx.MockTransport(slow), retry=Retry(attempts=1)) as client:
        reranker = Reranker(client, "s", deadline=0.5, workers=2)
        took = []
        for _ in range(4):
            begun = time.perf_counter()
            page = reranker.rerank("shoes", RESULTS)
            took.append(time.perf_counter() - begun)
            assert ids(page) == ENGINE
            assert (page.by, page.prediction_id) == ("fallback", None)
        assert all(0.5 <= one < 5 for one in took[:2])
        assert all(one < 0.5 for one in took[2:])  # all workers hang: nobody waits for them
        assert (reranker.counts.late, reranker.counts.pages) == (4, 4)
        assert not reranker.clicked(page, ["right"])
        assert reranker.counts.unlearned == 1
        hang.set()
        reranker.close()


def test_a_service_that_comes_back_is_used_again(make, client):
    reranker = make()
    name, reranker.name = reranker.name, "nobody"
    assert reranker.rerank("shoes", RESULTS).by == "fallback"
    assert reranker.counts.failed == 1
    with pytest.raises(NotFound):
        reranker.judged("no-such-prediction", {"right": 1})
    reranker.name = name
    assert reranker.rerank("shoes", RESULTS).by == "engine"


def test_a_service_that_is_down_is_counted():
    with (
        Client("http://127.0.0.1:1", retry=Retry(attempts=1)) as client,
        Reranker(client, "s", deadline=5) as reranker,
    ):
        assert ids(reranker.rerank("shoes", RESULTS)) == ENGINE
        assert reranker.counts.failed == 1


def test_a_wrong_reply_is_counted():
    garbled = httpx.MockTransport(lambda _: httpx.Response(200, content=b"<html>"))
    with Client("http://x", transport=garbled) as client, Reranker(client, "s", deadline=5) as reranker:
        assert ids(reranker.rerank("shoes", RESULTS)) == ENGINE
        assert reranker.counts.failed == 1


def test_twin_ids_cost_the_new_order_not_the_page(make):
    reranker = make()
    assert ids(reranker.rerank("shoes", [RESULTS[0], RESULTS[0]])) == ["loud", "loud"]
    assert reranker.counts.failed == 1


def test_threads_share_a_reranker(make):
    reranker = make()
    pages = []

    def visit():
        for _ in range(5):
            page = reranker.rerank("shoes", RESULTS)
            reranker.clicked(page, ["right"])
            pages.append(page)

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pages) == reranker.counts.pages == reranker.evidence.pages == 20


def test_the_spec_of_clicks():
    assert spec()["examination"][0] == 1
    assert "examination" not in spec(None)
    assert spec(algorithm="slam")["algorithm"] == "slam"
    assert "normalize" not in spec(algorithm="slam")
