"""Leave-one-user-out for mail: which design three users would choose, and what the fourth gets from it.

The designs are those of this file, no others. A design is chosen by the geometric mean of its mistakes on three users, and
then measured on the user left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from feedrank.clients.mail.extract import EARLIER, SPEC
from feedrank.learners import build
from feedrank.learners.algorithms.auto.pool import Pool
from feedrank.learners.blocks import Blocks
from feedrank.learners.instances import Floats
from feedrank.learners.learner import Learner

PLAIN = {**EARLIER, "normalize": "unit"}
BUILT = "half alike, half by odds squared, names of folders (built)"


class Mail(NamedTuple):
    """A message: our features, plain words, its folder; when it came, its features without copies, and their digest."""

    features: list[str]
    words: list[str]
    folder: str
    at: float
    names: list[str]
    digest: str


class Variant(Blocks):
    """Blocks of other weights."""

    def __init__(self, alike: float, worth: Callable[[Floats], Floats]) -> None:
        super().__init__(named=True)
        self.alike, self._worth_by = alike, worth

    def worth_of(self, odds: Floats) -> Floats:
        return self._worth_by(odds)


def variant(alike: float, worth: Callable[[Floats], Floats]) -> Callable[[], Learner]:
    """A learner with other weights of the blocks."""

    def make() -> Learner:
        learner = build(SPEC)
        learner.transform.blocks = Variant(alike, worth)
        learner.transform.attend(learner.model)
        learner.transform.blocks.grow(learner.features)
        learner._fused = None  # the kernel's rounds have the built weights only
        return learner

    return make


def ranked(learner: Learner, stream: Sequence[Mail]) -> Iterator[bool]:
    """Whether each message was right before it was learned; the first of a folder never is."""
    for mail in stream:
        is_known = mail.folder in learner.labels
        yield not learner.learn({"features": mail.features}, {"label": mail.folder}).mistake and is_known


def pooled(stream: Sequence[Mail]) -> Iterator[bool]:
    """Plain words and the built design as two experts of the automatic learner's pool, by log loss."""
    learners = (build(PLAIN), build(SPEC))
    pool = Pool(False, np.full(2, 0.5))
    places: dict[str, int] = {}
    for mail in stream:
        instances = ({"features": mail.words}, {"features": mail.features})
        is_new = mail.folder not in places
        right = place = places.setdefault(mail.folder, len(places))
        Z = np.zeros((2, len(places)))
        for row, learner, instance in zip(Z, learners, instances, strict=True):
            for name, score in learner.predict(instance).ranking:
                row[places[name]] = 4.0 * score
        known = len(places) - is_new
        yield bool(known) and int((pool.weights @ Z[:, :known]).argmax()) == right
        target = np.zeros(len(places))
        target[place] = 1.0
        pool.learn(Z, target, 1.0, not is_new)
        for learner, instance in zip(learners, instances, strict=True):
            learner.learn(instance, {"label": mail.folder})


def _of(make: Callable[[], Learner]) -> Callable[[Sequence[Mail]], Iterator[bool]]:
    return lambda stream: ranked(make(), stream)


def plain_words(stream: Sequence[Mail]) -> Iterator[bool]:
    """The features of benchmarks/enron.py, unit length."""
    return ranked(build(PLAIN), [mail._replace(features=mail.words) for mail in stream])


def without_copies(stream: Sequence[Mail]) -> Iterator[bool]:
    """The built design, but nobody says where the copies of a message are."""
    names = ([name for name in mail.features if not name.startswith("copy:")] for mail in stream)
    bare = [mail._replace(features=own) for mail, own in zip(stream, names, strict=True)]
    return ranked(build(SPEC), bare)


DESIGNS: Mapping[str, Callable[[Sequence[Mail]], Iterator[bool]]] = {
    "plain words": plain_words,
    "mail features, unit length": _of(lambda: build(PLAIN)),
    "half alike, half by blocks, all equal": _of(variant(0.5, np.ones_like)),
    "half alike, half by odds": _of(variant(0.5, lambda odds: odds)),
    BUILT: _of(lambda: build(SPEC)),
    "half alike, half by odds squared, no names": _of(lambda: build(EARLIER)),
    "half alike, half by odds to the fourth": _of(variant(0.5, lambda odds: odds**4)),
    "all by odds squared": _of(variant(0.0, lambda odds: odds * odds)),
    "pool of plain words and the built design": pooled,
    "built, without copies": without_copies,
}


def places(stream: Sequence[Mail]) -> Iterator[tuple[bool, bool]]:
    """Whether the built design named each message's folder before it was learned, and whether it was in its top 3."""
    learner = build(SPEC)
    for mail in stream:
        prediction = learner.predict({"features": mail.features}, top=3)
        in_top3 = mail.folder in [name for name, _ in prediction.ranking]
        yield prediction.label == mail.folder, in_top3
        learner.learn({"features": mail.features}, {"label": mail.folder})


# ---- leaving one out


class LeftOut(NamedTuple):
    """What the others chose, and what the user left out gets from it, in percent."""

    user: str
    design: str
    mistakes: float
    plain: float


def leave_one_out(streams: Mapping[str, Sequence[Mail]], done: Callable[[str], None]) -> list[LeftOut]:
    """A row for every user."""
    mistakes: dict[str, dict[str, float]] = {}
    for user, stream in streams.items():
        mistakes[user] = {name: 100 * (1 - sum(play(stream)) / len(stream)) for name, play in DESIGNS.items()}
        done(user)

    def spread(name: str, users: Sequence[str]) -> float:
        return exp(sum(log(mistakes[user][name]) for user in users) / len(users))

    rows = []
    for user in streams:
        others = [other for other in streams if other != user]
        design = min(DESIGNS, key=lambda name: spread(name, others))
        rows.append(LeftOut(user, design, mistakes[user][design], mistakes[user]["plain words"]))
    return rows
