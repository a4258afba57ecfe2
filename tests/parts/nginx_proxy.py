"""nginx with the configuration that we ship, but for addresses and paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "docker" / "nginx.conf"


def configure(folder: Path, listen: str, replicas: Sequence[str]) -> list[str]:
    """Write the configuration into a folder; the command that serves the replicas at an address."""
    folder.chmod(0o755)  # nginx' workers are not root
    text = SHIPPED.read_text().replace("/tmp/", f"{folder}/").replace("8080", listen)
    lines = [line for line in text.splitlines() if "server replica-" not in line]
    place = next(i for i, line in enumerate(lines) if "consistent;" in line) + 1
    lines[place:place] = [f"server {address} max_fails=1 fail_timeout=5s;" for address in replicas]
    (folder / "nginx.conf").write_text("\n".join(lines))
    return ["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log", "-g", "daemon off;"]
