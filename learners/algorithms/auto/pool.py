"""How far each expert is trusted: one Newton step a round on log loss, and Hedge over its result and every expert alone.

With Z the experts' log-odds (one row each), t = a' Z and p = link(t):

    Newton   g = Z (p - Y);  H = Z diag(p) Z' - (Z p)(Z p)', for bits Z diag(p (1 - p)) Z';
             A <- f A + H + (1 - f) A_0;  a <- max(0, a - A^-1 g)
    Hedge    over the members a, e_1, .., e_m (the expert alone): w_i ~ prior_i exp(-eta L_i), L_i their log losses so far,
             eta = ln(1 / least prior) / D, D the sum of the mixability gaps: AdaHedge (de Rooij et al. 2014)

The log-odds of the pool are sum_i w_i a_i' Z, so a score stays a sum over features. The forgetting makes Newton's step
follow a drift, and takes its proof away; Hedge gives it back. Log loss is convex in t, hence on every sequence whatever

    loss of the pool  <=  sum_t <w_t, losses>  <=  least loss of a member  +  2 D        (de Rooij et al., Lemma 3 and 4)

The loss of a round is in nats; for bits it is the mean over the bits.
"""

import numpy as np

from ...instances import Floats, Mask
from ...json_types import Json
from ...kernel import log, pool_round
from ...kernel.trust import DAMPING, hedge
from ...weights.base import Arrays, Counters

TRUST = 0.9  # Hedge's prior on Newton's weights; the experts share the rest


PoolMark = tuple[tuple[Floats, Floats, Floats, Mask], Floats, Floats, float, float]


class Pool:
    """a and A of Newton, L and D of Hedge; `start` is a at the start."""

    w: Floats
    weights: Floats

    def __init__(self, bits: bool, start: Floats) -> None:
        count = len(start)
        self.bits = bits
        self.start = start
        self.a: Floats = start.copy()
        self.A = DAMPING * np.eye(count)
        self.prior: Floats = np.full(1 + count, (1.0 - TRUST) / count)
        self.prior[0] = TRUST
        self.losses: Floats = np.zeros(1 + count)
        self.gaps: float = 0.0
        self.loss: float = 0.0  # of the pool
        self.present: Mask = np.ones(count, dtype=bool)
        self.doubt: float = -float(log(self.prior).min())
        self._refresh()

    # ---- weights

    def _refresh(self) -> None:
        self.w, self.weights = hedge(self.prior, self.present, self.losses, self.doubt, self.gaps, self.a)

    # ---- learning

    def leave(self, expert: int) -> None:
        """It does not take part any more."""
        self.present[expert] = False
        self.a[expert] = 0.0
        self._refresh()

    def enter(self, expert: int) -> None:
        """It takes part from now on; until now it has lost what the pool lost, as if it had always agreed."""
        self.present[expert] = True
        self.a[expert] = self.start[expert]
        self.losses[1 + expert] = self.loss
        self._refresh()

    def learn(self, Z: Floats, Y: Floats, weight: float, teaches: bool) -> None:
        """One round. A truth that nobody could know (`teaches` is False) is counted, but no reason to move."""
        state = self.a, self.A, self.losses, self.w, self.weights
        loss, self.gaps = pool_round(
            Z, Y, weight, self.bits, teaches, state, self.prior, self.present, self.doubt, self.gaps
        )
        self.loss += loss

    def mark(self) -> PoolMark:
        """What a round changes in place."""
        arrays = self.a.copy(), self.A.copy(), self.losses.copy(), self.present.copy()
        return arrays, self.w.copy(), self.weights.copy(), self.gaps, self.loss

    def rewind(self, mark: PoolMark) -> None:
        """All as it was at the mark."""
        arrays, self.w, self.weights, self.gaps, self.loss = mark
        self.a, self.A, self.losses, self.present = arrays

    def reset(self) -> None:
        """Newton's weights as at the start; what Hedge has counted stays, and its bound with it."""
        self.a = np.where(self.present, self.start, 0.0)
        self.A = DAMPING * np.eye(len(self.start))
        self._refresh()

    # ---- telling

    def certificate(self, names: list[str]) -> dict[str, Json]:
        """loss <= best + bound, whatever the events were."""
        every = ["pool", *names]
        live = [i for i, here in enumerate([True, *self.present.tolist()]) if here]
        best = min(live, key=lambda i: float(self.losses[i]))
        return {
            "theorem": "AdaHedge, de Rooij et al. 2014: loss <= best_loss + bound",
            "measure": "log loss, mean over bits" if self.bits else "log loss",
            "loss": self.loss,
            "best": every[best],
            "best_loss": float(self.losses[best]),
            "regret": self.loss - float(self.losses[best]),
            "bound": 2.0 * self.gaps,
        }

    def arrays(self) -> Arrays:
        return {"a": self.a, "A": self.A, "losses": self.losses}

    def counters(self) -> Counters:
        return {"gaps": self.gaps, "loss": self.loss, "present": self.present.tolist()}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("another number of experts")
        self.a, self.A, self.losses = arrays["a"], arrays["A"], arrays["losses"]
        self.gaps, self.loss = counters["gaps"], counters["loss"]
        self.present = np.array(counters["present"], dtype=bool)
        self._refresh()
