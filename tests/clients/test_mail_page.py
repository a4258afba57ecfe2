"""The mail page against a real IMAP server (pymap), the service embedded, in a real browser."""

import http.client
import json
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from imap_server import clear, numbers
from imapclient import IMAPClient

from feedrank.clients import Client
from feedrank.clients.mail.account import Account, Secret, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.inbox import Inbox
from feedrank.clients.mail.page import serving
from feedrank.clients.mail.watcher import Watcher
from feedrank.embedded import Embedded

WORDS = {
    "Work": "budget meeting report deadline",
    "Travel": "flight hotel boarding passport",
    "Bills": "invoice amount due receipt",
    "Lists": "digest release patch thread",
}


def raw(number, topic, subject=None):
    return (
        f"Message-ID: <m{number}@example.org>\r\nFrom: {topic} Sender <{topic.lower()}@example.org>\r\n"
        f"To: me@example.org\r\nSubject: {subject or f'{WORDS[topic]} {number}'}\r\n"
        f"Date: Mon, 05 Feb 2024 10:{number % 60:02}:00 +0000\r\n\r\n{WORDS[topic]}\r\n"
    ).encode()


@pytest.fixture
def mail(imap_server, tmp_path, monkeypatch):
    """An account with four folders, a learner that knows them, six messages in the inbox, and their page."""
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    account = Account.of(imap_server.url, Secret())
    path, settings, lines = tmp_path / "mail.db", WatchSettings(), []
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'service.db'}")) as client,
        connect(account) as person,
        MailState(path, account.name) as state,
    ):
        client.create("mail", SPEC)
        clear(person, tuple(WORDS))

        def look():
            with connect(account) as imap:
                Watcher(imap, client, state, settings, lines.append).look()

        look()
        for number in range(12):  # the person files some by hand, and the watcher learns from it
            topic = list(WORDS)[number % 4]
            person.append(topic, raw(number, topic))
        look()
        for number in range(20, 26):
            subject = "<script>alert(1)</script>" if number == 20 else None
            person.append("INBOX", raw(number, list(WORDS)[number % 4], subject))
        look()
        with serving(partial(Inbox, account, client, state, settings, lines.append)) as url:
            yield SimpleNamespace(
                url=url, client=client, person=person, look=look, state=state, lines=lines, account=account
            )


def test_it_says_what_was_filed_and_how_much_of_what_was_checked_was_right(mail, browser):
    done = {
        "filed": ("open", "unjudged", "confirmed", "failed"),
        "audited": ("confirmed", "corrected", "confirmed", "intended"),
    }
    for number, (kind, fate) in enumerate((kind, fate) for kind, fates in done.items() for fate in fates):
        mail.state.set_fate(mail.state.act(f"k{number}", kind, "INBOX", "Work"), fate)
    browser.open(mail.url)
    browser.wait(lambda: browser.text("#record") != [""])
    assert browser.text("#record") == [
        "Filed within a week: 3 (1 right, 1 not opened for days: unjudged). Of 3 checked at random 2 were right."
    ]


def test_a_click_files_and_teaches(mail, browser):
    browser.open(mail.url)
    browser.wait(lambda: len(browser.find("#messages > li")) == 6)
    assert [len(item.find_elements("css selector", "button")) for item in browser.find("#messages > li")] == [
        3
    ] * 6
    # Newest first: 25 is about travel, and the learner knows.
    assert browser.text("#messages > li:first-child .subject") == ["flight hotel boarding passport 25"]
    assert browser.text("#messages > li:first-child button")[0] == "1Travel"
    assert "<script>alert(1)</script>" in browser.text(".subject")
    version = mail.client.learner("mail").version
    chosen = browser.text("#messages > li:first-child button")[1][1:]
    browser.find("#messages > li:first-child button")[1].click()
    browser.wait(lambda: len(browser.find("#messages > li")) == 5)
    assert 25 in numbers(mail.person, chosen)
    assert 25 not in numbers(mail.person, "INBOX")
    event = mail.client.events("mail", after=version).events[0]
    assert event["truth"] == {"label": chosen}
    assert event["prediction_id"]  # the watcher's own prediction is what is judged
    mail.look()  # the watcher finds the message moved, and knows about it
    assert mail.client.learner("mail").version == version + 1
    person_sees = mail.person.folder_status("INBOX", ["MESSAGES"])[b"MESSAGES"]
    assert person_sees == 5


def test_the_keyboard_alone_is_enough(mail, browser):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(browser.driver).send_keys(*keys).perform()

    browser.open(mail.url)
    browser.wait(lambda: len(browser.find("#messages > li")) == 6)
    press("j", "j")
    assert browser.run("return document.activeElement.querySelector('.subject').textContent").endswith(" 24")
    press("k")
    press("1")
    browser.wait(lambda: len(browser.find("#messages > li")) == 5)
    assert 25 in numbers(mail.person, "Travel")
    # The next message has the focus, so the hands stay where they are.
    assert browser.run("return document.activeElement.querySelector('.subject').textContent").endswith(" 24")
    other = browser.text("#messages > li:first-child option")[1]
    press("f")
    press(other[0], Keys.ENTER)
    browser.wait(lambda: len(browser.find("#messages > li")) == 4)
    assert 24 in numbers(mail.person, other)
    browser.wait(lambda: browser.text("#done")[0].endswith(f"is in {other}, and learned."))


