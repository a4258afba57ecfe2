"""Wait for what must happen, however busy the machine is: only what hangs meets the limit."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

LIMIT = 600.0  # seconds


def until(
    condition: Callable[[], Any],
    message: object = "it did not happen",
    *,
    not_yet: type[Exception] | tuple[type[Exception], ...] = (),
    pause: float = 0.02,
) -> Any:
    """The first true value of `condition()`. While it raises `not_yet`, it is not true."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            if value := condition():
                return value
        except not_yet:
            pass
        assert time.monotonic() < deadline, message
        time.sleep(pause)


async def eventually(
    condition: Callable[[], Any],
    message: object = "it did not happen",
    *,
    not_yet: type[Exception] | tuple[type[Exception], ...] = (),
    pause: float = 0.005,
) -> Any:
    """`until` for what runs in the same event loop; the condition may be a coroutine function."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
        except not_yet:
            pass
        assert time.monotonic() < deadline, message
        await asyncio.sleep(pause)
