"""`feedrank demo`: a server with three learners that learn from simulated visitors while you watch.

demo-mail    short messages, filed into folders
demo-shop    products ranked from the clicks on what was shown
demo-test    an A/B test of two rankers, interleaved, that decides before your eyes
"""

from __future__ import annotations

import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from feedrank.clients import Client
from feedrank.clients.exceptions import ClientError, Conflict
from feedrank.clients.replies import Entry

app = typer.Typer(add_completion=False)

FOLDERS = {
    "bank": ["invoice", "payment", "account", "balance", "card", "statement"],
    "travel": ["flight", "hotel", "booking", "passport", "gate", "ticket"],
    "work": ["meeting", "report", "deadline", "project", "review", "slides"],
    "family": ["birthday", "dinner", "grandma", "weekend", "photos", "garden"],
    "junk": ["winner", "free", "offer", "pills", "click", "prize"],
}
COMMON = ["hello", "please", "the", "your", "for", "today", "regards", "see", "with", "new", "on", "about"]
LOOK = """
Open {url} and watch:

  demo-mail   its curve falls as folders are learned; "Try it" with: invoice for your account
  demo-shop   ranks products; each page shown is a prediction, each click is feedback
  demo-test   two learners interleaved in one list; the interval narrows until one of them wins

Stop with Ctrl-C{kept}.
"""


class Product(TypedDict):
    """An item of the shop."""

    id: str
    features: dict[str, float]


class Traffic:
    """People who get mail and visit a shop; `step` is one of them."""

    def __init__(self, client: Client, seed: int = 1) -> None:
        self._client, self._chance = client, random.Random(seed)  # noqa: S311  (made-up visitors, no secret)
        self._steps: list[Callable[[], None]] = [self.mail, self.shop, self.test]
        self.done = 0

    def prepare(self) -> None:
        """Make the learners and the experiment, where they are not there yet."""
        ranking: Mapping[str, object] = {"task": "subset-ranking"}
        specs: dict[str, Mapping[str, object]] = {
            "demo-mail": {"task": "multiclass"},
            "demo-shop": ranking,
            "demo-ranker-a": ranking,
            "demo-ranker-b": {**ranking, "algorithm": "listnet", "learning_rate": 1e-12},
        }
        for name, spec in specs.items():
            self._make(name, spec)
        arms = ["demo-ranker-a", "demo-ranker-b"]
        with suppress(Conflict):  # it is there from an earlier run, made by another release
            self._client.create_experiment("demo-test", {"arms": arms, "method": "interleave"})

    def _make(self, name: str, spec: Mapping[str, object]) -> None:
        """A learner of an earlier release may have another preset, and goes on with what it has learned."""
        try:
            self._client.create(name, spec)
        except Conflict:
            task = self._client.learner(name).spec["task"]
            if task != spec["task"]:
                raise ClientError(
                    f"{name} is there for another task ({task}): delete it (feedrank learners delete {name}) "
                    "or take another --store"
                ) from None

    def step(self) -> None:
        """One visitor more."""
        self._steps[self.done % len(self._steps)]()
        self.done += 1

    def mail(self) -> None:
        """A message, and the folder it belongs to."""
        folder = self._chance.choice(list(FOLDERS))
        words = self._chance.sample(FOLDERS[folder], 2) + self._chance.choices(COMMON, k=5)
        if self._chance.random() < 0.05:
            folder = self._chance.choice(list(FOLDERS))  # people are not always of one mind
        self._chance.shuffle(words)
        asked = self._client.predict("demo-mail", {"text": " ".join(words)})
        self._client.feedback("demo-mail", {"prediction_id": asked.prediction_id, "label": folder})

    def shop(self) -> None:
        """A page of products, and what was clicked on it."""
        items = self._products()
        page = self._client.predict("demo-shop", {"items": items})
        event = {"prediction_id": page.prediction_id, "clicks": self._clicks(items, page.ranking)}
        self._client.feedback("demo-shop", event)

    def test(self) -> None:
        """The same, drafted from the two arms of the experiment."""
        items = self._products()
        unit = f"visitor-{self._chance.randrange(500)}"
        page = self._client.experiment_predict("demo-test", unit, {"items": items})
        event = {"prediction_id": page.prediction_id, "clicks": self._clicks(items, page.ranking)}
        self._client.experiment_feedback("demo-test", event)

    def _products(self) -> list[Product]:
        chance = self._chance
        return [
            {
                "id": f"p{number}",
                "features": {
                    "price": round(chance.uniform(5, 200), 2),
                    "rating": round(chance.uniform(1, 5), 1),
                    "in stock": float(chance.random() < 0.7),
                },
            }
            for number in chance.sample(range(1000), 8)
        ]

    def _clicks(self, items: list[Product], ranking: Sequence[Entry]) -> list[str]:
        """Visitors read from the top and take the first product that they like; some take nothing."""
        by_id = {item["id"]: item["features"] for item in items}
        for entry in ranking:
            features = by_id[str(entry.id)]
            liked = features["rating"] - features["price"] / 80 + features["in stock"] > 3.2
            if liked and self._chance.random() < 0.9:
                return [str(entry.id)]
            if self._chance.random() < 0.1:
                return []
        return []