def test_new_mail_comes_by_itself_and_a_narrow_dark_screen_is_fine(mail, browser):
    browser.emulate("dark", 360)
    browser.open(mail.url)
    browser.wait(lambda: len(browser.find("#messages > li")) == 6)
    mail.person.append("INBOX", raw(40, "Bills"))
    browser.wait(lambda: len(browser.find("#messages > li")) == 7)
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert max(map(int, ground[4:-1].split(","))) < 60
    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    for node in nodes:
        if not node.get("ignored") and node["role"]["value"] in {"button", "combobox", "list", "group"}:
            assert node.get("name", {}).get("value"), node["role"]


def request(url, method="GET", path="", body=None, **headers):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, (parts.path + path), body, named)
    reply = connection.getresponse()
    data = reply.read()
    connection.close()
    return reply, data


def test_only_the_page_itself_may_ask(mail):
    page, _ = request(mail.url)
    assert page.status == 200
    assert "default-src 'none'; script-src 'self'" in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer"
    message = json.loads(request(mail.url, path="inbox")[1])["messages"][0]
    place = {"uid": message["uid"], "uidvalidity": message["uidvalidity"]}
    order = json.dumps({**place, "folder": "Work"})
    stale = json.dumps({**place, "uidvalidity": place["uidvalidity"] + 1, "folder": "Work"})
    root = mail.url.rsplit("/", 2)[0] + "/"
    plain = {"Content_Type": "application/json"}
    for refused, status in (
        (request(root), 404),
        (request(root, path="guess/inbox"), 404),
        (request(mail.url, path="inbox", Host="evil.example"), 403),
        (request(mail.url, path="inbox", Sec_Fetch_Site="cross-site"), 403),
        (request(mail.url, "POST", "file", order, Sec_Fetch_Site="cross-site", **plain), 403),
        (request(mail.url, "POST", "file", order, Content_Type="text/plain"), 404),
        (request(mail.url, "POST", "file", "{}", **plain), 422),
        (request(mail.url, "POST", "file", "x" * 70_000, **plain), 413),
        (request(mail.url, path="../page.py"), 404),
        (request(mail.url, "POST", "file", order.replace("Work", "Nowhere"), **plain), 409),
        (request(mail.url, "POST", "file", stale, **plain), 409),
    ):
        assert refused[0].status == status, refused[1]
    assert len(numbers(mail.person, "INBOX")) == 6
    assert request(mail.url, "POST", "file", order, **plain)[0].status == 200
    assert len(numbers(mail.person, "INBOX")) == 5


def test_two_messages_with_one_id_are_two_messages(mail):
    twins = [raw(40, "Work", "first twin"), raw(40, "Bills", "second twin")]
    for twin in twins:
        mail.person.append("INBOX", twin)
    mail.look()
    messages = json.loads(request(mail.url, path="inbox")[1])["messages"]
    assert [message["subject"] for message in messages[:2]] == ["second twin", "first twin"]
    chosen = messages[1]
    order = json.dumps({"uid": chosen["uid"], "uidvalidity": chosen["uidvalidity"], "folder": "Work"})
    assert request(mail.url, "POST", "file", order, Content_Type="application/json")[0].status == 200
    subjects = {}
    for folder in ("INBOX", "Work"):
        mail.person.select_folder(folder, readonly=True)
        replies = mail.person.fetch(mail.person.search(), ["ENVELOPE"])
        subjects[folder] = {reply[b"ENVELOPE"].subject for reply in replies.values()}
    assert b"first twin" in subjects["Work"]
    assert b"second twin" in subjects["INBOX"]
    assert b"second twin" not in subjects["Work"]


def test_a_cut_line_is_made_anew(mail, monkeypatch):
    assert request(mail.url, path="inbox")[0].status == 200
    cut = IMAPClient.select_folder
    failures = iter([OSError("cut")])

    def once(self, *arguments, **more):
        for failure in failures:
            raise failure
        return cut(self, *arguments, **more)

    monkeypatch.setattr(IMAPClient, "select_folder", once)
    reply, data = request(mail.url, path="inbox")
    assert reply.status == 200
    assert len(json.loads(data)["messages"]) == 6
    assert any("connecting again" in line for line in mail.lines)


def test_the_command_prints_the_address_and_ends_cleanly(mail, imap_server, tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'own.db'}")) as client:
        client.create("mail", SPEC)
    command = [sys.executable, "-m", "feedrank.cli", "mail", "watch", imap_server.url, "--page", "0"]
    command += ["--store", f"sqlite:{tmp_path / 'own.db'}", "--state", str(tmp_path / "own-mail.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().removeprefix("the inbox is on ").strip()
        assert address.startswith("http://127.0.0.1:")
        assert len(json.loads(request(address, path="inbox")[1])["messages"]) == 6
        process.terminate()
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    refused = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
