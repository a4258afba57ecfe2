"""The trees of a snapshot: every number is checked, and what follows from others is worked out again."""

import numpy as np

from ...kernel import Forest, forest
from ...weights.base import Arrays

LARGEST_COUNT = 2**53


def restored(arrays: Arrays, fresh: Forest, features: int) -> Forest:
    """`fresh`, which has learned nothing, with the state of `arrays`; ValueError where learning cannot have left it."""
    _check_clock(arrays["clock"], arrays["numbers"], features)
    rows = min(int(arrays["clock"][forest.EVENTS]), forest.WINDOW)
    columns = fresh.F.shape[1]
    shapes = {
        "X": (features, rows),
        "edges": (features, forest.EDGES),
        "Y": (rows,),
        "weights": (rows,),
        "gradients": (rows, forest.lanes_of(columns)),
        "code": (rows,),
        **{name: getattr(fresh, name).shape for name in ("splits", "cuts", "leaves", "depths", "sizes")},
    }
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("the trees have other shapes than their features, labels and events")
    _check_window(arrays, columns)
    _check_trees(arrays, features)
    for name in ("Y", "weights", "gradients", "code"):
        getattr(fresh, name)[:rows] = arrays[name]
    for name in ("splits", "cuts", "leaves", "depths", "sizes", "clock", "numbers"):
        getattr(fresh, name)[:] = arrays[name]
    fresh.X[:features, :rows], fresh.edges[:features] = arrays["X"], arrays["edges"]
    for j in range(features):
        fresh.B[j, :rows] = fresh.edges[j].searchsorted(fresh.X[j, :rows], side="left")
    for t in range(forest.TREES):
        fresh.F[:rows] += fresh.leaves[t].take(forest.codes_of(fresh, t, rows), axis=0)
    return fresh


def _check_clock(clock: forest.Words, numbers: np.ndarray, features: int) -> None:
    if clock.shape != (forest.CLOCK,) or numbers.shape != (forest.NUMBERS,):
        raise ValueError("the clock of the trees has another length")
    events, grown, phase, level, cursor, feature, bin, upto, binned = clock.tolist()
    rows = min(events, forest.WINDOW)
    last = {forest.START: rows, forest.SEARCH: features, forest.BIN: max(features - 1, 0)}.get(
        phase, features
    )
    fits = 0 <= grown < LARGEST_COUNT and 0 <= events < LARGEST_COUNT and 0 <= binned <= events
    fits = (
        fits
        and 0 <= phase <= forest.BIN
        and 0 <= level <= forest.DEPTH - (phase in (forest.SEARCH, forest.SPLIT))
    )
    fits = fits and 0 <= cursor <= last and -(phase != forest.SPLIT) <= feature < max(features, 1)
    fits = fits and 0 <= bin < forest.EDGES and 0 <= upto <= rows and 0.0 <= numbers[forest.CREDIT] < 1.0
    if not fits or (phase == forest.SPLIT and not features):
        raise ValueError("the clock of the trees stands where it cannot")


def _check_window(arrays: Arrays, columns: int) -> None:
    gradients, edges = arrays["gradients"], arrays["edges"]
    level = int(arrays["clock"][forest.LEVEL])
    sums = gradients[:, : 2 * columns]
    fits = np.abs(arrays["X"]).max(initial=0.0) <= 3.0e38
    fits = fits and (edges[:, 1:] >= edges[:, :-1]).all()
    fits = fits and arrays["Y"].min(initial=0) >= 0 and arrays["Y"].max(initial=0) < 1 << columns
    fits = fits and ((arrays["weights"] > 0.0) & (arrays["weights"] <= forest.HEAVIEST)).all()
    fits = fits and np.abs(sums.astype(np.int64)).max(initial=0) <= forest.HEAVIEST * forest.UNIT
    fits = fits and sums[:, columns:].min(initial=0) >= 0 and gradients[:, 2 * columns :].min(initial=0) >= 0
    fits = (
        fits and gradients[:, 2 * columns].max(initial=0) <= 1 and not gradients[:, 2 * columns + 1 :].any()
    )
    if not fits or arrays["code"].max(initial=0) >= 1 << level:
        raise ValueError("the window of the trees has a value that no event leaves")


def _check_trees(arrays: Arrays, features: int) -> None:
    leaves, depths, splits = arrays["leaves"], arrays["depths"], arrays["splits"]
    fits = depths.min() >= 0 and depths.max() <= (forest.DEPTH if features else 0)
    fits = fits and splits.min() >= 0 and splits.max() < max(features, 1)
    fits = fits and np.abs(leaves).max(initial=0.0) <= forest.FINE
    fits = fits and (np.rint(2.0 * forest.FINE * leaves) == 2.0 * forest.FINE * leaves).all()
    sizes = arrays["sizes"]
    if not fits or sizes.min() < 0 or sizes.max() > forest.WINDOW:
        raise ValueError("a tree has a split or a leaf that none can have")
