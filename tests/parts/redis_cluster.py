"""Make one Redis Cluster of three servers, with the inline protocol alone."""

from __future__ import annotations

from waiting import until

SLOTS = 16384


def join(servers) -> None:
    """Let the servers meet and share the slots; return when each of them says the cluster is fine."""
    share = -(-SLOTS // len(servers))
    for i, server in enumerate(servers):
        slots = " ".join(str(slot) for slot in range(i * share, min((i + 1) * share, SLOTS)))
        assert server.ask(f"CLUSTER ADDSLOTS {slots}".encode()).startswith(b"+OK")
        assert server.ask(f"CLUSTER SET-CONFIG-EPOCH {i + 1}".encode()).startswith(b"+OK")
    for server in servers[1:]:
        assert server.ask(f"CLUSTER MEET 127.0.0.1 {servers[0].port}".encode()).startswith(b"+OK")
    until(lambda: all(settled(server, len(servers)) for server in servers), "the cluster does not settle")


def settled(server, count: int) -> bool:
    info = server.ask(b"CLUSTER INFO")
    return b"cluster_state:ok" in info and f"cluster_known_nodes:{count}".encode() in info
