"""The state of a choice: bilinear weights, the scales of contexts and items, what each item earned, the apprentice."""

from collections.abc import Sequence

import numpy as np

from ..growth import grown
from ..instances import Floats, Ints
from ..json_types import Json
from ..kernel.elementary import total
from ..model import Decision, Model
from ..scaling import Scaling
from ..tasks.task import Sigma, Y
from ..weights.base import Arrays, Counters, X
from .apprentice import Apprentice, ApprenticeMark
from .exploration import inverse_gap
from .memories import Memories, MemoriesMark
from .presence import Presence

MOST = 100  # items that `GET` shows


RewardsMark = tuple[MemoriesMark, int, int, ApprenticeMark]


class Rewards(Model):
    """What `ChoiceLearner` keeps. The calls of a model that decides on one x are not for it."""

    gamma: float
    floor: float
    low: float
    high: float
    rows: Presence
    ids: Presence

    def __init__(
        self, gamma: float, floor: float, low: float, high: float, baseline: float, forget: Sequence[float]
    ) -> None:
        self.gamma, self.floor = gamma, floor
        self.low, self.high = low, high
        self.weights: Memories = Memories(forget)
        self.contexts: Scaling = Scaling(idf=True, bias=False)
        self.items: Scaling = Scaling(idf=True, bias=False)
        self.apprentice: Apprentice = Apprentice(baseline)
        self.served: Floats = np.zeros(0)
        self.earned: Floats = np.zeros(0)
        self.explored: int = 0
        self.rows, self.ids = Presence(), Presence()
        self.more: int = 0  # rewards beyond one an event: those of slots
        self._before: tuple[tuple[int, float, float], ...] = ()

    def scaled(self, reward: float) -> float:
        """The reward within its range, as a share of it."""
        return (reward - self.low) / (self.high - self.low)

    def grow_to(self, rows: int, columns: int) -> None:
        """Room for contexts (and the constant) and for features and ids."""
        self.weights.grow(rows, columns)
        self.contexts.grow(rows - 1)
        self.items.grow(columns)
        self.served, self.earned = grown(self.served, columns), grown(self.earned, columns)
        self.rows.grow(rows)
        self.ids.grow(columns)

    def probabilities(self, q: Floats, allowed: Floats, baseline: int, events: int) -> tuple[Floats, Floats]:
        """(p, pi): the chance of every item, and the learner's own."""
        policy = inverse_gap(q, allowed, events, self.gamma, self.floor)
        if not self.apprentice.share:
            return policy, policy
        return self.apprentice.mixed(policy, baseline), policy

    def learn_pair(
        self, rows: Ints, x: Floats, columns: Ints, a: Floats, reward: float, weight: float
    ) -> None:
        """One implicit step."""
        self.weights.step(rows, x, columns, a, reward, weight)

    def age(self, rewards: int) -> None:
        """Contexts and ids that have not been met for long leave; `rewards` have been learned from."""
        rows, ids = self.rows.idle(rewards), self.ids.idle(rewards)
        if len(rows) or len(ids):
            self.weights.leave(rows, ids)

    def record(self, rows: Ints, column: int, reward: float, explored: bool, rewards: int) -> None:
        """Count what was served, in which context, and what it earned; `rewards` were before it."""
        self.rows.meet(rows, rewards)
        self.ids.meet(np.array([column]), rewards)
        before = column, float(self.served[column]), float(self.earned[column])
        self._before = (*self._before, before)
        self.served[column] += 1.0
        self.earned[column] += reward
        self.explored += explored

    def mark(self) -> RewardsMark:
        self.contexts.mark()
        self.items.mark()
        self._before = ()
        self.rows.mark()
        self.ids.mark()
        return self.weights.mark(), self.explored, self.more, self.apprentice.mark()

    def rewind(self, mark: RewardsMark) -> None:
        weights, self.explored, self.more, apprentice = mark
        for column, served, earned in reversed(self._before):
            self.served[column], self.earned[column] = served, earned
        self._before = ()
        self.rows.rewind()
        self.ids.rewind()
        self.apprentice.rewind(apprentice)
        self.contexts.uncount()
        self.items.uncount()
        self.weights.rewind(weights)

    def describe(self, names: Sequence[str], ids: Sequence[bool]) -> dict[str, Json]:
        """Items by how often they were served, exploration, the apprentice."""
        places = [place for place, is_id in enumerate(ids) if is_id and self.served[place]]
        places.sort(key=lambda place: (-self.served[place], place))
        width = self.high - self.low
        total = float(sum(self.served[place] for place in places))
        shown: list[Json] = [
            {
                "id": names[place],
                "share": float(self.served[place]) / total,
                "mean_reward": self.low + width * float(self.earned[place] / self.served[place]),
            }
            for place in places[:MOST]
        ]
        more: dict[str, Json] = {}
        if self.apprentice.share > 0.0:
            more["apprentice"] = self.apprentice.describe()
        if len(self.weights.shares) > 1:
            more["memories"] = self.weights.describe()
        explored = self.explored / total if total else None
        mean = (
            self.low + width * float(sum(self.earned[place] for place in places)) / total if total else None
        )
        return {"mean_reward": mean, "explored": explored, "items": shown, **more}

    def arrays(self) -> Arrays:
        rows, columns = self.weights.rows, self.weights.columns
        state = self.weights.arrays()
        state |= {"served": self.served[:columns], "earned": self.earned[:columns]}
        state |= {f"rows/{name}": array for name, array in self.rows.arrays(rows).items()}
        state |= {f"ids/{name}": array for name, array in self.ids.arrays(columns).items()}
        state |= {f"contexts/{name}": array for name, array in self.contexts.arrays(max(rows - 1, 0)).items()}
        state |= {f"items/{name}": array for name, array in self.items.arrays(columns).items()}
        return state | self.apprentice.arrays()

    def counters(self) -> Counters:
        return {"explored": self.explored, "more": self.more, "apprentice": self.apprentice.counters()}

    def upgraded(self, counters: Counters) -> tuple[Counters, Arrays]:
        """Release 0.2 had no slots, and its evidence was not of draws: an apprentice starts its proof anew."""
        if counters.keys() != {"explored", "apprentice"}:
            return counters, {}
        fresh = Apprentice(self.apprentice.share)
        now = {"explored": counters["explored"], "more": 0, "apprentice": fresh.counters()}
        return now, fresh.arrays()

    def modern(self, arrays: Arrays) -> Arrays:
        """What was met before it was written down when is taken as met just now."""
        arrays = self.weights.modern(arrays)
        if "ids/times" in arrays:
            return arrays
        now = float(total(arrays["served"]))
        contexts = np.concatenate(([now], arrays["contexts/counts"]))
        times = {"rows": contexts, "ids": arrays["served"]}
        return {
            **arrays,
            **{f"{kind}/times": np.array(counts, dtype=np.float64) for kind, counts in times.items()},
            **{f"{kind}/last": np.full(len(counts), now) for kind, counts in times.items()},
        }

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.weights.restore(arrays)
        shape = self.weights.rows, self.weights.columns
        if len(arrays["served"]) != shape[1] or len(arrays["earned"]) != shape[1]:
            raise ValueError("what the items earned does not fit the weights")
        self.served, self.earned = np.array(arrays["served"]), np.array(arrays["earned"])
        sizes = {"contexts": max(shape[0] - 1, 0), "items": shape[1]}
        for scaling, kind in ((self.contexts, "contexts"), (self.items, "items")):
            parts = {name: np.array(arrays[f"{kind}/{name}"]) for name in ("counts", "means", "deviations")}
            scaling.restore(parts, sizes[kind])
        self.rows.restore(arrays["rows/times"], arrays["rows/last"], shape[0])
        self.ids.restore(arrays["ids/times"], arrays["ids/last"], shape[1])
        self.explored, self.more = counters["explored"], counters["more"]
        self.apprentice.restore(arrays, counters["apprentice"])

    def nbytes(self) -> int:
        return self.weights.nbytes() + 64 * (self.weights.rows + self.weights.columns)

    # A choice has its own learner, which asks for none of these.

    def grow(self, features: int, columns: int) -> None:
        raise TypeError("a choice grows by contexts and items")

    def decide(self, x: X, loss: str | None = None) -> Decision:
        raise TypeError("a choice is drawn by its learner")

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        return None

    def judge(self, decision: Decision, y: Y) -> float:
        raise TypeError("a choice is judged by its reward")

    def loss(self, sigma: Sigma, y: Y) -> float:
        raise TypeError("a choice is judged by its reward")

    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        raise TypeError("a choice learns from pairs")
