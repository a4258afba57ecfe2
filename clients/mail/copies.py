"""Copies: messages that say the same, word for word, and where the person put the earlier ones.

Whoever keeps a message in two folders puts the second copy where the first is not; whoever gets a notice twice puts both
into one. Words cannot tell: by them a copy belongs where its twin is. So a message says it with a feature

    copy:LABEL    for every label that a message of the same words was learned under

and the learner finds out what it means in this mailbox.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Copy", "content_digest", "with_copies"]

MOST = 9
"""Labels that count; nobody keeps a message in more folders."""
_THREADS = re.compile("\0thread:[^\0]*")


class Copy(NamedTuple):
    """A message that was learned: what it says, the label that it got, and its id."""

    digest: str
    label: str
    key: str


def content_digest(names: Sequence[str]) -> str:
    """The same for two messages with the same features but for the ids of their threads."""
    said = "\0" + "\0".join(names)
    if said.count("\0") == len(names):  # which names are threads is seen in all of them at once
        said = _THREADS.sub("", said)
    else:
        said = "".join("\0" + name for name in names if not name.startswith("thread:"))
    said = said[1:]
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:24]


def with_copies(names: Sequence[str], labels: Iterable[str]) -> list[str]:
    """The features of a message whose copies were learned under `labels`."""
    return [*names, *(f"copy:{label}" for label in sorted(set(labels))[:MOST])]