@contextmanager
def tidy_end() -> Iterator[None]:
    """A closed terminal and SIGTERM end this process as Ctrl-C does: the server and the folder go with it."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def served(store: str, port: int) -> Iterator[str]:
    """A server of our own; its address."""
    command = [sys.executable, "-m", "feedrank.cli", "serve", "--port", str(port), "--store", store]
    # In a session of its own: the terminal sends Ctrl-C to all of ours, and the server has yet to answer for the summary.
    process = subprocess.Popen(  # noqa: S603  (our own command)
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        line = ""
        while "ready on " not in line:
            ready, _, _ = select.select([process.stdout], [], [], 60)
            line = process.stdout.readline() if ready else ""
            if not line and process.poll() is None and not ready:
                raise ClientError("the server did not start within a minute")
            if not line:
                raise typer.Exit(1)  # the server has said why
        yield line.split("ready on ")[1].split()[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


@app.command()
def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the page; 0: any free port")] = 8000,
    store: Annotated[
        str | None, typer.Option(help="store for what is learned, `sqlite:PATH`; default: nothing is kept")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, max=1000, help="visitors per second")] = 30.0,
    visitors: Annotated[int | None, typer.Option(min=1, help="stop after this many visitors")] = None,
    browser: Annotated[bool, typer.Option(help="open the page in a browser")] = True,
) -> None:
    """Watch learners learn from simulated visitors: mail folders, a shop and an A/B test. Stop with Ctrl-C."""
    with tidy_end(), tempfile.TemporaryDirectory(prefix="feedrank-demo-") as folder:
        place = store or f"sqlite:{Path(folder) / 'demo.db'}"
        try:
            with served(place, port) as url, Client(url) as client:
                traffic = Traffic(client)
                traffic.prepare()
                kept = f"; what was learned stays in {store}" if store else ""
                try:
                    print(LOOK.format(url=url, kept=kept), flush=True)
                    if browser:
                        webbrowser.open(url)
                    drive(traffic, rate, visitors)
                except KeyboardInterrupt:
                    print()
                print(summary(client))
        except (ClientError, OSError) as error:
            print(f"feedrank demo: {error}", file=sys.stderr)
            raise typer.Exit(1) from error


def drive(traffic: Traffic, rate: float, visitors: int | None) -> None:
    """One visitor after the other, as fast as asked for, until enough have come."""
    while visitors is None or traffic.done < visitors:
        begun = time.monotonic()
        traffic.step()
        time.sleep(max(0.0, 1.0 / rate - (time.monotonic() - begun)))


def summary(client: Client) -> str:
    """What was learned."""
    mail, shop = client.learner("demo-mail"), client.learner("demo-shop")
    verdict = client.experiment("demo-test").verdict
    return (
        f"demo-mail: {mail.version} messages, recent share of mistakes {mail.progress.recent_loss or 0:.2f}\n"
        f"demo-shop: {shop.version} pages, recent loss {shop.progress.recent_loss or 0:.2f}\n"
        f"demo-test: {verdict if verdict == 'undecided' else f'{verdict} is better'}"
    )
