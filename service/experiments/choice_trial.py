"""A policy on a log of choices that were drawn with logged probabilities: its value, and its lead over what was served.

other        what the policy would have earned: doubly robust (`inference.off_policy`), with SNIPS beside it
difference   other minus own, as one confidence sequence: [lower, upper] holds at every look
segments     the same of the rounds whose context has a feature

The policy is asked as the log was: what was excluded then cannot be chosen. A round of slots is the mean of its draws, each
given what the slots before it had drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from feedrank.learners import reading
from feedrank.learners.choice.chooser import ChoiceLearner
from feedrank.learners.inference.off_policy import Estimate, LogSupport, RunningGuess, WeighedDraw
from feedrank.learners.instances import ItemList, read_features
from feedrank.learners.learner import Learner
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, Body

MOST_SEGMENTS = 20
# Below so many draws of its own, or with so large a share where the log cannot tell, an estimate is warned of.
THIN, UNSUPPORTED = 50.0, 0.01


@dataclass(frozen=True, slots=True)
class LoggedDraw:
    """One draw: `probabilities` of the `names`, or None where the log has that of the chosen one alone.

    `asked` is the instance as the policy gets it; `reward` is in [0, 1].
    """

    names: Sequence[str]
    chosen: str
    reward: float
    probability: float
    probabilities: Sequence[float] | None = None
    exclude: Sequence[str] = ()
    asked: JSON | ItemList | None = None
    slot: str = ""


@dataclass(frozen=True, slots=True)
class RewardedRound:
    """The draws of one event, and the event, which teaches."""

    draws: Sequence[LoggedDraw]
    event: JSON


@dataclass(slots=True)
class Comparison:
    """The figures of some rounds."""

    value: Estimate = field(default_factory=Estimate)
    lead: Estimate = field(default_factory=lambda: Estimate(lead=1.0))
    support: LogSupport = field(default_factory=LogSupport)
    earned: float = 0.0

    def add(self, draws: Sequence[WeighedDraw]) -> None:
        """One round."""
        self.value.add(draws)
        self.lead.add(draws)
        for draw in draws:
            self.support.add(draw)
        self.earned += sum(draw.reward for draw in draws) / len(draws)

    def report(self, alpha: float, low: float, high: float) -> JSON:
        """The figures, in the range of the rewards."""
        n, width = self.value.n, high - low

        def scaled(value: float | None) -> float | None:
            return None if value is None else low + width * value

        lower, upper = self.value.interval(alpha)
        behind, ahead = self.lead.interval(alpha)
        mean = self.lead.mean()
        return {
            "rounds": n,
            "effective_rounds": self.support.effective(),
            "own": {"mean": scaled(self.earned / n if n else None)},
            "other": {
                "mean": scaled(self.value.mean()),
                "snips": scaled(self.support.snips()),
                "lower": scaled(lower),
                "upper": scaled(upper),
            },
            "difference": None if mean is None else width * mean,
            "lower": width * behind,
            "upper": width * ahead,
            "warnings": self._warnings(),
        }

    def _warnings(self) -> list[str]:
        """Where the log says little of the policy."""
        support, warnings = self.support, []
        if support.draws and support.effective() < min(THIN, support.draws):
            warnings.append(
                f"thin support: {support.draws} draws tell as much as {support.effective():.1f} of the policy's own "
                f"(largest weight {support.largest:.3g}); trust the interval, not the mean"
            )
        share = support.unsupported / support.draws if support.draws else 0.0
        if share > UNSUPPORTED:
            warnings.append(
                f"the policy gives {share:.1%} of its probability to items that could not be drawn: they count as the "
                "least reward in `lower` and as the largest in `upper`"
            )
        return warnings


@dataclass(slots=True)
class ChoiceTrial:
    """`policy` is a name, or a fresh learner that learns as the rounds go by; `segments` are features of the context."""

    policy: str | Learner
    what: str
    range: tuple[float, float] = (0.0, 1.0)
    segments: Sequence[str] = ()
    overall: Comparison = field(default_factory=Comparison)
    parts: dict[str, Comparison] = field(default_factory=dict)
    guess: RunningGuess = field(default_factory=RunningGuess)

    def apply(self, round: RewardedRound) -> None:
        """A round; then it teaches."""
        draws = [self._weighed(draw) for draw in round.draws]
        self.overall.add(draws)
        for name in self._segments_of(round.event):
            self.parts.setdefault(name, Comparison()).add(draws)
        for draw in round.draws:
            self.guess.add(draw.slot + draw.chosen, draw.reward)
        if isinstance(self.policy, Learner):
            event = round.event
            weight = event.get("weight", 1.0)
            self.policy.learn(event["instance"], event["truth"], served=event["served"], weight=weight)

    def _weighed(self, draw: LoggedDraw) -> WeighedDraw:
        policy = self._probabilities(draw)
        chosen = draw.names.index(draw.chosen)
        if draw.probabilities is None:
            return WeighedDraw([draw.probability], 0, draw.reward, [policy[chosen]])
        guesses = [self.guess(draw.slot + name) for name in draw.names]
        return WeighedDraw(draw.probabilities, chosen, draw.reward, policy, guesses)

    def _probabilities(self, draw: LoggedDraw) -> Sequence[float]:
        """pi(a) of every name."""
        names = draw.names
        if self.policy == "logged":
            if draw.probabilities is not None:
                return draw.probabilities
            # Of the items that were not chosen nothing is known, and nothing is asked.
            return [draw.probability * (name == draw.chosen) for name in names]
        closed = set(draw.exclude)
        allowed = [name for name in names if name not in closed]
        if self.policy == "uniform":
            return [(name not in closed) / len(allowed) for name in names]
        if not isinstance(self.policy, Learner):
            return [float(name == allowed[0]) for name in names]
        if isinstance(self.policy, ChoiceLearner):
            own = self.policy.predict(draw.asked, exclude=draw.exclude).probability_of()
            return [own[name] for name in names]
        best = self.policy.predict(draw.asked).ranking[0][0]
        return [float(name == best) for name in names]

    def _segments_of(self, event: JSON) -> list[str]:
        features = event["instance"].get("features")
        if not self.segments or features is None:
            return []
        read = read_features(features)
        present = set(read.names)
        if read.values is not None:
            present = {name for name, value in zip(read.names, read.values.tolist(), strict=True) if value}
        return [name for name in self.segments if name in present]

    def report(self, alpha: float) -> JSON:
        """The reply."""
        report: JSON = {
            "method": "off-policy",
            "measure": self.what,
            "better": "higher",
            **self.overall.report(alpha, *self.range),
        }
        if self.segments:
            report["segments"] = {
                name: self.parts.get(name, Comparison()).report(alpha, *self.range) for name in self.segments
            }
        return report


def segments_of(request: Body) -> list[str]:
    """The features of a request whose rounds are told apart."""
    value = request.get("segments", [])
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise Unprocessable.at("/segments", "must be a list of features of the context")
    if len(value) > MOST_SEGMENTS:
        raise Unprocessable.at("/segments", f"at most {MOST_SEGMENTS} segments")
    return list(dict.fromkeys(value))


def round_of(event: JSON, spec: JSON) -> RewardedRound | None:
    """A round of an event that `GET .../events` shows, of a learner of this spec; None if nothing of it was rewarded."""
    instance, served = event["instance"], event["served"]
    low, high = spec["range"]

    def scaled(reward: float) -> float:
        share: float = (float(reward) - low) / (high - low)
        return min(1.0, max(0.0, share))

    kept, reward, names = event.get("draw", {}), event["truth"]["reward"], item_ids(instance)
    if "slots" not in served:
        drawn = served["id"], scaled(reward), float(served["probability"])
        how = kept.get("probabilities"), kept.get("exclude", ())
        return RewardedRound([LoggedDraw(names, *drawn, *how, instance)], event)
    parsed = reading.instance(spec, instance)
    assert isinstance(parsed, ItemList)
    slots = {slot.id: slot for slot in parsed.slots}
    draws, earlier = list[LoggedDraw](), list[str]()
    for i, one in enumerate(served["slots"]):
        slot = slots[one["id"]]
        own = kept["slots"][i] if kept else {"exclude": [*slot.exclude, *earlier]}
        earlier.append(one["choice"])
        earned = reward.get(slot.id, spec["default_reward"])
        if earned is not None:
            asked = replace(parsed, context=slot.context, slots=())
            drawn = one["choice"], scaled(earned), float(one["probability"])
            how = own.get("probabilities"), own.get("exclude", ())
            draws.append(LoggedDraw(names, *drawn, *how, asked, slot.id + " "))
    return RewardedRound(draws, event) if draws else None


def item_ids(instance: JSON) -> list[str]:
    """The ids of an instance's items."""
    items = instance.get("items", ())
    return list(items["ids"]) if isinstance(items, Mapping) else [item["id"] for item in items]
