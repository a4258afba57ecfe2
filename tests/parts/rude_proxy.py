"""A TCP proxy that does to connections what load balancers, container proxies and bad networks do.

    pass     everything goes through
    close    a connection is accepted and closed at once, as by a balancer whose server is away
    reset    the same with a reset
    silent   a connection is accepted and nothing ever comes
    delay    every piece of data goes through a moment later

A mode holds for new connections. Those that are open are closed by `cut`, or go on without a word by `freeze`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import Any

from ports import free_port

MODES = ("pass", "close", "reset", "silent", "delay")


class RudeProxy:
    """`with RudeProxy(port) as proxy`: connections to `proxy.port` reach `port` on this machine, as `proxy.mode` has it."""

    def __init__(self, target: int) -> None:
        self.target, self.port = target, free_port()
        self.mode, self.seconds, self.frozen = "pass", 0.05, False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> RudeProxy:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._accept, "127.0.0.1", self.port))
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close their sockets in a turn of their own

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def cut(self) -> None:
        """Close all that is open."""

        async def close() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        self._do(close())

    def rude(self, mode: str) -> None:
        """Close all that is open, and be so to what comes."""
        self.mode = mode
        self.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mode = self.mode
        if mode == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if mode in ("close", "reset"):
            writer.close()
            return
        writers = [writer]
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if mode == "silent":
                while await reader.read(65536):
                    pass
            else:
                upstream, sink = await asyncio.open_connection("127.0.0.1", self.target)
                writers.append(sink)
                self._writers.add(sink)
                await asyncio.gather(
                    self._copy(reader, sink, mode == "delay"), self._copy(upstream, writer, mode == "delay")
                )
        for one in writers:
            one.transport.abort()
            self._writers.discard(one)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, slow: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                while self.frozen:
                    await asyncio.sleep(0.05)
                if slow:
                    await asyncio.sleep(self.seconds)
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
