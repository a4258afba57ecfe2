"""Draw the pictures of docs/images anew: `.venv/bin/python scripts/screenshots.py`. Needs `scripts/env dev`, chromium."""
# ruff: noqa: S311  (a chance that protects nothing)

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from feedrank.clients import Client
from feedrank.clients.mail.account import PASSWORD, Account, Secret, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.inbox import Inbox
from feedrank.clients.mail.page import serving
from feedrank.clients.mail.watcher import Watcher
from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parts"))
from imap_server import ImapServer, clear  # noqa: E402  (the tests' way to a real IMAP server)

IMAGES = ROOT / "docs" / "images"
PHONE = 390  # the width of a common phone
TOPICS = {
    "travel": "flight hotel boarding passport gate luggage booking itinerary visa train seat terminal",
    "bills": "invoice due payment amount tax receipt account overdue balance statement euros bank",
    "work": "meeting board agenda deadline report budget review project slides quarter monday team",
    "family": "birthday dinner grandma photos weekend holiday kids school cake love sunday garden",
    "junk": "cheap pills winner prize click offer free limited lottery casino urgent discount",
    "lists": "unsubscribe digest release patch thread kernel maintainers commit merge branch bug review",
}
COMMON = ["the", "to", "you", "we", "is", "for", "please", "hello", "today", "new", "with", "see", "attached"]
SUBJECTS = [
    ("travel", "Rail Europe", "Your booking: train to Vienna, seat 61"),
    ("bills", "City Power", "Invoice for October, amount due"),
    ("work", "Priya Nair", "Agenda for the board meeting on Monday"),
    ("family", "Grandma", "Photos of the birthday dinner"),
    ("lists", "kernel digest", "[patch] merge the release branch"),
]


def message(rng: random.Random) -> tuple[list[str], str]:
    """Words of a message, some of which speak for another folder, and its folder."""
    label = rng.choices(list(TOPICS), [6, 5, 5, 3, 2, 2])[0]
    words = rng.sample(TOPICS[label].split(), rng.choice([1, 2, 3, 4])) + rng.sample(COMMON, 4)
    return words + [
        rng.choice(TOPICS[rng.choice(list(TOPICS))].split()) for _ in range(rng.choice([0, 1, 2]))
    ], label


@contextmanager
def server(folder: Path) -> Iterator[httpx.Client]:
    app = create_app(Settings(store=f"sqlite:{folder / 'feedrank.db'}"))
    running = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="on", log_config=None, access_log=False))
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    url = "http://{}:{}".format(*running.servers[0].sockets[0].getsockname())
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        yield client
    running.should_exit = True
    thread.join()


def fill(client: httpx.Client) -> None:
    rng = random.Random(5)

    def teach(name: str, spec: dict[str, Any], events: list[dict[str, Any]]) -> None:
        client.put(f"/v1/learners/{name}", json=spec).raise_for_status()
        client.post(f"/v1/learners/{name}/feedback", json={"events": events}).raise_for_status()

    def labelled(count: int) -> list[dict[str, Any]]:
        return [{"features": words, "label": label} for words, label in (message(rng) for _ in range(count))]

    def listing() -> dict[str, Any]:
        items: list[dict[str, Any]] = [
            {"id": f"p{i}", "features": {name: rng.random() for name in ("price", "rating", "age")}}
            for i in range(8)
        ]
        good = {
            one["id"]: int(3.3 * one["features"]["rating"] * (1 - one["features"]["price"])) for one in items
        }
        return {"items": items, "relevance": good}

    teach("folders", {"task": "multiclass"}, labelled(2400))
    teach("folders-old", {"task": "multiclass", "algorithm": "predtron"}, labelled(300))
    teach("folders-new", {"task": "multiclass"}, labelled(300))
    teach(
        "spam",
        {"task": "binary", "labels": ["ham", "spam"]},
        [{**event, "label": "spam" if event["label"] == "junk" else "ham"} for event in labelled(1500)],
    )
    teach(
        "tags",
        {"task": "multilabel"},
        [
            {"features": one["features"] + two["features"], "labels": sorted({one["label"], two["label"]})}
            for one, two in zip(labelled(900), labelled(900), strict=True)
        ],
    )
    teach("shop-search", {"task": "subset-ranking"}, [listing() for _ in range(600)])
    for user in ("anna", "ben", "chiara", "dmitri", "elif"):
        teach(f"user.{user}", {"task": "multiclass"}, labelled(rng.randint(60, 700)))
    plan = {
        "arms": ["folders-old", "folders-new"],
        "method": "split",
        "measure": "loss",
        "alias": "folders-live",
    }
    client.put("/v1/experiments/new-preset", json=plan).raise_for_status()
    for start in range(0, 900, 50):
        rounds = [message(rng) for _ in range(50)]
        asked = [{"features": words, "unit": f"user-{start + i}"} for i, (words, _) in enumerate(rounds)]
        replies = client.post("/v1/experiments/new-preset/predict", json={"instances": asked}).json()[
            "predictions"
        ]
        events = [
            {"prediction_id": one["prediction_id"], "label": label}
            for one, (_, label) in zip(replies, rounds, strict=True)
        ]
        client.post("/v1/experiments/new-preset/feedback", json={"events": events}).raise_for_status()


