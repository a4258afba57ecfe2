"""The automatic learner's whole round in the kernel, where the scores say what is decided, or costs of single labels do.

The kernel works on the arrays of the pieces, which stay theirs: it is shown them again after every change by a piece. The
numbers that are no arrays go with a plan, come back changed, and are kept when it is committed.

Experts that have no round in the kernel are scored by their pieces, and learn by them just before the others do.
"""

from typing import Any

from ... import kernel
from ...kernel import Table
from ...scaling import Scaling
from ...tasks.multilabel import Hamming, SubsetZeroOne
from ...tasks.one_class import Multiclass
from .adagrad import AdaGrad
from .by_pieces import BY_PIECES, ByPieces
from .decisions import ByGrade, ByScores, Decider, Weighted, WithReject
from .dual_ascent_expert import DualAscentExpert
from .entropy_expert import Entropy
from .experts import BIAS_SIZE, Expert
from .least_squares import LeastSquares
from .naive_bayes import NaiveBayes
from .trees import Trees

ORDER = 6
NO_SUMS, NO_WORDS, NO_CURVES = (0, 0.0, 0.0, 0.0, True), (0.0, 0.0), (1.0, 0)


class FusedBlend:
    """See above; `blend` is the model, `mode` what is right: see `mode_of`."""

    blend: Any
    mode: int
    scaling: Scaling

    def __init__(self, blend: Any, mode: int, table: Table, scaling: Scaling) -> None:
        self.blend, self.mode, self.scaling = blend, mode, scaling
        self.rounds: Any = kernel.BlendRounds(table)
        self._bound = False
        self._pieces = ByPieces(blend, scaling.bias)
        self._dual = _of(blend.experts, DualAscentExpert)
        self._words = _of(blend.experts, NaiveBayes)
        self._curves = _of(blend.experts, LeastSquares)
        self._rare = _of(blend.experts, AdaGrad)
        self._entropy = _of(blend.experts, Entropy)
        self._trees = _of(blend.experts, Trees)

    def clear(self) -> None:
        """The arrays are about to change."""
        if self._bound:
            self._bound = False
            self.rounds.clear()

    def _bind(self) -> None:
        blend, pool = self.blend, self.blend.pool
        trust = (pool.a, pool.A, pool.losses, pool.w, pool.weights, pool.prior, pool.present, pool.doubt)
        experts = [
            (BY_PIECES, expert.present, expert.scale, 0.0)
            if expert.kind < 0
            else (expert.kind, *expert.fused())
            for expert in blend.experts
        ]
        decider = blend.decider
        costs = decider.costs if isinstance(decider, Weighted | WithReject) else None
        own = blend.calibration.sums, blend.losses, blend.seen, blend.view, costs
        scaling = self.scaling
        rows = self.mode, scaling.statistics, scaling.bias, BIAS_SIZE, scaling.idf
        self.rounds.bind((*rows, trust, *own, experts, self._pieces.scores, self._order()))
        self._bound = True

    def _order(self) -> tuple[Any, ...] | None:
        """The loss of an order, and what the lead over the first expert is bet with."""
        if self.mode != ORDER:
            return None
        blend, task = self.blend, self.blend.decider.task
        wealth = None if blend.lead is None else blend.lead.wealth
        return task.measure, task.cutoff or 0, task.of_places(max(blend.labels, 1))[1], wealth

    def predict(self, instance: Any, top: int, names: list[str]) -> tuple[Any, ...] | None:
        """(ranking, margin, decision, probabilities), or None."""
        if not self._bound:
            self._bind()
        words = NO_WORDS if self._words is None else (self._words.all_words, self._words.all_events)
        size = 1.0 if self._curves is None else self._curves.size
        reply: tuple[Any, ...] | None = self.rounds.predict(instance, top, names, words, size)
        return reply

    def plan(self, instance: Any, y: Any, weight: float) -> tuple[float, bool, tuple[Any, ...]] | None:
        """(loss, updated, what `commit` needs), or None."""
        if not self._bound:
            self._bind()
        blend, dual, words, curves = self.blend, self._dual, self._words, self._curves
        pool, drift = blend.pool, blend.drift_alarm
        planned = self.rounds.plan(
            instance,
            y > 0.0 if self.mode == ORDER else y,
            weight,
            (pool.gaps, pool.loss),
            (drift.count, drift.sum, *drift.evidence),
            NO_SUMS if dual is None else dual.ascent.sums,
            NO_WORDS if words is None else (words.all_words, words.all_events),
            NO_CURVES if curves is None else (curves.size, curves.events),
        )
        if planned is None:
            return None
        loss, trust, (count, total, *evidence), *rest = planned
        if not self._pieces.plan(y, weight, self.rounds.linked, rest[-1]):
            return None
        after = (blend.rounds + 1, trust, (drift.rounds + 1, count, total, tuple(evidence)), *rest)
        return loss, True, after

    def commit(self, after: tuple[Any, ...]) -> None:
        """What was planned; behind the kernel's step nothing is called or made any more."""
        rounds, trust, alarm, sums, counted, curved, features = after
        blend, dual, words, curves = self.blend, self._dual, self._words, self._curves
        pool, drift = blend.pool, blend.drift_alarm
        rare = self._rare
        self._pieces.commit(self.rounds.commit)
        blend.rounds, blend.features = rounds, features
        pool.gaps, pool.loss = trust
        drift.rounds, drift.count, drift.sum, drift.evidence = alarm
        if dual is not None:
            dual.ascent.sums = sums
        if words is not None:
            words.all_words, words.all_events = counted
            words.features = features
        if rare is not None:
            rare.features = features
        if self._entropy is not None:
            self._entropy.features = features
        if self._trees is not None:
            self._trees.features = features - self.scaling.bias
        if curves is not None and curves.present:
            curves.size, curves.events = curved
            curves.features = features - self.scaling.bias


def mode_of(decider: Decider) -> int | None:
    """0: one label; 1, 2: a set, judged by its labels or as a whole; 3: a grade; 4, 5: one label, with costs; 6: an order.

    The costs are those of missing the label, or of rejecting all. None: the kernel has no such decision.
    """
    if isinstance(decider, ByScores):
        if decider.task.measure is not None:
            return ORDER
        return {Multiclass: 0, Hamming: 1, SubsetZeroOne: 2}.get(type(decider.task))
    return {ByGrade: 3, Weighted: 4, WithReject: 5}.get(type(decider))


def _of(experts: list[Expert], kind: type[Any]) -> Any:
    return next((expert for expert in experts if isinstance(expert, kind) and expert.kind >= 0), None)
