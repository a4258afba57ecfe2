"""A message to features: its words as they are, and once more in blocks by the place they stand in.

    (no prefix)   words of subject and body, quoted ones too
    subject:      words of the subject, without `Re:` and its sisters
    from:         the sender's address, its domain, the words of the sender's name
    to:           addresses of To and Cc, the words of the names there
    list: thread: file: time:   List-Id; ids that the message is or refers to; words of attachments' names; the month,
                  alone and with the sender, because projects, and with them folders, come and go

They are names alone, each of value 1: how much a place counts is learned (`normalize: blocks`), for every mailbox anew.
"""

from __future__ import annotations

from .message import Message, read
from .mime import without_prefixes
from .words import plain, words

__all__ = ["EARLIER", "SPEC", "excerpt", "features", "of"]

SPEC = {
    "task": "multiclass",
    "algorithm": "dual-ascent",
    "update": "III",
    "weighting": "idf",
    "normalize": "blocks",
    "label_words": True,
}
"""The learner that these features are made for."""
EARLIER = {name: value for name, value in SPEC.items() if name != "label_words"}
"""The one of release 0.2 and before: a learner that was made with it is used as it is."""
MAX_WORDS = 4000
"""Different words that count; a longer message is known by its beginning."""
MAX_REFERENCES = 12
MAX_PLACE = 400
EXCERPT = 160


def features(raw: bytes) -> list[str]:
    """The features of a message as it was received; never empty, never failing."""
    return of(read(raw))


def of(message: Message) -> list[str]:
    """The features of a message that was read."""
    subject = words(without_prefixes(message.subject))
    plain_words = words(message.subject) | words(_text(message))
    month = f"{message.date:%Y-%m}" if message.date else ""
    places = {
        "from": [
            *message.sender,
            *("@" + address.rpartition("@")[2] for address in message.sender),
            *words(message.sender_name),
        ],
        "subject": [*subject],
        "to": [*message.recipients, *words(message.recipient_names)],
        "list": [message.list_id] if message.list_id else [],
        # Its own id too: the replies to it will name it.
        "thread": [*message.references[:1], *message.references[-MAX_REFERENCES:], message.id],
        "file": [*words(" ".join(message.attachments))],
        "time": [month, *(f"{address} {month}" for address in message.sender)] if month else [],
    }
    names = ["mail"]  # even an empty message has one
    for place, own in places.items():
        names += [f"{place}:{name}" for name in dict.fromkeys(own[:MAX_PLACE])]
    plain_words.pop("mail", None)
    return [*names, *list(plain_words)[:MAX_WORDS]]


def excerpt(message: Message) -> str:
    """The beginning of what the message says, in one line."""
    # The HTML of a newsletter may begin with thousands of blanks: words are counted, not characters.
    return " ".join(_text(message).split(None, EXCERPT)[:EXCERPT])[:EXCERPT]


def _text(message: Message) -> str:
    return message.plain if message.plain.strip() else plain(message.html)
