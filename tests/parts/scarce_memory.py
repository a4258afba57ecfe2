"""A learner that runs out of memory at every place of a round in turn."""

import sys

import pytest

from feedrank.learners import dump


def learn_without_memory(learner, instance, truth):
    """Let each allocation of a round fail, the first, the second and so on, until the round gets through.

    After each failure the learner must be what it was before. Returns how many rounds failed.
    """
    lacking = pytest.importorskip("_testcapi", reason="this Python cannot be made to run out of memory")
    before, failed = dump(learner), 0
    tracer = sys.gettrace()
    for at in range(300):
        sys.settrace(None)  # coverage asks for memory of its own, between any two lines
        lacking.set_nomemory(at, at + 1)
        try:
            learner.learn(instance, truth)
        except MemoryError:
            failed += 1
        else:
            break
        finally:
            lacking.remove_mem_hooks()
            sys.settrace(tracer)
        assert dump(learner) == before, at
    return failed
