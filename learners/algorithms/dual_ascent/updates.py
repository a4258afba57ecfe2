"""The three updates of Section 3: alpha, the dual variables of one round, by label.

    max  gamma sum_{r in Y} alpha_r - sum_r G(theta_r + alpha_r x)                                            Eq. (11)
    s.t. sum_r alpha_r = 0,  sum_{r in Y} alpha_r <= C,  alpha >= 0 on Y,  alpha <= 0 off Y

  I    C on the pair (r', s') that is most wrong, on mistakes only
  II   the best amount on that pair, whenever it lacks the margin gamma
  III  the optimum of (11)

A round changes weights by theta_r <- theta_r + alpha_r x: the direction is g = -alpha. None stands for no update.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...instances import Floats, Mask
from .filling import newton_fill, water_fill
from .responses import Response, Tilted

__all__ = ["UPDATES", "is_mistake", "update_I", "update_II", "update_III", "worst_pair"]

MET = 1.0 - 1e-12  # a margin that lacks this little of gamma lacks nothing but rounding

Update = Callable[[Response, Mask, float, float], Floats | None]


def worst_pair(scores: Floats, relevant: Mask) -> tuple[int, int]:
    """(r', s') of Eq. (7): the lowest relevant label and the highest other one; of equals, what joined first."""
    r = int(np.where(relevant, scores, np.inf).argmin())
    s = int(np.where(relevant, -np.inf, scores).argmax())
    return r, s


def is_mistake(scores: Floats, relevant: Mask) -> bool:
    """True where some relevant label does not stand above every other; an empty or full set has no pair to fail."""
    r, s = worst_pair(scores, relevant)
    return bool(relevant[r] and not relevant[s] and scores[r] <= scores[s])


def update_I(response: Response, relevant: Mask, C: float, gamma: float) -> Floats | None:
    """alpha_{r'} = C, alpha_{s'} = -C on a mistake."""
    del gamma
    r, s = worst_pair(response.scores, relevant)
    return _on_pair(response, r, s, C) if response.scores[r] <= response.scores[s] else None


def update_II(response: Response, relevant: Mask, C: float, gamma: float) -> Floats | None:
    """alpha_{r'} = tau, alpha_{s'} = -tau, tau the maximum over [0, C] of the dual objective."""
    r, s = worst_pair(response.scores, relevant)
    if response.scores[r] - response.scores[s] >= MET * gamma:
        return None
    return _on_pair(response, r, s, response.pair(r, s, gamma, C))


def update_III(response: Response, relevant: Mask, C: float, gamma: float) -> Floats | None:
    """The optimum of Eq. (11): exact where labels share a curve, else by Newton's method."""
    r, s = worst_pair(response.scores, relevant)
    if response.scores[r] - response.scores[s] >= MET * gamma:
        return None
    if isinstance(response, Tilted):
        return newton_fill(response, relevant, C, gamma)
    return water_fill(response, relevant, C, gamma)  # type: ignore[arg-type]


UPDATES: dict[str, Update] = {"I": update_I, "II": update_II, "III": update_III}


def _on_pair(response: Response, r: int, s: int, tau: float) -> Floats:
    alpha = np.zeros(len(response.scores))
    alpha[r], alpha[s] = tau, -tau
    return alpha
