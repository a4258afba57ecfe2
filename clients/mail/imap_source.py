"""An IMAP account to train from: its messages are brought into a directory first, because they are learned by date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from imapclient import IMAPClient

from .account import boxes
from .message import key, read_headers
from .sources import MAX_BYTES, Found, in_file
from .state import State, feedback_id

CHUNK = 50


def fetch(
    imap: IMAPClient, state: State, into: Path, exclude: Sequence[str], inbox: str = "INBOX"
) -> Iterator[Found]:
    """The messages of the account's folders that were not learned before, each written to a file of `into`."""
    count = 0
    for box in boxes(imap, inbox, exclude):
        imap.select_folder(box.name, readonly=True)
        uids = imap.search()
        for start in range(0, len(uids), CHUNK):
            chunk = uids[start : start + CHUNK]
            heads = imap.fetch(chunk, ["BODY.PEEK[HEADER]"])
            keys = {uid: key(read_headers(reply[b"BODY[HEADER]"])) for uid, reply in heads.items()}
            new = [uid for uid in keys if not state.is_learned(feedback_id(keys[uid], box.label))]
            for reply in (imap.fetch(new, [f"BODY.PEEK[]<0.{MAX_BYTES}>"]) if new else {}).values():
                raw = reply.get(b"BODY[]<0>", reply.get(b"BODY[]"))
                if raw is not None:
                    count += 1
                    path = into / str(count)
                    path.write_bytes(raw)
                    yield in_file(str(path), box.label)