@contextmanager
def inbox(url: str, folder: Path) -> Iterator[str]:
    """The mail page of an account in memory, whose folders are the topics."""
    server = ImapServer()
    try:
        os.environ[PASSWORD] = "secret"
        account = Account.of(server.url, Secret())
        settings, path, rng = WatchSettings(), folder / "mail.db", random.Random(2)
        with Client(url) as client, connect(account) as imap, MailState(path, account.name, "mail") as state:
            client.create("mail", SPEC)
            clear(imap, tuple(topic.capitalize() for topic in TOPICS))
            watcher = Watcher(imap, client, state, settings)
            watcher.look()
            for number in range(120):
                words, label = message(rng)
                imap.append(label.capitalize(), letter(number, label, "Someone", " ".join(words)))
                watcher.look()  # one at a time, as mail comes: not folder by folder
            for number, (label, sender, subject) in enumerate(SUBJECTS, 100):
                imap.append("INBOX", letter(number, label, sender, subject))
            watcher.look()
            with serving(partial(Inbox, account, client, state, settings, lambda line: None)) as page:
                yield page
    finally:
        server.stop()


def letter(number: int, label: str, sender: str, subject: str) -> bytes:
    head = f"Message-ID: <{number}@example.org>\r\nFrom: {sender} <{label}@example.org>\r\nSubject: {subject}\r\n"
    body = " ".join(TOPICS[label].split()[number % 5 : number % 5 + 6])
    return f"{head}Date: Mon, 05 Feb 2024 10:{number % 60:02}:00 +0000\r\n\r\n{body}\r\n".encode()


class Camera:
    """A browser that takes pictures of whole pages."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in (
            "headless",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "no-proxy-server",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            "hide-scrollbars",
            f"user-data-dir={profile}",
        ):
            options.add_argument(f"--{argument}")
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, url: str, *, scheme: str = "light", width: int = 1180) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.size(width, 900)
        self.driver.get("about:blank")
        self.driver.get(url)
        time.sleep(3)  # curves arrive in parts

    def take(self, name: str, *, tall: int = 2000) -> None:
        """The page from its top, at most so tall."""
        width, height = self.driver.execute_script(
            "return [innerWidth, document.documentElement.scrollHeight]"
        )
        self.size(width, min(tall, height))
        time.sleep(1.5)  # charts are drawn anew
        save(self.driver.get_screenshot_as_png(), name)

    def predict(self, words: str, name: str) -> None:
        """The card in which a person tries words, with what is predicted for them."""
        self.driver.find_element(By.ID, "instance").send_keys(words)
        self.driver.find_element(By.CSS_SELECTOR, ".card form button").click()
        self.size(1180, 3000)  # what is outside the window is not in a picture
        time.sleep(1.5)
        card = self.driver.find_element(By.XPATH, "//*[@id='instance']/ancestor::*[contains(@class, 'card')]")
        save(card.screenshot_as_png, name)


def save(picture: bytes, name: str) -> None:
    """Flat colours need no more than a palette, and a repository no more bytes than that."""
    colours = Image.open(BytesIO(picture)).convert("RGB")
    palette = colours.quantize(256, method=Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE)
    palette.save(IMAGES / f"{name}.png", optimize=True)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as client:
        fill(client)
        url = str(client.base_url).rstrip("/")
        camera = Camera(Path(name) / "profile")
        try:
            camera.open(f"{url}/#/")
            camera.take("learners")
            camera.open(f"{url}/#/learners/folders")
            camera.take("learner", tall=1040)
            camera.predict("Invoice for the hotel, amount due on Monday", "predict")
            camera.open(f"{url}/#/experiments/new-preset", scheme="dark")
            camera.take("experiment")
            camera.open(f"{url}/#/learners/folders", width=PHONE)
            camera.take("phone", tall=860)
            with inbox(url, Path(name)) as page:
                camera.open(page, width=900)
                camera.take("inbox")
        finally:
            camera.driver.quit()


if __name__ == "__main__":
    main()
