"""A disk that is full for real: a tmpfs of two megabytes, filled by feedback or by somebody else's file."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from feedrank import learners
from feedrank.service.http.keyring import KeysError, add_key, read_keys

SPEC = {"task": "multiclass", "algorithm": "predtron"}
FEEDRANK = (sys.executable, "-c", "from feedrank.cli import main; main()")
# As anybody where the system lets anybody, else as root.
WAYS = (("--user", "--map-root-user", "--mount"), ("--mount",))


class Disk:
    """A tmpfs in a mount namespace of its own, which lasts as long as the shell that made it."""

    def __init__(self, folder, way):
        self.folder, self.store = folder, f"sqlite:{folder / 'a.db'}"
        self.shell = subprocess.Popen(
            ["unshare", *way, "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # For plain files only: SQLite follows links to their end, and this one ends outside.
        self.path = Path(f"/proc/{self.shell.pid}/root{folder}")
        spaces = [word for word in way if word != "--map-root-user"]
        self._enter = ["nsenter", "--preserve-credentials", "--target", str(self.shell.pid), *spaces]

    def mount(self, options):
        """What `mount` complains of, if anything."""
        with contextlib.suppress(BrokenPipeError):
            self.shell.stdin.write(f"mount -t tmpfs -o {options} tmpfs '{self.folder}'; echo $?\n")
            self.shell.stdin.flush()
        said = self.shell.stdout.readline().strip()
        return "" if said == "0" else said

    def close(self):
        self.shell.communicate()

    def feedrank(self, *arguments, errors=subprocess.PIPE):
        """A command of feedrank that sees this disk."""
        return subprocess.Popen(
            [*self._enter, *FEEDRANK, *arguments, "--store", self.store],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={"FEEDRANK_SNAPSHOT_EVERY": "10"}
            | {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        )

    def run(self, *arguments):
        """The same to its end: status, output, errors."""
        process = self.feedrank(*arguments)
        output, errors = process.communicate(timeout=600)
        return process.returncode, output, errors

    def fill(self):
        """Leave no room at all."""
        with (self.path / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))

    def empty(self):
        (self.path / "ballast").unlink()


@pytest.fixture
def disk(tmp_path):
    """A disk of two megabytes."""
    if not all(map(shutil.which, ("unshare", "nsenter"))):
        pytest.skip("no unshare and nsenter (of util-linux) to mount a small disk with")
    (tmp_path / "disk").mkdir()
    reasons = []
    for way in WAYS:
        with contextlib.closing(Disk(tmp_path / "disk", way)) as made:
            if not (complaint := made.mount("size=2m")):
                yield made
                return
        reasons.append(complaint)
    pytest.skip(f"no tmpfs can be mounted here: {'; '.join(reasons)}")


@contextlib.contextmanager
def serving(disk, log, stop):
    """A client of a service on this disk, which is ended by this signal."""
    with log.open("w") as errors:
        process = disk.feedrank("serve", "--port", "0", errors=errors)
    try:
        line = process.stdout.readline()
        assert "http://" in line, log.read_text()
        url = line.split("ready on ")[1].split()[0]
        with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
            yield client
    finally:
        process.send_signal(stop)
        process.communicate(timeout=600)
    assert process.returncode == (0 if stop == signal.SIGTERM else -stop)


def event(i):
    words = {f"word{i}-{j}": 1.0 for j in range(100)}
    return {"features": words, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


def send(client, i):
    return client.post("/v1/learners/a/feedback", json=event(i))


def teach(client, first, count):
    return [send(client, i).raise_for_status().json() for i in range(first, first + count)]


def refused(reply):
    assert reply.status_code == 503, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert int(reply.headers["retry-after"]) > 0
    assert "the disk is full" in reply.json()["detail"]


def by_feedback(disk, client, replies):
    """Until the first event is refused; where an event finds no room, neither does the check."""
    while (reply := send(client, len(replies))).status_code == 200:
        replies.append(reply.json())
    refused(reply)
    refused(client.get("/readyz"))


def by_a_file(disk, client, replies):
    disk.fill()


def cannot_start(disk):
    """One line that says why, and status 1."""
    why = (
        f"feedrank: cannot write {disk.folder / 'a.db'}: the disk is full; free some space and start again\n"
    )
    assert disk.run("serve", "--port", "0") == (1, "", why)


@pytest.mark.parametrize(
    ("fill", "more", "stop"), [(by_feedback, 4, signal.SIGKILL), (by_a_file, 4, signal.SIGTERM)]
)
def test_a_full_disk_loses_no_event_and_takes_none_twice(disk, tmp_path, fill, more, stop):
    log, replies = tmp_path / "log", []
    with serving(disk, log, stop) as client:
        client.put("/v1/learners/a", json=SPEC).raise_for_status()
        replies += teach(client, 0, 12)
        fill(disk, client, replies)
        at = len(replies)
        with ThreadPoolExecutor(8) as pool:
            for reply in pool.map(lambda i: send(client, i), range(at, at + 20)):
                refused(reply)
        refused(client.get("/readyz"))
        # A prediction takes fewer pages than an event: it may find room in the file's own. Then it is remembered.
        named = {"features": ["x"], "prediction_id": "short"}
        short = client.post("/v1/learners/a/predict", json=named)
        if fill is by_a_file or short.status_code != 200:
            refused(short)
        asked = {"features": ["x"], "remember": False}
        assert client.post("/v1/learners/a/predict", json=asked).raise_for_status().json()["version"] == at
        assert client.get("/livez").status_code == 200
        assert send(client, 3).json() == {**replies[3], "duplicate": True}

        assert disk.mount(f"remount,size={more}m") == ""
        (disk.path / "ballast").unlink(missing_ok=True)
        client.get("/readyz").raise_for_status()
        replies += teach(client, at, 12)
        assert [reply["version"] for reply in replies] == list(range(1, at + 13))
        assert not any(reply["duplicate"] for reply in replies)
        disk.fill()
    said = log.read_text()
    again = said.count("takes writes again")
    assert again in (1, 2)
    assert said.count("did not take a write: the disk is full") == again + (stop == signal.SIGTERM)
    assert ("snapshot of learner 'a' at 24 was not saved" in said) == (stop == signal.SIGTERM)

    cannot_start(disk)
    disk.empty()
    assert disk.run("verify") == (0, f"1 learners, {len(replies)} events: sound\n", "")
    with serving(disk, log, signal.SIGTERM) as client:
        if short.status_code == 200:
            assert client.post("/v1/learners/a/predict", json=named).json() == short.json()
        for i, reply in enumerate(replies):
            assert send(client, i).json() == {**reply, "duplicate": True}
        fold = learners.build(SPEC)
        for i in range(len(replies)):
            fold.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
        assert client.get("/v1/learners/a/snapshot").content == learners.dump(fold)


def test_nothing_starts_on_a_full_disk(disk, tmp_path):
    disk.fill()
    cannot_start(disk)  # with nothing there yet
    disk.empty()
    with serving(disk, tmp_path / "log", signal.SIGTERM):
        pass  # makes an empty one
    (disk.path / "a.db-lock").unlink()
    disk.fill()
    before = (disk.path / "a.db").read_bytes()
    cannot_start(disk)
    assert (disk.path / "a.db").read_bytes() == before


def test_a_key_that_does_not_fit_leaves_the_others_as_they_are(disk):
    keys = disk.path / "keys"
    while not keys.exists() or keys.stat().st_size < 4096 - 100:  # the next one needs a second block
        add_key(keys, ["predict"])
    before = read_keys(keys)
    disk.fill()
    with pytest.raises(KeysError, match="space"):
        add_key(keys, ["admin"])
    assert read_keys(keys) == before
