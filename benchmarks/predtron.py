"""Figure 1 of the Predtron paper: subset ranking on simulated data.

    python benchmarks/predtron.py [--seeds 10]

(a) NDCG loss on fresh lists after n, for three position functions; (b) the same over the length m of the lists, n = 30;
(c) l1 against l2 margins over the number of features, where few of them matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from report import Report, arguments, track

from feedrank.learners import ItemList, build
from feedrank.learners.losses.rankings import ndcg_loss

Array = NDArray[np.float64]
Maker = Callable[[int, int, int, np.random.Generator], tuple[Array, Array]]
FUNCTIONS: dict[str, dict[str, Any]] = {
    "f(i) = 1/i": {"position": "reciprocal"},
    "f(i) = -i^1.1": {"position": "power", "exponent": 1.1},
    "f(i) = -i^2": {"position": "power", "exponent": 2.0},
}
TEST = 50


def grades(scores: Array) -> Array:
    """y = m - j iff zeta_{j+1} <= score <= zeta_j, with zeta_j = 1/j, zeta_1 = inf, zeta_{m+1} = -inf."""
    m = scores.shape[-1]
    zeta = np.concatenate([[np.inf], 1 / np.arange(2.0, m + 1)])
    return m - (scores[..., None] <= zeta).sum(axis=-1).astype(float)


def gaussian(n: int, m: int, features: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Document i is drawn around mu_i, a point of the unit sphere's scale; w* has length 1."""
    w = rng.standard_normal(features)
    w /= np.linalg.norm(w)
    mu = rng.standard_normal((m, features)) / np.sqrt(features)
    X = mu + 0.3 * rng.standard_normal((n, m, features))
    return X, grades(X @ w)


def sparse(n: int, m: int, features: int, rng: np.random.Generator, relevant: int = 3) -> tuple[Array, Array]:
    """Features uniform in [-1, 1], of which `relevant` carry w*."""
    w = np.zeros(features)
    w[rng.choice(features, relevant, replace=False)] = rng.choice([-1.0, 1.0], relevant) / relevant
    X = rng.uniform(-1, 1, (n, m, features))
    return X, grades(X @ w)


def loss_after(spec: dict[str, Any], X: Array, Y: Array, n: int) -> float:
    """Mean NDCG loss on the lists behind the first n, which are learned."""
    learner = build({"task": "subset-ranking", "algorithm": "predtron", **spec})
    ids = [str(i) for i in range(X.shape[1])]
    for x, y in zip(X[:n], Y[:n], strict=True):
        learner.learn(ItemList.dense(ids, x), {"relevance": y})
    losses = []
    for x, y in zip(X[n:], Y[n:], strict=True):
        order = np.array([int(name) for name, _ in learner.predict(ItemList.dense(ids, x)).ranking])
        losses.append(ndcg_loss(order, y))
    return float(np.mean(losses))


Setting = tuple[int, int, int]  # lists learned, items of a list, features


def curves(
    settings: Sequence[Setting], seeds: int, make: Maker, specs: dict[str, dict[str, Any]]
) -> dict[str, list[float]]:
    """The loss of every spec over the settings, the mean over the seeds."""
    lines: dict[str, list[float]] = {name: [] for name in specs}
    for n, m, features in track(settings, make.__name__):
        data = [make(n + TEST, m, features, np.random.default_rng(seed)) for seed in range(seeds)]
        for name, spec in specs.items():
            lines[name].append(float(np.mean([loss_after(spec, X, Y, n) for X, Y in data])))
    return lines


def over_rounds(counts: Sequence[int], seeds: int) -> dict[str, list[float]]:
    """(a): the loss after n lists."""
    return curves([(n, 20, 30) for n in counts], seeds, gaussian, FUNCTIONS)


def over_length(lengths: Sequence[int], seeds: int) -> dict[str, list[float]]:
    """(b): the loss after 30 lists of m documents."""
    return curves([(30, m, 30) for m in lengths], seeds, gaussian, FUNCTIONS)


def over_features(sizes: Sequence[int], seeds: int) -> dict[str, list[float]]:
    """(c): the loss of the two margins after 30 lists, over the number of features."""
    specs = {norm: {"norm": norm, **FUNCTIONS["f(i) = -i^1.1"]} for norm in ("l2", "l1")}
    return curves([(30, 20, features) for features in sizes], seeds, sparse, specs)


def main() -> None:
    parser = arguments(__doc__, "predtron")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    report = Report("Predtron, Figure 1", options.out)
    parts = [
        ("figure-1a", "n", [10, 20, 30, 60, 100], over_rounds),
        ("figure-1b", "m", [5, 10, 20, 40, 60], over_length),
        ("figure-1c", "p_0", [20, 50, 100, 200, 400, 800], over_features),
    ]
    for name, axis, values, run in parts:
        lines = run(values, 1 if options.quick else options.seeds)
        report.table(
            [f"NDCG loss, {axis} =", *map(str, values)], [[label, *line] for label, line in lines.items()]
        )
        report.plot(name, values, lines, (axis, "NDCG loss"))
    report.text(
        "(a) and (c) are as in the paper. In (b) the order of the curves is the paper's, but not their course: "
        "there the loss grows with m, here it falls. A longer list teaches more a round, and equal grades are "
        "taken in the order of the scores, where the paper's analysis asks them to score the same.\n"
    )


if __name__ == "__main__":
    main()
