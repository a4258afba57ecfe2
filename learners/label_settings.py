"""What a spec says of single labels, by name: costs, a matrix of them, blocks. The model is told by number as they join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .losses.costs import CostMatrix
from .names import Names
from .registry import Spec

if TYPE_CHECKING:
    from .model import Model

__all__ = ["LabelSettings"]


class LabelSettings:
    """Labels that the spec does not name cost 1, and are blocks of their own."""

    def __init__(self, spec: Spec) -> None:
        self._costs: dict[str, float] | None = spec.get("weights", spec.get("reject_costs"))
        self._matrix: dict[str, dict[str, float]] | None = spec.get("matrix")
        self._blocks = {name: i for i, block in enumerate(spec.get("blocks") or []) for name in block}
        self._charged = -1  # labels when the model was last told of the matrix

    def tell(self, model: Model, labels: Names) -> None:
        """Of all labels that have joined."""
        if self._costs is not None:
            model.price([self._costs.get(name, 1.0) for name in labels])
        if self._matrix is not None and len(labels) != self._charged:
            self._charged = len(labels)
            model.charge(CostMatrix(self._matrix, dict(labels.index)))
        if self._blocks:
            model.group([self._blocks.get(name, -1) for name in labels])
