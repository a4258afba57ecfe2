"""Decisions under a bound, `min_precision`: what is asked, what is open in the store, and what is decided.

The record of a prediction under a bound says which it was, and the event that takes it carries that into the log:

    "assured": {"precision", "kind", "certainty", "label": what would have been decided, "account": true if by account}

In the store, open ones are counted by a mark: for what was decided the bound's key, its negative for an audit. The key is
the precision, by account 1 + the precision: so are the records of a learner's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feedrank.learners.inference.assurance import AUDIT, DECIDED
from feedrank.learners.results import Prediction
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.contract.prediction_ids import chance_of

from .certainty import certainty
from .judging import bound_key
from .learner_state import LoadedLearner

LOWEST, HIGHEST = 0.5, 0.999
FIELD = "min_precision"
PROMISE, PROOF, ACCOUNT = "promise", "proof", "account"
MANY = 10_000  # that are open: more say no more


@dataclass(frozen=True, slots=True)
class AskedPrecision:
    """A precision that was asked for, and how many predictions under it are open: decided, and audits."""

    precision: float
    account: bool
    decided: int
    audits: int

    @property
    def key(self) -> float:
        """Of its record, and the mark of what is decided."""
        return bound_key(self.precision, self.account)


async def read_bound(learner: LoadedLearner, request: View, remember: bool) -> AskedPrecision:
    """What a request asks; Unprocessable where there is no one decision to be right or wrong, or nothing is remembered."""
    value, form = request[FIELD], learner.state.learner.form
    if isinstance(value, bool) or not isinstance(value, int | float) or not LOWEST <= value <= HIGHEST:
        raise Unprocessable.at(f"/{FIELD}", f"must lie between {LOWEST} and {HIGHEST}")
    if not form.decision.single:
        raise Unprocessable.at(f"/{FIELD}", f"needs one label to decide on, and {form.name} has none")
    if not remember:
        raise Unprocessable.at(
            "/remember", f"must be true with `{FIELD}`: what is not remembered proves nothing"
        )
    promise = request.get(PROMISE, PROOF)
    if promise not in (PROOF, ACCOUNT):
        raise Unprocessable.at(f"/{PROMISE}", f"must be {PROOF!r} or {ACCOUNT!r}")
    precision, account = round(float(value), 6), promise == ACCOUNT
    key = bound_key(precision, account)
    counts = [await learner.open(mark, MANY) for mark in (key, -key)]
    return AskedPrecision(precision, account, *counts)


def assure(
    learner: LoadedLearner,
    bound: AskedPrecision,
    prediction: Prediction,
    id: str,
    unseen: Sequence[float | None],
) -> tuple[JSON, JSON | None, float | None]:
    """(what joins the reply, what joins the record, its mark); an abstention is written into the prediction.

    `unseen` are the marks of predictions that were made just before, which the store has not got yet.
    """
    judging, key = learner.state.judging, bound.key
    record = judging.seen(bound.precision, bound.account)
    decided, audits = bound.decided + unseen.count(key), bound.audits + unseen.count(-key)
    sure, label = certainty(prediction), prediction.label
    if sure is not None and label is not None and not prediction.probabilities:
        sure *= judging.reliability.usual_precision(
            label
        )  # a margin alone says the same of good labels and of bad ones
    reply: JSON = {"proved": record.proved(decided, audits)}
    if sure is None or label is None:
        prediction.decision, prediction.abstained = None, True
        return reply, None, None
    kind = record.kind(sure, chance_of(learner.log, id), decided, audits)
    mark = {DECIDED: key, AUDIT: -key}.get(kind)
    if kind != DECIDED:
        prediction.decision, prediction.abstained = None, True
    if kind == AUDIT:
        reply["audit"] = True
    joined: JSON = {"precision": bound.precision, "kind": kind, "certainty": sure, "label": label}
    return reply, joined | {"account": True} if bound.account else joined, mark
