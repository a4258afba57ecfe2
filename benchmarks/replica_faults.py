"""A replica behind nginx that is killed, frozen for ten seconds or cut off under load: who answers, how soon, what is lost.

Three replicas, one Redis, the shipped nginx.conf, thirty learners and eight clients that send feedback under ids, and again
until it is taken. `cut off` takes a replica's network away (in a network namespace of its own: needs root).

    python benchmarks/replica_faults.py [--seconds 10]
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import replicas as parts
from replicas import Running
from report import Report, arguments

LEARNERS = [f"learner-{i}" for i in range(30)]
CLIENTS = 8
PATIENCE = 5.0  # seconds after which a client sends it again; nginx says 504 long before
SPEC = {"task": "multiclass", "algorithm": "dual-ascent"}


def main() -> None:
    parser = arguments(__doc__, "replica_faults")
    parser.add_argument("--seconds", type=float, default=10.0, help="that a replica is frozen or cut off")
    options = parser.parse_args()
    if options.quick:
        options.seconds = 0.5
    lacking = parts.missing(proxy=True)
    if lacking:
        print(f"replica_faults: skipped, because {lacking}")
        return
    report = Report("Replicas that fail behind the proxy", options.out)
    separate = parts.missing(separate=True) is None
    faults = ("killed", "frozen", "cut off") if separate else ("killed", "frozen")
    report.table(
        [
            "fault",
            "events acknowledged",
            "longest wait for an answer, s",
            "lost",
            "counted twice",
            "caught up when back",
        ],
        [[fault, *play(fault, options.seconds, separate)] for fault in faults],
    )


def play(fault: str, seconds: float, separate: bool) -> list[object]:
    """One fault under load."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = stack.enter_context(parts.hosts(separate))
        redis = stack.enter_context(parts.redis_server(place(), folder))
        keys = folder / "keys" if separate else None
        key = parts.new_key(keys) if keys else None
        store = f"redis://{redis.address}/0"
        served = [stack.enter_context(parts.replica(place(), store, keys)) for _ in range(3)]
        proxy = stack.enter_context(parts.proxy(place(), folder, served))
        with parts.client(proxy.url, key) as client:
            for name in LEARNERS:
                client.put(f"/v1/learners/{name}", json=SPEC).raise_for_status()
        stop = threading.Event()
        taken: list[dict[str, int]] = [dict.fromkeys(LEARNERS, 0) for _ in range(CLIENTS)]
        longest = [0.0] * CLIENTS
        threads = [
            threading.Thread(target=send, args=(proxy.url, key, i, stop, taken[i], longest))
            for i in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        time.sleep(2.0)
        longest[:] = [0.0] * CLIENTS
        with broken(fault, served[0]):
            time.sleep(seconds)
        time.sleep(2.0)
        stop.set()
        for thread in threads:
            thread.join()
        sent = {name: sum(each[name] for each in taken) for name in LEARNERS}
        back = "-" if fault == "killed" else caught_up(served[0], key, sent)
        versions = {}
        with parts.client(served[1].url, key) as client:
            for name in LEARNERS:
                versions[name] = client.get(f"/v1/learners/{name}").json()["version"]
        lost = sum(max(0, sent[name] - versions[name]) for name in LEARNERS)
        twice = sum(max(0, versions[name] - sent[name]) for name in LEARNERS)
        return [sum(sent.values()), f"{max(longest):.2f}", lost, twice, back]


def send(
    url: str, key: str | None, number: int, stop: threading.Event, taken: dict[str, int], longest: list[float]
) -> None:
    """Feedback under an id, the same again until it is taken."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    count = 0
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        while not stop.is_set():
            name = LEARNERS[(number + count) % len(LEARNERS)]
            body = {
                "features": [f"w{count % 97}"],
                "label": "xy"[count % 2],
                "feedback_id": f"{number}:{count}",
            }
            begun = time.monotonic()
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if client.post(f"/v1/learners/{name}/feedback", json=body).status_code == 200:
                        break
                time.sleep(0.02)
            longest[number] = max(longest[number], time.monotonic() - begun)
            taken[name] += 1
            count += 1


@contextlib.contextmanager
def broken(fault: str, one: Running) -> Iterator[None]:
    """The replica, killed, frozen or without its network meanwhile."""
    if fault == "killed":
        for pid in parts.family(one.process.pid):
            with contextlib.suppress(ProcessLookupError):
                subprocess.run(["kill", "-9", str(pid)], check=False)
        yield
    elif fault == "frozen":
        one.process.send_signal(signal.SIGSTOP)
        yield
        one.process.send_signal(signal.SIGCONT)
    else:
        namespace = one.host.prefix[3]
        parts.ip(f"-n {namespace} link set eth0 down")
        yield
        parts.ip(f"-n {namespace} link set eth0 up")


def caught_up(one: Running, key: str | None, sent: dict[str, int]) -> str:
    """Whether the replica answers for every event when it is asked for that version."""
    with parts.client(one.url, key) as client:
        for name, version in sent.items():
            body = {"features": ["w1"], "min_version": version, "remember": False}
            reply = client.post(f"/v1/learners/{name}/predict", json=body)
            if reply.status_code != 200 or reply.json()["version"] < version:
                return "no"
    return "yes"


if __name__ == "__main__":
    main()
