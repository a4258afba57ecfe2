"""Events for a learner behind a host, what the learner must be after them, and how the host saves it or ends."""

from feedrank import learners

SPEC = {"task": "multiclass", "algorithm": "predtron"}
LABELS = ["a", "b", "c"]


def event(i, **more):
    return {"features": {f"w{i % 7}": 1.0, f"v{i % 5}": 0.5, "x": 2.0}, "label": LABELS[i % 3], **more}


async def teach(host, name, count, start=0):
    return [await host.feedback(name, event(i, feedback_id=f"f{i}")) for i in range(start, start + count)]


def folded(numbers, version):
    """What a learner must be that learned from these events alone: its bytes at `version`."""
    learner = learners.build(SPEC)
    for i in numbers:
        learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
    learner.version = version
    return learners.dump(learner)


async def settle(host):
    """Wait for snapshots that are on their way."""
    for loaded in list(host._memory._learners.values()):
        if loaded.saver._saving is not None:
            await loaded.saver.settle()


async def crash(host):
    """End as a kill does: nothing is saved that was not."""
    host._memory._learners.clear()


async def both_equal(one, two, name="a"):
    """Two hosts have the same bytes at the newest version that either knows, which is returned."""
    versions = (await one.info(name))["version"], (await two.info(name))["version"]
    newest = max(versions)
    for host in (one, two):
        await host.predict(name, {"features": ["x"], "remember": False, "min_version": newest})
    assert await one.export(name) == await two.export(name)
    return newest
