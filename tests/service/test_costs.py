"""What an event costs is known before it is accepted: too much is refused, and what is long never holds the loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from feedrank.learners import build, reading, truths
from feedrank.service.contract.faults import NotFound, Unprocessable
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import questions
from feedrank.service.runtime.memory import Worker

PAIRS = {"task": "label-ranking", "algorithm": "quadratic-surrogate", "loss": "pairwise-disagreement"}
LISTS = {"task": "subset-ranking", "algorithm": "predtron"}


def ranked(count):
    return {"features": ["w"], "relevance": {f"l{i}": i % 3 for i in range(count)}}


def listed(count):
    rows = [[i / count] for i in range(count)]
    ids = [str(i) for i in range(count)]
    return {"items": {"ids": ids, "columns": ["c"], "rows": rows}}


@pytest.mark.parametrize("limit", [{"max_event_seconds": 0.5}, {"max_event_bytes": 2**20}])
def test_an_event_above_a_limit_is_refused_and_not_appended(with_host, limit):
    async def body(host):
        await host.create("r", PAIRS)
        await host.feedback("r", ranked(20))
        with pytest.raises(Unprocessable, match=next(iter(limit)).upper()):
            await host.feedback("r", ranked(1_000))
        assert (await host.info("r"))["version"] == 1
        assert (await host.feedback("r", ranked(20)))["version"] == 2

    with_host(body, **limit)


def test_every_click_counts_where_each_is_a_judgement_of_its_own():
    learner = build(LISTS | {"loss": "ap", "examination": [1, 0.5]})
    parsed = reading.instance(learner.spec, listed(1_000))
    assert reading.cost(learner, parsed, clicks=1_000).seconds > 10 * reading.cost(learner, parsed).seconds


def test_few_grades_of_the_longest_list_are_within_the_limits_and_many_are_not():
    learner = build(LISTS | {"loss": "ndcg"})
    parsed, limits = reading.instance(learner.spec, listed(10_000)), Settings()

    def fits(**of):
        cost = reading.cost(learner, parsed, **of)
        return cost.seconds <= limits.max_event_seconds and cost.bytes <= limits.max_event_bytes

    assert fits(grades=1)
    assert fits(grades=truths.grade_count({"relevance": {str(i): i % 5 for i in range(10_000)}}))
    assert not fits(grades=truths.grade_count({"relevance": {str(i): i / 7 for i in range(10_000)}}))
    assert not fits()  # nobody knows how many
    assert truths.grade_count({"clicks": ["1"]}) == truths.grade_count({"relevance": {"1": 1}}) == 2


def test_products_with_the_context_count():
    learner = build(LISTS | {"context": True})
    wide = {"ids": ["a", "b"], "columns": [f"c{i}" for i in range(300)], "rows": [[1.0] * 300] * 2}
    alone, limits = {"items": wide}, Settings()
    crossed = alone | {"features": {f"q{i}": 1.0 for i in range(30_000)}}
    assert reading.cost(learner, reading.instance(learner.spec, alone)).bytes < limits.max_event_bytes
    cost = reading.cost(learner, reading.instance(learner.spec, crossed))
    assert cost.bytes > limits.max_event_bytes
    assert cost.seconds > limits.max_event_seconds


def test_a_short_request_has_no_endless_reply(with_host, monkeypatch):
    monkeypatch.setattr(questions, "MOST_ENTRIES", 100)
    words = {"features": [f"w{i}" for i in range(20)]}

    async def body(host):
        await host.create("a", {"task": "multiclass", "algorithm": "predtron"})
        for i in range(10):
            await host.feedback("a", {**words, "label": f"l{i}"})
        for request, place in (
            ({"instances": [words] * 11}, "/instances"),
            ({**words, "explain": True}, "/explain"),
            ({"instances": [words] * 9, "explain": True, "top": 5}, "/instances"),
        ):
            with pytest.raises(Unprocessable) as refused:
                await host.predict("a", request)
            assert refused.value.errors[0]["pointer"].startswith(place)
        assert len((await host.predict("a", {"instances": [words] * 10}))["predictions"]) == 10
        assert len((await host.predict("a", {**words, "explain": True, "top": 5}))["ranking"]) == 5

    with_host(body)


@pytest.mark.parametrize(
    "spec",
    [
        {"task": "multiclass", "labels": [f"l{i}" for i in range(101)]},
        {
            "task": "multiclass",
            "algorithm": "predtron",
            "loss": "weighted",
            "weights": {f"l{i}": 1 for i in range(101)},
        },
        {"task": "multiclass", "loss": "block-zero-one", "blocks": [[f"l{i}" for i in range(101)]]},
        LISTS | {"examination": [0.5] * 10_001},
    ],
    ids=["labels", "weights", "blocks", "examination"],
)
def test_a_spec_of_too_many_labels_or_numbers_is_refused(with_host, spec):
    async def body(host):
        with pytest.raises(Unprocessable) as refused:
            await host.create("r", spec)
        assert refused.value.errors[0]["pointer"] == f"/{list(spec)[-1]}"

    with_host(body, max_labels=100)


def test_a_prediction_above_a_limit_is_refused(with_host):
    async def body(host):
        await host.create("r", LISTS)
        with pytest.raises(Unprocessable, match="MAX_EVENT_BYTES"):
            await host.predict("r", listed(2_000))
        assert len((await host.predict("r", listed(20)))["ranking"]) == 20

    with_host(body, max_event_bytes=2**20)


def test_a_spec_whose_labels_alone_cost_too_much_is_refused(with_host):
    async def body(host):
        with pytest.raises(Unprocessable, match="MAX_EVENT_SECONDS"):
            await host.create("r", PAIRS | {"labels": [f"l{i}" for i in range(5_000)]})
        with pytest.raises(NotFound):
            await host.info("r")

    with_host(body)


def test_what_is_expected_to_be_long_leaves_the_loop_at_its_first_call():
    threads = []

    async def body():
        with ThreadPoolExecutor(1) as executor:
            worker = Worker(executor)
            await worker.run("learn", 1, lambda: threads.append(threading.get_ident()), 0.5)
            await worker.run("other", 1, lambda: threads.append(threading.get_ident()), 1e-4)

    asyncio.run(body())
    assert threads[0] != threading.get_ident()
    assert threads[1] == threading.get_ident()


def test_the_loop_turns_while_a_long_event_is_folded(with_host):
    async def body(host):
        await host.create("r", PAIRS)
        await host.create("n", {"task": "multiclass"})
        await host.feedback("n", {"features": ["w"], "label": "a"})
        long = asyncio.ensure_future(host.feedback("r", ranked(300)))
        replies = 0
        while not long.done():
            await host.predict("n", {"features": ["w"], "remember": False})
            await asyncio.sleep(0)
            replies += not long.done()
        await long
        assert replies >= 3  # on the loop there would be none between its start and its end

    with_host(body)


@pytest.mark.parametrize("spec", [PAIRS, LISTS, LISTS | {"loss": "ap"}, LISTS | {"kernel": "gaussian"}])
def test_costs_rise_with_what_an_event_brings(spec):
    learner = build(spec)
    sizes = []
    for count in (10, 1_000):
        if learner.form.items:
            sizes.append(reading.cost(learner, reading.instance(learner.spec, listed(count))))
        else:
            sizes.append(reading.cost_of_size(learner, 0, 1, [f"l{i}" for i in range(count)]))
    assert sizes[1].seconds > 5 * sizes[0].seconds
    assert sizes[1].bytes > 50 * sizes[0].bytes
