"""A message to features: words marked by where they stand, people, list, thread, month.

Each place has a weight, chosen on the Enron users (benchmarks/mail.py): whom a message is from says more than any of its
words. The body's weights have the same length for every message, so that a long one does not drown its headers:

    body word w, met n_w times:   b_w = 1 + log n_w,  or QUOTED if only quoted;   its value  BODY b_w / ||b||
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log, sqrt

from .message import Message, read
from .text import parts, plain, words

SENDER, DOMAIN, NAME = 3.0, 0.5, 0.5
RECIPIENT = 0.8
LIST = 3.0
SUBJECT, PAIR, TITLE = 1.6, 0.5, 0.5
THREAD = 1.5
ATTACHMENT = 0.5
MONTH, LATELY = 3.0, 2.0
BODY, QUOTED = 5.0, 0.3

MAX_WORDS = 4000
"""Different words of a body that count; a longer one is known by its beginning."""
MAX_REFERENCES = 12

_PREFIXES = re.compile(
    r"^\s*(?:(?:re|fwd?|aw|wg|sv|vs|antw|tr|rv|ref)\s*(?:\[\d+\])?\s*:\s*)+", re.IGNORECASE
)


def features(raw: bytes) -> dict[str, float]:
    """The features of a message as it was received; never empty, never failing."""
    return of(read(raw))


def of(message: Message) -> dict[str, float]:
    """The features of a message that was read."""
    found: dict[str, float] = {"mail": 0.1}  # so that even an empty message has one
    subject = words(_PREFIXES.sub("", message.subject))
    found.update((f"subject:{word}", SUBJECT) for word in subject)
    found.update((f"subject:{a} {b}", PAIR) for a, b in pairwise(subject))
    if subject:
        found["title:" + " ".join(subject)[:200]] = TITLE
    for address in message.sender:
        found[f"from:{address}"] = SENDER
        found[f"from:@{address.rpartition('@')[2]}"] = DOMAIN
    found.update((f"name:{word}", NAME) for word in words(message.sender_name))
    found.update((f"to:{address}", RECIPIENT) for address in message.recipients)
    found.update((f"cc:{address}", RECIPIENT) for address in message.copied)
    if message.list_id:
        found[f"list:{message.list_id}"] = LIST
    # Its own id too: the replies to it will name it.
    thread = [*message.references[:1], *message.references[-MAX_REFERENCES:], message.id]
    found.update((f"thread:{reference}", THREAD) for reference in thread)
    for name in message.attachments:
        found.update((f"file:{word}", ATTACHMENT) for word in words(name))
    if message.date is not None:  # people's projects, and so their folders, come and go
        month = f"{message.date:%Y-%m}"
        found[f"month:{month}"] = MONTH
        found.update((f"from:{address} {month}", LATELY) for address in message.sender)
    found.update(_body(message.plain if message.plain.strip() else plain(message.html)))
    return found


def _body(text: str) -> dict[str, float]:
    new, quoted = parts(text)
    counts = Counter(words(new))
    values = {word: 1 + log(count) for word, count in counts.items()}
    for word in words(quoted):
        values.setdefault(word, QUOTED)
    if len(values) > MAX_WORDS:
        values = dict(list(values.items())[:MAX_WORDS])
    scale = BODY / sqrt(sum(value * value for value in values.values()) or 1.0)
    scaled = {value: round(value * scale, 4) for value in set(values.values())}
    return {f"body:{word}": scaled[value] for word, value in values.items()}
