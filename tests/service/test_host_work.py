"""Long work leaves the event loop, short work does not, and nobody reads weights while they change."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from feedrank.service.runtime.folding import stopped
from feedrank.service.runtime.memory import SHORT, Worker


@pytest.fixture
def worker():
    with ThreadPoolExecutor(2) as executor:
        yield Worker(executor)


def where(seconds):
    def work():
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return threading.current_thread() is threading.main_thread()

    return work


def test_short_work_stays_on_the_loop(worker):
    async def main():
        return [await worker.run("learn", 100, where(0.0)) for _ in range(50)]

    assert all(asyncio.run(main()))


def test_work_that_is_always_long_soon_leaves_it(worker):
    async def main():
        return [await worker.run("learn", 100, where(10 * SHORT)) for _ in range(8)]

    assert asyncio.run(main())[4:] == [False] * 4


def test_a_large_instance_leaves_it_at_once(worker):
    assert asyncio.run(worker.run("learn", 100_000, where(0.0))) is False


def test_work_of_one_learner_never_overlaps(worker):
    running = []

    def work():
        running.append(1)
        assert len(running) == 1
        time.sleep(0.001)
        running.pop()

    async def main():
        await asyncio.gather(*(worker.run("mixed", 100_000 if i % 2 else 1, work) for i in range(40)))

    asyncio.run(main())


def test_the_loop_goes_on_while_long_work_runs(worker):
    async def main():
        turned = threading.Event()
        long = asyncio.create_task(worker.run("learn", 100_000, lambda: turned.wait(600)))
        for _ in range(10):
            await asyncio.sleep(0)
        turned.set()
        return await long

    assert asyncio.run(main())  # the work saw the loop turn


def test_who_gives_up_does_not_let_others_in_before_the_thread_is_done(worker):
    log, begun, over = [], threading.Event(), threading.Event()

    def long():
        begun.set()
        over.wait()
        log.append("long")

    async def main():
        task = asyncio.create_task(worker.run("learn", 100_000, long))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        following = asyncio.create_task(worker.run("learn", 1, lambda: log.append("next")))
        for _ in range(10):
            await asyncio.sleep(0)
        over.set()
        await following
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["long", "next"]


def test_a_task_that_loses_a_cancellation_is_stopped_all_the_same():
    lost = []

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost.append(1)
                if len(lost) == 3:
                    raise

    async def main():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await stopped(task)
        assert task.cancelled()

    asyncio.run(main())
    assert len(lost) == 3
