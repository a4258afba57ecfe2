"""The commands' work on accounts: watch one or several, sort what is in the inbox now, decide at delivery time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..client import Client
from ..exceptions import NotFound
from .account import Account, AccountError, connect
from .accounts_file import Watched
from .bookkeeping import MailState
from .filing import Advice, Clerk, WatchSettings, advise
from .inbox import Inbox
from .loop import watch
from .mailboxes import headers, message, messages_of
from .message import Report, key, read
from .page import serving
from .training import follow_log
from .watcher import Watcher

__all__ = ["Sorted", "deliver", "run", "sort", "trained", "watch_one"]


def trained(client: Client, state: MailState, may_be_empty: bool = False) -> None:
    """Refuse to go on without a learner, or with one that has learned nothing where that is of no use."""
    follow_log(client, state)
    try:
        labels = client.learner(state.learner).labels
    except NotFound as error:
        raise AccountError(
            f"there is no learner {state.learner!r} yet: run `feedrank mail train` first"
        ) from error
    if not labels and not may_be_empty:
        raise AccountError(f"the learner {state.learner!r} is empty: run `feedrank mail train` first")


@contextmanager
def _page(watched: Watched, client: Client, state: MailState, report: Report) -> Iterator[str | None]:
    if watched.page is None:
        yield None
    else:
        shown = partial(Inbox, watched.account, client, state, watched.settings, report)
        with serving(shown, watched.page) as address:
            yield address


def watch_one(
    watched: Watched,
    client: Client,
    path: Path,
    service: str,
    report: Report,
    show: Report,
    stop: threading.Event | None = None,
) -> None:
    """Watch an account until `stop` is set; `show` gets the address of its page."""
    settings = watched.settings
    with ExitStack() as stack:
        stored = stack.enter_context(MailState(path, watched.account.name, watched.learner, service))
        state = stack.enter_context(stored.copy()) if settings.dry_run else stored
        trained(client, state, may_be_empty=True)
        address = stack.enter_context(_page(watched, client, state, report))
        if address:
            show(f"the inbox is on {address}")
        watch(watched.account, client, state, settings, report, poll=watched.poll, stop=stop)


def run(
    accounts: Sequence[Watched], client: Client, path: Path, service: str, report: Report, show: Report
) -> bool:
    """Watch all of them, each in a thread; False when every one has ended, which only an error makes it do."""
    stop = threading.Event()

    def one(watched: Watched) -> None:
        name = watched.account.name
        try:
            watch_one(watched, client, path, service, lambda line: report(f"{name}: {line}"), show, stop)
        except Exception as error:  # one account's end is not that of the others
            report(f"{name}: {' '.join(str(error).split()) or type(error).__name__}; it is no longer watched")

    threads = [threading.Thread(target=one, args=(watched,), daemon=True) for watched in accounts]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            thread.join(30.0)
    return False


@dataclass(frozen=True, slots=True)
class Sorted:
    """One message of the inbox, and what was, or would be, done with it."""

    subject: str
    sender: str
    advice: Advice
    filed: bool


def sort(
    account: Account, client: Client, state: MailState, settings: WatchSettings, report: Report, most: int
) -> Iterator[Sorted]:
    """Rank what is in the inbox now, newest first: what is sure is filed in mode `file`, the rest gets its suggestion."""
    with connect(account) as imap:
        # First a look: folders are known, the person's moves learned, and nothing of the backlog is taken for new mail.
        Watcher(imap, client, state, settings, report).look(handles=False)
        clerk = Clerk(imap, client, state, settings, lambda line: None)  # the caller shows what is done
        selected = imap.select_folder(settings.inbox, readonly=True)
        uidvalidity = int(selected.get(b"UIDVALIDITY", 0))
        uids = sorted(messages_of(imap), reverse=True)[:most]
        for uid, fields in list(headers(imap, uids, report))[::-1]:
            imap.select_folder(settings.inbox, readonly=True)
            raw = message(imap, uid, report)
            if raw is None:
                continue
            parsed = read(raw)
            advice, filed = clerk.handle(uid, uidvalidity, key(fields), parsed)
            yield Sorted(parsed.subject, parsed.sender_name or ", ".join(parsed.sender), advice, filed)


def deliver(client: Client, state: MailState, settings: WatchSettings, raw: bytes) -> str | None:
    """The folder that a message should be delivered into, if that is sure; written down as ours, so that `watch` knows."""
    parsed = read(raw)
    advice = advise(client, state, replace(settings, mode="file"), parsed, looks=False)
    state.see(parsed.id, advice.predicted)
    if not advice.sure or advice.folder is None:
        return None
    action = state.act(parsed.id, "filed", settings.inbox, advice.folder)
    state.set_fate(action, "open")
    return advice.folder
