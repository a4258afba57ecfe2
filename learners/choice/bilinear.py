"""Bilinear scores s(a) = a' W x, and logistic regression of the reward by implicit steps with diagonal curvature.

W has a row for each context feature (row 0: the constant) and a column for each item feature and each id; pairs that were
never met weigh 0, at the prior's precision, and are not kept (pairs.py). With
f = x a' the outer product of the chosen item, precision A (the diagonal of the curvature, A_0 everywhere at first),
reward r in [0, 1] and weight w of the event, the step is the minimum of

    1/2 |W' - W|_A^2 + w l(<W', f>, r),    l the logistic loss.

It moves along f / A only: with v = <f, f / A>, the new score is the root of s' = s - w v (sigmoid(s') - r), and

    W <- W - w (sigmoid(s') - r) f / A,
    A <- A_0 + (1 - phi) (A - A_0) + w max(p (1 - p), 1e-4) f^2,    p = sigmoid(s').

Implicit steps need no learning rate and never overshoot, however large f is. The precision of a pair of features fades by
phi = 0.01 each time the pair is met again, W does not: so steps do not go to 0, and a reward that changes is followed.
"""

from ..instances import Floats
from ..kernel import exp_of
from ..kernel.elementary import total

PRIOR = 0.03
FORGET = 0.01
FLATTEST = 1e-4
STEPS = 100


def stepped(
    W: Floats, A: Floats, f: Floats, reward: float, weight: float, prior: float, forget: float
) -> tuple[Floats, Floats]:
    """(W', A') of the pairs that were met: they earned `reward`, in [0, 1], together."""
    direction = f / A
    s = total((W * f).ravel())
    v = weight * total((direction * f).ravel())
    p = sigmoid_of(implicit(s, v, reward))
    kept = prior + (1.0 - forget) * (A - prior)
    curved: Floats = kept + (weight * max(p * (1.0 - p), FLATTEST)) * (f * f)
    moved: Floats = W - (weight * (p - reward)) * direction
    return moved, curved


def sigmoid_of(y: float) -> float:
    """1 / (1 + e^-y) of one number."""
    return 1.0 / (1.0 + exp_of(-y))


def implicit(s: float, v: float, reward: float) -> float:
    """The root of y - s + v (sigmoid(y) - r): between s - v (1 - r) and s + v r, by Newton kept inside by halving."""
    low, high = s - v * (1.0 - reward), s + v * reward
    y = min(max(s, low), high)
    step = high - low
    for _ in range(STEPS):
        p = sigmoid_of(y)
        gap = y - s + v * (p - reward)
        if gap > 0.0:
            high = y
        else:
            low = y
        newton = gap / (1.0 + v * p * (1.0 - p))
        # Far out the curve is flat and Newton goes back and forth: a step that is not half of the last one is no good.
        inside = low < y - newton < high and 2.0 * abs(newton) <= step
        following = y - newton if inside else 0.5 * (low + high)
        step = abs(following - y)
        y = following
        if step <= 1e-13 * max(1.0, abs(y)):
            break
    return y
