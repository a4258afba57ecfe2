"""Scales the features of all items of a list at once."""

import numpy as np

from ..instances import Floats, Ints
from ..kernel.elementary import log, row_total
from ..kernel.welford import CLIP, FLAT
from ..scaling import Scaling


def scaled_rows(scaling: Scaling, columns: Ints, raw: Floats, events: int) -> Floats:
    """Every item's features as `Scaling.vector` would scale them alone, all at once; 0 stays 0."""
    if not raw.size:
        return raw
    known = columns >= 0
    counts = (
        np.where(known, scaling.counts.take(columns, mode="clip"), 0.0)
        if len(scaling.counts)
        else np.zeros(len(columns))
    )
    means = (
        np.where(counts > 0.0, scaling.means.take(columns, mode="clip"), 0.0)
        if len(scaling.counts)
        else counts
    )
    deviations = scaling.deviations.take(columns, mode="clip") if len(scaling.counts) else counts
    variances = np.where(counts > 0.0, deviations, 0.0) / np.maximum(counts, 1.0)
    spreads = np.sqrt(variances)
    dense = (20.0 * counts >= 19.0 * events) & (spreads > FLAT * np.abs(means)) & (events > 0)
    sizes = np.sqrt(means * means + variances)
    sizes[sizes == 0.0] = 1.0
    z = np.where(dense, (raw - means) / np.where(dense, spreads, 1.0), raw / sizes)
    z = np.where(counts == 0.0, np.sign(raw), z)
    z = np.where(raw != 0.0, np.minimum(np.maximum(z, -CLIP), CLIP), 0.0)
    idf = np.where(dense, 0.0, 1.0 + (log(np.array([1.0 + events]))[0] - log(1.0 + counts)))
    words = z * idf
    lengths = np.sqrt(row_total((words * words).T)) if words.shape[1] else np.zeros(len(raw))
    shares = np.sqrt(row_total(((raw != 0.0) & dense).astype(np.float64).T))
    lengths[lengths == 0.0] = 1.0
    shares[shares == 0.0] = 1.0
    return np.where(dense, z / shares[:, None], words / lengths[:, None])
