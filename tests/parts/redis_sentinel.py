"""A primary, a replica and a Sentinel that watches them, all real; the primary can be killed again and again."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ports import free_port
from redis_server import RedisServer, binary
from waiting import until

SERVICE = "feedrank"


class Replicated:
    """`url` leads to whichever server is the primary; `redis+sentinel`."""

    def __init__(self, folder: Path) -> None:
        self.servers = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            self.servers.append(RedisServer(folder / name, "--repl-diskless-sync-delay", "0"))
        self.primary, self.replica = self.servers
        self.follow(self.replica, self.primary)
        self.folder, self.port = folder, free_port()
        self.watch()

    def watch(self) -> None:
        """Start a Sentinel on the servers as they are now; it looks at the replica at once."""
        settings = self.folder / "sentinel.conf"
        settings.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 1500\n"
        )
        self.sentinel = subprocess.Popen(
            [binary(), str(settings), "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self.sees_replica)

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/{SERVICE}/0"

    def follow(self, server: RedisServer, primary: RedisServer) -> None:
        """Let a server be a replica, and wait until it is in step."""
        assert server.ask(f"REPLICAOF 127.0.0.1 {primary.port}".encode()).startswith(b"+OK")
        until(lambda: b"master_link_status:up" in replication(server))

    def ask(self, line: str) -> bytes:
        return RedisServer.ask(self, line.encode())  # type: ignore[arg-type]

    def sees_replica(self) -> bool:
        """Whether Sentinel would choose the replica, should the primary fail now."""
        try:
            reply = self.ask(f"SENTINEL REPLICAS {SERVICE}")
        except OSError:
            return False
        words = reply.decode().split("\r\n")[3::2]
        said = dict(zip(words[::2], words[1::2], strict=False))
        return (
            said.get("port") == str(self.replica.port)
            and said.get("flags") == "slave"
            and said.get("master-link-status") == "ok"
        )

    def kill_primary(self, lag: float = 0.0) -> None:
        """kill -9 of the primary; returns when Sentinel has made the replica the primary.

        For the last `lag` seconds, less than Sentinel notices, the replica receives nothing.
        """
        if lag:
            self.replica.freeze()
            self.primary.ask(b"CLIENT KILL TYPE replica")  # what is in its socket it would still read
            time.sleep(lag)
        self.primary.kill()
        self.replica.thaw()
        port = f"\r\n{self.replica.port}\r\n".encode()
        until(lambda: port in self.ask(f"SENTINEL GET-MASTER-ADDR-BY-NAME {SERVICE}"))
        until(lambda: b"role:master" in replication(self.replica))
        self.primary, self.replica = self.replica, self.primary

    def revive(self) -> None:
        """Start the one that was killed as a replica of the new primary."""
        self.sentinel.kill()  # it would look at the replica only ten seconds later
        self.sentinel.wait()
        self.replica.start()
        self.follow(self.replica, self.primary)
        self.watch()

    def close(self) -> None:
        self.sentinel.kill()
        self.sentinel.wait()
        for server in self.servers:
            server.thaw()
            server.kill()


def replication(server: RedisServer) -> bytes:
    """What a server says of its role; nothing at the moment when the role changes and connections are closed."""
    try:
        return server.ask(b"INFO replication")
    except OSError:
        return b""
