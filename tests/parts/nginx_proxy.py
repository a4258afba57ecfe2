"""nginx with the configuration that we ship, but for addresses and paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ports import free_port

SHIPPED = Path(__file__).parents[2] / "docker" / "nginx.conf"
RESOLVER = "resolver 127.0.0.11 valid=2s ipv6=off;"
# Where the shipped file says which replicas there are: the map, the upstream and the ports that stand for them.
MAP, SERVERS, LISTEN = (
    r"( +810\d replica-.:8000;\n)+",
    r"( +server 127\S+:810\d [^\n]*\n)+",
    r"( +listen 127\S+:810\d;\n)+",
)


def replaced(text: str, replicas: Sequence[str], ports: Sequence[int], resolver: str) -> str:
    """The shipped configuration for other replicas."""
    placed = list(zip(ports, replicas, strict=True))
    parts = {
        MAP: "".join(f"        {port} {replica};\n" for port, replica in placed),
        SERVERS: "".join(f"        server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;\n" for port in ports),
        LISTEN: "".join(f"        listen 127.0.0.1:{port};\n" for port in ports),
        re.escape(RESOLVER): resolver,
    }
    for pattern, part in parts.items():
        text, count = re.subn(pattern, part, text)
        assert count == 1, pattern
    return text


def configure(
    folder: Path,
    listen: str,
    replicas: Sequence[str],
    dns: str | None = None,
    ports: Sequence[int] | None = None,
) -> list[str]:
    """Write the configuration into a folder; the command that serves the replicas at an address.

    Replicas are looked up in the server `dns`, if they are names. Each keeps its own one of the `ports`.
    """
    folder.chmod(0o755)  # nginx' workers are not root
    ports = ports or [free_port() for _ in replicas]
    resolver = f"resolver {dns} valid=2s ipv6=off;" if dns else ""
    text = SHIPPED.read_text().replace("/tmp/", f"{folder}/").replace("8080", listen)
    (folder / "nginx.conf").write_text(replaced(text, replicas, ports, resolver))
    return ["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log", "-g", "daemon off;"]
