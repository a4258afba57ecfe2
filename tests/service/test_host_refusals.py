"""What the Host refuses on both stores: unknown predictions, wrong requests, what is beyond a limit."""

import pytest
from host_events import SPEC

from feedrank.service.contract import faults as errors


def test_unknown_expired_and_forged_predictions_are_told_apart(with_host, later):
    async def body(host):
        await host.create("a", SPEC)
        await host.create("b", SPEC)
        reply = (await host.predict("a", {"features": ["x"]}))["prediction_id"]
        forged = reply[:-1] + ("0" if reply[-1] != "0" else "1")
        for name, id in (("a", forged), ("a", "x"), ("a", "ü" * 32), ("b", reply)):
            with pytest.raises(errors.NotFound):
                await host.feedback(name, {"prediction_id": id, "label": "a"})
        later(101.0)
        with pytest.raises(errors.Gone):
            await host.feedback("a", {"prediction_id": reply, "label": "a"})
        assert (await host.info("a"))["version"] == 0

    with_host(body, prediction_ttl=100.0)


@pytest.mark.parametrize(
    ("call", "request_", "pointer"),
    [
        ("predict", {"features": ["x"], "strange": 1}, "/strange"),
        ("predict", {"features": ["x"], "remember": 1}, "/remember"),
        ("predict", {"features": ["x"], "top": 0}, "/top"),
        ("predict", {"features": ["x"], "min_version": -1}, "/min_version"),
        ("predict", {"items": []}, "/items"),
        ("predict", {"instances": []}, "/instances"),
        ("predict", {"instances": [{"features": []}], "unit": 1}, "/unit"),
        ("predict", {"instances": [{"features": []}], "top": 0}, "/instances/0/top"),
        ("predict", {"features": {"x": float("nan")}}, "/features/x"),
        ("predict", [1], ""),
        ("feedback", {"features": ["x"], "label": 1}, "/label"),
        ("feedback", {"label": "a"}, "/features"),
        ("feedback", {"prediction_id": "p", "features": ["x"], "label": "a"}, "/features"),
        ("feedback", {"features": ["x"], "label": "a", "feedback_id": ""}, "/feedback_id"),
        ("feedback", {"features": ["x"], "label": "a", "feedback_id": 7}, "/feedback_id"),
        ("feedback", {"events": {}}, "/events"),
        ("retract", {"feedback_id": "a", "prediction_id": "b"}, ""),
        ("retract", {}, ""),
    ],
)
def test_wrong_requests_are_refused_with_the_place(with_host, call, request_, pointer):
    async def body(host):
        await host.create("a", SPEC)
        with pytest.raises(errors.Unprocessable) as caught:
            await getattr(host, call)("a", request_)
        assert caught.value.errors[0]["pointer"] == pointer
        assert (await host.info("a"))["version"] == 0

    with_host(body)


def test_limits_are_refusals(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await host.create("list", {"task": "subset-ranking"})
        item = {"id": "i", "features": [1.0]}
        refused = [
            ("a", {"features": ["a", "b", "c", "d"]}),
            ("list", {"items": [{**item, "id": str(i)} for i in range(4)]}),
            ("list", {"items": [{"id": "i", "features": [1.0] * 4}]}),
            ("a", {"instances": [{"features": ["a"]}] * 4}),
        ]
        for name, request in refused:
            with pytest.raises(errors.Unprocessable):
                await host.predict(name, request)
        for label in "abc":
            await host.feedback("a", {"features": ["x"], "label": label})
        with pytest.raises(errors.Unprocessable):
            await host.feedback("a", {"features": ["x"], "label": "d"})
        await host.feedback("a", {"features": ["x"], "label": "b"})
        with pytest.raises(errors.StorageFull):
            await host.create("c", SPEC)

    with_host(body, max_features=3, max_items=3, max_batch=3, max_labels=3, max_learners=2)


def test_a_learner_that_is_full_takes_no_more(with_host):
    async def body(host):
        await host.create("a", SPEC)

        async def fill():
            for i in range(200):
                await host.feedback("a", {"features": [f"word{i}"], "label": f"label{i}"})

        with pytest.raises(errors.StorageFull):
            await fill()
        assert 0 < (await host.info("a"))["version"] < 200
        await host.predict("a", {"features": ["word1"]})

    with_host(body, max_learner_bytes=10_000)
