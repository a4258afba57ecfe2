"""The automatic learner on labels: experts on the same inputs, a pool of their log-odds, a decision of least expected cost.

A task is target bits, a link and a decision:

    binary, multiclass   one of K bits is 1                          softmax
    label-ranking        the relevant labels share one unit          softmax
    multilabel           any bits are 1                              sigmoid
    ordinal              thermometer: bit k says grade > k           sigmoid; |grade - guess| is their Hamming loss

Order of a round: score, decide; the pool learns, the experts learn; then calibration and drift alarm. After an alarm the
experts that cannot forget begin anew.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernel
from ...instances import Floats, Matrix
from ...json_types import Json
from ...kernel import Table, sigmoid, softmax, times
from ...losses.costs import CostMatrix
from ...model import Decision, Model
from ...results import ExpertRow
from ...scaling import ScaledVector, Scaling
from ...tasks.task import Sigma, Y
from ...unknown_labels import Before, loss_before
from ...weights.base import Arrays, Counters, X
from .calibration import Calibration
from .decisions import Decider
from .drift import Drift
from .experts import Expert, Inputs, Target
from .fused import FusedBlend, mode_of
from .lead import Lead
from .pool import Pool
from .stage import Stage, known_columns, stage_of


class Blend(Model):
    """`kind` is the task's: "class", "ranking", "set" or "grade"."""

    def __init__(
        self, kind: str, labels: int, bias: bool, decider: Decider, experts: Sequence[Expert], start: Floats
    ) -> None:
        self.kind = kind
        self.bits: bool = kind in ("set", "grade")
        self.bias: int = int(bias)
        self.decider = decider
        self.experts: list[Expert] = list(experts)
        self.pool: Pool = Pool(self.bits, start)
        self.calibration: Calibration = Calibration(kind)
        self.drift_alarm: Drift = Drift()
        # Label ranking starts from its first expert alone, and leaves it for a lead that is proved.
        self.lead: Lead | None = Lead() if kind == "ranking" and len(self.experts) > 1 else None
        self.losses: Floats = np.zeros(len(self.experts))
        self.rounds: int = 0
        self.features: int = 0
        self.labels: int = 0
        self.seen: Floats = np.zeros(0)  # events of every column
        for i, expert in enumerate(self.experts):
            if not expert.present:  # it waits for something
                self.pool.leave(i)
        if decider.view is not None:
            self.view = decider.view
        elif kind == "class" and labels == 2:
            self.view: Floats | None = np.array([[0.5, -0.5], [-0.5, 0.5]])

    # ---- what joins

    def columns(self, labels: int) -> int:
        return max(labels - 1, 0) if self.kind == "grade" else labels

    def grow(self, features: int, columns: int) -> None:
        if columns != len(self.seen):
            seen = np.zeros(columns)
            seen[: len(self.seen)] = self.seen
            self.seen = seen
        self.labels, self.features = columns, features
        for i, expert in enumerate(self.experts):
            expert.grow(features, columns)
            if not expert.present and self.pool.present[i]:
                self.pool.leave(i)

    def place(self, first: int, width: int) -> None:
        for i, expert in enumerate(self.experts):
            before = expert.present
            expert.place(first, width)
            if expert.present and not before:
                self.pool.enter(i)

    def mark(self) -> Any:
        """Copies of what is small and changed in place; the experts keep what they change."""
        experts = [expert.mark() for expert in self.experts]
        own = self.losses.copy(), self.seen.copy(), self.rounds, self.features, self.labels
        lead = None if self.lead is None else self.lead.wealth
        return experts, self.pool.mark(), self.calibration.sums.copy(), self.drift_alarm.mark(), lead, own

    def rewind(self, mark: Any) -> None:
        experts, pool, self.calibration.sums, drift, lead, own = mark
        self.losses, self.seen, self.rounds, self.features, self.labels = own
        for expert, before in zip(self.experts, experts, strict=True):
            expert.rewind(before)
        self.pool.rewind(pool)
        self.drift_alarm.rewind(drift)
        if self.lead is not None:
            self.lead.wealth = lead

    def price(self, costs: Sequence[float]) -> None:
        self.decider.price(costs)

    def charge(self, costs: CostMatrix) -> None:
        self.decider.charge(costs)

    def group(self, blocks: Sequence[int]) -> None:
        self.decider.group(blocks)

    def fused(
        self, features: Table, scaling: Scaling | None, blocks: kernel.FeatureBlocks | None
    ) -> FusedBlend | None:
        mode = mode_of(self.decider)
        known = any(expert.kind >= 0 for expert in self.experts)
        if kernel.BlendRounds is None or scaling is None or mode is None or not known:
            return None
        return FusedBlend(self, mode, features, scaling)

    # ---- deciding

    def _weights(self) -> Floats:
        if self.lead is None or self.lead.proved:
            return self.pool.weights
        weights = np.zeros(len(self.experts))
        weights[0] = 1.0
        return weights

    def decide(self, x: X, loss: str | None = None) -> Decision:
        self.offers(loss)
        assert isinstance(x, ScaledVector)
        inputs = Inputs.of(x, self.bias)
        Z = np.zeros((len(self.experts), self.labels))
        for i, expert in enumerate(self.experts):
            if expert.present:
                np.multiply(expert.scores(inputs), expert.scale, Z[i])
        t = times(self._weights(), Z)
        linked = self._link(t)
        p = self._of_grades(linked) if self.kind == "grade" else linked
        shown = self.calibration.apply(p)
        decision = Decision(self.decider.decide(t, shown), t, judged=Stage(inputs, Z, t, linked, p, shown))
        decision.probabilities = shown
        return decision

    def _link(self, t: Floats) -> Floats:
        if not len(t):
            return t
        return sigmoid(t) if self.bits else softmax(t)

    @staticmethod
    def _of_grades(p: Floats) -> Floats:
        """P(grade = g) = P(grade > g - 1) - P(grade > g), the bits made to fall."""
        falling = np.concatenate(([1.0], np.minimum.accumulate(p), [0.0]))
        return np.asarray(falling[:-1] - falling[1:])

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        stage: Stage = decision.judged
        return self.decider.margin(stage.t, stage.shown)

    def judge(self, decision: Decision, y: Y) -> float:
        return self.decider.loss(decision.sigma, y)

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.decider.loss(sigma, y)

    # ---- learning

    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        stage: Stage = decision.judged
        if not self.labels:
            return False
        assert isinstance(x, ScaledVector)
        target, before = self.target(y, weight), decision.before
        inputs = stage.inputs if x is scored else Inputs.of(x, self.bias)
        self._judge_each(stage, y, before)
        linked = stage.linked if self.lead is None else self._link(times(self.pool.weights, stage.Z))
        target.errors = target.Y - linked
        only = target.only
        if only is None:
            teaches = self.bits or bool((self.seen[target.relevant] > 0.0).any())
        else:
            teaches = bool(self.seen[only] > 0.0)
        stage.Z[~self.pool.present] = 0.0  # also of who has left in this very round
        if before is not None:
            self._trust_known(stage.Z, target, before, teaches)
        elif self.bits or only is not None or target.relevant.any():
            self.pool.learn(stage.Z, target.Y, weight, teaches)
        for expert, s in zip(self.experts, stage.Z, strict=True):
            if expert.present:
                expert.learn(inputs, stage.inputs, s / expert.scale, target)
        judged = stage if before is None else stage_of(before)
        if judged is not None:
            right = int(y) if teaches and self.kind in ("class", "grade") else None
            self.calibration.learn(judged.p, right, target.relevant)
        self.seen[target.relevant if only is None else only] += 1.0
        loss = self.judge(decision, y) if before is None else before.loss
        if self.drift_alarm.learn(min(loss / self.decider.most(self.labels), 1.0)):
            self._begin_anew()
        return True

    def _trust_known(self, Z: Floats, target: Target, before: Before, teaches: bool) -> None:
        """The pool's round on the labels that were known: nobody could know the others."""
        known = known_columns(before)
        Y = target.Y[:known]
        share = 1.0 if self.bits else float(Y.sum())
        if known and share > 0.0:
            self.pool.learn(np.ascontiguousarray(Z[:, :known]), Y / share, target.weight, teaches)

    def target(self, y: Y, weight: float) -> Target:
        relevant = np.zeros(self.labels, dtype=bool)
        if self.kind == "class":
            relevant[y] = True
            return Target(relevant.astype(np.float64), relevant, weight, int(y))
        if self.kind == "grade":
            relevant[: int(y)] = True
        else:
            relevant = np.asarray(y) > 0
        Y = relevant.astype(np.float64)
        count = np.count_nonzero(relevant)
        return Target(Y / count if self.kind == "ranking" and count else Y, relevant, weight)

    def _judge_each(self, stage: Stage, y: Y, before: Before | None) -> None:
        """What every expert alone would have lost; the lead that the pool has over the first."""
        self.rounds += 1
        losses = [0.0] * len(self.experts)
        known = self.labels if before is None else known_columns(before)
        for i, z in enumerate(stage.Z[:, :known]):
            if self.pool.present[i]:
                losses[i] = self._lost(z, y)
        self.losses += losses
        if self.lead is not None:
            self.lead.learn(losses[0], self._lost(times(self.pool.weights, stage.Z)[:known], y))

    def _lost(self, t: Floats, y: Y) -> float:
        """What deciding by these log-odds costs, of the labels that were known."""
        if not len(t):
            return loss_before(self, None, y)
        p = self._link(t) if self.decider.asks else t
        p = self._of_grades(p) if self.decider.asks and self.kind == "grade" else p
        sigma = self.decider.decide(t, p)
        all_known = len(t) == self.labels
        return self.decider.loss(sigma, y) if all_known else loss_before(self, Decision(sigma, t), y)

    def _begin_anew(self) -> None:
        for expert in self.experts:
            expert.reset()
        self.pool.reset()

    # ---- telling

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        inputs = Inputs.of(x if isinstance(x, ScaledVector) else self._as_words(x), self.bias)
        every = np.zeros((len(x.rows) + len(self.extra_names), self.labels))
        for weight, expert in zip(self._weights().tolist(), self.experts, strict=True):
            rows, constant, random = expert.parts(inputs)
            every += weight * expert.scale * np.vstack([rows, constant[None], random[None]])
        return every

    def _as_words(self, x: X) -> ScaledVector:
        """Features by row, each with u = z = 1, of no raw value."""
        assert not isinstance(x, Matrix)
        dense = x.rows < self.bias
        return ScaledVector(x.rows, x.values, z=np.where(dense, 0.0, 1.0), dense=dense)

    extra_names: tuple[str, ...] = ("(constant)", "(random features)")
    piecewise = True

    def certificate(self) -> dict[str, Json]:
        return self.pool.certificate([expert.name for expert in self.experts])

    def expert_rows(self) -> list[ExpertRow]:
        """Name, weight in the pool's log-odds, and mean loss alone; one that has left has weight 0."""
        weights = self._weights()
        whole = float(weights.sum())
        return [
            {
                "name": expert.name,
                "weight": float(weight) / whole if whole > 0.0 else 0.0,
                "mean_loss": float(loss) / self.rounds if self.rounds and here else None,
            }
            for expert, weight, loss, here in zip(
                self.experts, weights, self.losses, self.pool.present, strict=True
            )
        ]

    def drift(self) -> dict[str, Json]:
        return self.drift_alarm.describe()

    def arrays(self) -> Arrays:
        arrays = {
            f"{expert.name}/{name}": array
            for expert in self.experts
            for name, array in expert.arrays().items()
        }
        return arrays | self._own_arrays()

    def _own_arrays(self) -> Arrays:
        pool = {f"pool/{name}": array for name, array in self.pool.arrays().items()}
        own = {"losses": self.losses, "seen": self.seen}
        return pool | self.calibration.arrays() | own

    def counters(self) -> Counters:
        return {
            "experts": {expert.name: expert.counters() for expert in self.experts},
            **self._own_counters(),
        }

    def _own_counters(self) -> Counters:
        return {
            "pool": self.pool.counters(),
            "drift": self.drift_alarm.counters(),
            "lead": None if self.lead is None else self.lead.counters(),
            "rounds": self.rounds,
        }

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        for expert in self.experts:
            start = expert.name + "/"
            own = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            expert.restore(own, counters["experts"][expert.name])
        self._restore_own(arrays, counters)

    def _restore_own(self, arrays: Arrays, counters: Counters) -> None:
        pool = {name[5:]: array for name, array in arrays.items() if name.startswith("pool/")}
        self.pool.restore(pool, counters["pool"])
        self.calibration.restore(arrays)
        self.drift_alarm.restore(counters["drift"])
        if self.lead is not None:
            self.lead.restore(counters["lead"])
        self.rounds, self.losses = counters["rounds"], arrays["losses"]
        if len(arrays["seen"]) != self.labels or len(self.losses) != len(self.experts):
            raise ValueError("another number of labels or experts")
        self.seen = arrays["seen"]

    def nbytes(self) -> int:
        features, labels = self.features, self.labels
        return sum(expert.nbytes(features, labels) for expert in self.experts) + 8 * labels

    def nbytes_for(self, features: int, labels: int) -> int:
        return sum(expert.nbytes_for(features, labels) for expert in self.experts) + 8 * labels
