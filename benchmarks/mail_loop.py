"""The closed loop of filing, as `feedrank mail watch` has it: what is filed is judged only if the person opens it.

The first half of a mailbox is trained as `feedrank mail train` does, its last 500 messages predicted; the second half
comes in at its own dates. Of the learner there is what the service runs: the record of `min_precision` by account, open
decisions counted for a week. A person moves what is in the inbox, audits too, MOVED seconds after it came. Of what was
filed they open a share, at random: what was wrong they move then, what was right is judged and learned a day later, as
`watch` does; what they do not open stays where it was filed, right or wrong, is never judged and never learned.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from mail_designs import Mail

from feedrank.clients.mail.copies import with_copies
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.training import PREDICTED
from feedrank.learners import build
from feedrank.learners.inference.assurance import AUDIT, DECIDED
from feedrank.service.contract.events import Event
from feedrank.service.runtime.judging import Judging

PRECISION = 0.95
MOVED, SETTLED, REMEMBERED = 4 * 3_600.0, 86_400.0, 7 * 86_400.0


class Played(NamedTuple):
    """What became of the messages of the second half."""

    messages: int
    filed: int
    right: int
    audits: int
    audits_right: int
    unopened: int
    pauses: int


class Kept(NamedTuple):
    """What was said of a message under the bound."""

    kind: str
    certainty: float
    label: str


class Mailbox:
    """A learner with its record, and the copies that were learned."""

    def __init__(self) -> None:
        self.learner, self.judging = build(SPEC), Judging()
        self.copies: dict[str, list[str]] = {}

    def features(self, mail: Mail) -> list[str]:
        """With where its copies are, as far as that was learned."""
        return with_copies(mail.names, self.copies.get(mail.digest, []))

    def predict(self, mail: Mail, chance: float, decided: int, audits: int) -> Kept | None:
        """As the service does under `min_precision`, by account."""
        prediction = self.learner.predict({"features": self.features(mail)}, top=1)
        if prediction.label is None or prediction.margin is None:
            return None
        sure = prediction.margin * self.judging.reliability.usual_precision(prediction.label)
        record = self.judging.seen(PRECISION, True)
        return Kept(record.kind(sure, chance, decided, audits), sure, prediction.label)

    def learn(self, mail: Mail, instance: Sequence[str], kept: Kept | None) -> None:
        """The truth about a message is known."""
        truth = {"label": mail.folder}
        event = Event(truth, {"features": list(instance)})
        before, parsed = self.judging.before(self.learner, event)
        done = self.learner.learn(parsed, truth)
        assured = None
        if kept is not None:
            assured = {"precision": PRECISION, "account": True, **kept._asdict()}
        self.judging.judge(self.learner, before, truth, done.loss, assured)
        self.copies.setdefault(mail.digest, []).append(mail.folder)


def closed_loop(stream: Sequence[Mail], read: float, seed: int) -> Played:
    """Play the second half, `read` the share of filed messages that are opened."""
    chance, box, start = random.Random(seed), Mailbox(), len(stream) // 2
    for number, mail in enumerate(stream[:start]):
        kept = box.predict(mail, chance.random(), 0, 0) if number >= start - PREDICTED else None
        box.learn(mail, box.features(mail), kept)
    waiting: list[tuple[float, int, bool]] = []  # when, which, whether its truth is known then
    said: dict[int, tuple[list[str], Kept | None]] = {}
    opened = {DECIDED: 0, AUDIT: 0}
    filed = right = audits = audits_right = unopened = 0
    for number in range(start, len(stream)):
        mail = stream[number]
        while waiting and waiting[0][0] <= mail.at:
            _, which, is_known = heappop(waiting)
            instance, kept = said.pop(which)
            if kept is not None and kept.kind in opened:
                opened[kept.kind] -= 1
            if is_known:
                box.learn(stream[which], instance, kept)
        names = box.features(mail)
        kept = box.predict(mail, chance.random(), opened[DECIDED], opened[AUDIT])
        is_right = kept is not None and kept.label == mail.folder
        said[number] = names, kept
        due, is_known = mail.at + MOVED, True
        if kept is not None and kept.kind in opened:
            opened[kept.kind] += 1
        if kept is not None and kept.kind == DECIDED:
            filed, right = filed + 1, right + is_right
            is_known = chance.random() < read
            unopened += not is_known
            due = mail.at + (REMEMBERED if not is_known else MOVED + SETTLED * is_right)
        elif kept is not None and kept.kind == AUDIT:
            audits, audits_right = audits + 1, audits_right + is_right
        heappush(waiting, (due, number, is_known))
    pauses = box.judging.seen(PRECISION, True).pauses
    return Played(len(stream) - start, filed, right, audits, audits_right, unopened, pauses)
