"""What Predtron's theory proves: margins, the constants of a loss, loss bounds and the learning rates they ask for.

R bounds the instances, in the norm that each bound names; gamma is the margin of a unit-norm W* on all of them.
"""

from __future__ import annotations

import math

import numpy as np

from ..instances import Floats
from ..losses import rankings as losses
from ..tasks import finite, multilabel, one_class, permutations
from ..tasks.task import Task, Y

__all__ = [
    "constants",
    "corollary_2",
    "corollary_5",
    "corollary_6",
    "corollary_7",
    "corollary_8",
    "margin",
    "rate_1",
    "rate_14",
    "rate_15",
    "strong_convexity",
    "theorem_1",
    "theorem_14",
    "theorem_15",
]


def margin(task: Task, t: Floats, y: Y, slack: float = 1e-12) -> float:
    """The margin of the scores t on y: min_{sigma_y} <rep(sigma_y), t> - max_{sigma wrong} <rep(sigma), t>.

    Positive only if t is compatible with y: all correct decisions equally similar, as Section 2.2 asks (for rankings:
    equal grades have equal scores). Where they are not, it is at most 0.
    """
    d = t.size
    # The correct decision closest to -t is the one farthest from t.
    least = float(task.rep(task.correct(y, -t), d) @ t)
    most = float(task.rep(task.correct(y, t), d) @ t)
    rival = task.rival(y, t)
    gap = math.inf if rival is None else least - float(task.rep(rival, d) @ t)
    compatible = most - least <= slack * float(np.linalg.norm(t))
    return gap if compatible else min(gap, 0.0)


