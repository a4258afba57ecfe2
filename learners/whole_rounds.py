"""Whole rounds on one vector in the native kernel: what the pieces of a model do, in two calls, with the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .tasks.task import Task, Y

if TYPE_CHECKING:
    from .model import Surrogate


class WholeRound(Protocol):
    """Whole rounds in the kernel, in two calls for a prediction and its feedback. None leaves an instance to the pieces."""

    def predict(self, instance: object, top: int, names: list[str]) -> tuple[Any, ...] | None:
        """Ranking, margin, decision, known and unknown features, and probabilities where there are any.

        Of all labels where top is below 0.
        """

    def plan(self, instance: object, y: Y, weight: float) -> tuple[float, bool, tuple[Any, ...]] | None:
        """(loss, updated, what `commit` needs); nothing is changed yet."""

    def commit(self, after: tuple[Any, ...]) -> None:
        """What was planned: all of it, or, whatever is raised, nothing."""

    def clear(self) -> None:
        """Forget the last instance: names or weights have changed."""


class Fused:
    """The whole round of first-order models on linear weights whose decision is an argmax, or an order in two parts."""

    rounds: Any
    task: Task
    surrogate: Surrogate
    predict: Any
    clear: Any

    __slots__ = ("_commit", "clear", "predict", "rounds", "surrogate", "task")

    def __init__(self, rounds: Any, task: Task, surrogate: Surrogate) -> None:
        self.rounds, self.task, self.surrogate = rounds, task, surrogate
        self.predict, self._commit, self.clear = rounds.predict, rounds.commit, rounds.clear

    def plan(self, instance: object, y: Y, weight: float) -> tuple[float, bool, tuple[Any, ...]] | None:
        """(loss, updated, the surrogate's sums after it), or None."""
        cost = self.task.cost(y)
        truth, size = y > 0.0 if self.task.parts else y, cost if self.surrogate.by_loss else 1.0
        planned = self.rounds.plan(instance, truth, weight, size, self.surrogate.sums)
        if planned is None:
            return None
        mistake, updated, sums = planned
        return cost * mistake, updated, sums

    def commit(self, after: tuple[Any, ...]) -> None:
        """The step, and the sums; behind the step nothing is called or made any more."""
        self._commit()
        self.surrogate.sums = after


class FusedOrders(Fused):
    """The same where the decision is an order, a label is right or wrong, and the loss is of `losses.rankings`."""

    __slots__ = ()

    def plan(self, instance: object, y: Y, weight: float) -> tuple[float, bool, tuple[Any, ...]] | None:
        planned: tuple[float, bool, tuple[Any, ...]] | None = self.rounds.plan(
            instance, y > 0.0, weight, 1.0, self.surrogate.sums, *self.task.of_places(len(y))
        )
        return planned