def constants(task: Task, m: int, Y_max: int = 1) -> tuple[float, float]:
    """(c_L, C_L): bounds on the least loss above 0 and on the largest, for m labels or items and grades 0 .. Y_max.

    They are attained but for rankings, where c_L is the proof's lower bound and C_L = 1.
    """
    if isinstance(task, finite.Finite):
        return float(task.L[task.L > 0.0].min(initial=math.inf)), float(task.L.max())
    if isinstance(task, one_class.Costs):
        beyond = [row - row.min() for row in (task.matrix.of(y, m) for y in range(m))]
        least = min(float(row[row > 0.0].min(initial=math.inf)) for row in beyond)
        return least, max(float(row.max()) for row in beyond)
    if isinstance(task, one_class.Ordinal):
        return 1.0, float(m - 1)
    if isinstance(task, one_class.Reject):
        costs = [1.0, *(cost for cost in map(task.cost, range(m)) if cost > 0.0)]
        return min(costs), max(costs)
    if isinstance(task, one_class.Binary | one_class.Multiclass):
        costs = [cost for cost in map(task.cost, range(m)) if cost > 0.0]
        return min(costs), max(costs)
    if isinstance(task, multilabel.SubsetZeroOne):
        return 1.0, 1.0
    if isinstance(task, multilabel.Hamming):
        return 1.0, float(m)
    if isinstance(task, multilabel.ErrorSetSize):
        return 1.0, float((m // 2) * (m - m // 2))
    if isinstance(task, multilabel.Multilabel):
        return _subset_constants(task, m)
    if isinstance(task, permutations.Precision):
        return 1.0 / task.k, 1.0
    # The last of R relevant items one place too low costs 1 / (R (R + 1)).
    if isinstance(task, permutations.AP):
        return 1.0 / (max(m, 2) * (max(m, 2) - 1)), 1.0
    if isinstance(task, permutations.NDCG):
        if (task.gain, task.discount) != ("exponential", "log"):
            # A wrong order has two neighbours against their gains, which differ by 1 at least: swapping them gains so much.
            D = losses.discounts(max(m, 2), task.discount)
            most = float(Y_max) if task.gain == "linear" else 2.0**Y_max - 1.0
            return float(D[-2] - D[-1]) / (most * float(D.sum())), 1.0
        return 1.0 / (2.0 * (2.0**Y_max - 1.0) * m**2 * math.log2(m + 1) ** 2), 1.0
    raise TypeError(f"no constants are known for {type(task).__name__}: take the extremes of its loss")


def _subset_constants(task: multilabel.Multilabel, m: int) -> tuple[float, float]:
    """The extremes of f over all counts with a + b + c + d = m, one |y| at a time."""
    least, most = math.inf, 0.0
    for relevant in range(m + 1):
        c, b = np.arange(relevant + 1)[:, None], np.arange(m - relevant + 1)
        f = np.asarray(task.f(relevant - c, b, c, m - relevant - b), dtype=np.float64)
        least = min(least, float(f[f > 0.0].min(initial=math.inf)))
        most = max(most, float(f.max()))
    return least, most


def theorem_1(R: float, gamma: float, c_L: float, C_L: float) -> float:
    """Algorithm 1: sum L <= 4 R^2 C_L^2 / (c_L gamma^2), ||X||_2 <= R, ||W*||_F = 1."""
    return 4.0 * R**2 * C_L**2 / (c_L * gamma**2)


def rate_1(R: float, c_L: float) -> float:
    """eta = c_L / (4 R^2), for Theorem 1.

    c_L may be replaced by the round's own loss L: a step brings W closer to the separator C_L W*/gamma by
    2 eta L - 4 eta^2 R^2 = L^2 / (4 R^2) in squared norm, so sum L <= sum L^2 / c_L stays under the same bound.
    """
    return c_L / (4.0 * (R * R))


def theorem_14(R: float, gamma: float, C_L: float) -> float:
    """Algorithm 2 (loss-driven): sum L <= 4 R^2 C_L / gamma^2."""
    return 4.0 * R**2 * C_L / gamma**2


def rate_14(R: float, C_L: float) -> float:
    """eta = 1 / (4 C_L R^2), for Theorem 14."""
    return 1.0 / (4.0 * C_L * (R * R))


def theorem_15(R: float, gamma: float, c_L: float, C_L: float, alpha: float) -> float:
    """Algorithm 3: sum L <= 4 R^2 C_L^2 / (alpha c_L gamma^2).

    psi is alpha-strongly convex for ||.||, ||W*|| = 1, and |||X||| <= R in the norm of Eq. (6).
    """
    return theorem_1(R, gamma, c_L, C_L) / alpha


def rate_15(R: float, c_L: float, alpha: float) -> float:
    """eta = alpha c_L / (4 R^2), for Theorem 15."""
    return alpha * rate_1(R, c_L)


def strong_convexity(q: float) -> float:
    """alpha = r - 1 = 1 / (q - 1) of psi = 1/2 ||.||_r^2, r = q / (q - 1)."""
    return 1.0 / (q - 1.0)


def corollary_2(R: float, gamma: float, alpha_1: float, alpha_2: float) -> float:
    """Weighted binary loss, alpha_1 >= alpha_2: sum L <= 4 R^2 alpha_1^2 / (alpha_2 gamma^2).

    Printed with alpha_2^2, which Theorem 1 does not give and which fails for large costs: doubling both doubles the
    loss, but would leave that bound as it is.
    """
    return theorem_1(R, gamma, alpha_2, alpha_1)


def corollary_5(R: float, gamma: float, m: int, Y_max: int) -> float:
    """Subset ranking, NDCG: sum L <= 2^(Y_max + 3) m^2 log2(2m)^2 R^2 / gamma^2, ||X||_op <= R."""
    return 2.0 ** (Y_max + 3) * m**2 * math.log2(2 * m) ** 2 * R**2 / gamma**2


def corollary_6(R: float, gamma: float, m: int, Y_max: int, p: int) -> float:
    """Subset ranking in the l1 norm: 9 log p times Corollary 5; ||w*||_1 = 1, columns of X of length at most R.

    log p is taken as at least 1, since q = max(2, log p).
    """
    return 9.0 * max(1.0, math.log(p)) * corollary_5(R, gamma, m, Y_max)


def corollary_7(R: float, gamma: float, m: int, Y_max: int) -> float:
    """Label ranking, NDCG: as Corollary 5, with ||X||_2 <= R."""
    return corollary_5(R, gamma, m, Y_max)


def corollary_8(R: float, gamma: float, m: int, Y_max: int, p: int) -> float:
    """Label ranking in the group norm: as Corollary 6, with ||X||_inf <= R and ||W*||_{2,1} = 1."""
    return corollary_6(R, gamma, m, Y_max, p)
