"""Features of every kind for the kernels, and the bits of what they give."""

import numpy as np
from hypothesis import strategies as st

from feedrank.learners.kernel import reference

NUMBERS = (
    st.floats(-1e100, 1e100) | st.integers(-(2**53), 2**53) | st.sampled_from([0, 0.0, -0.0, 5e-324, 1e-200])
)
NAMES = (
    st.text(min_size=1, max_size=12)
    | st.sampled_from(["a", "b", "\ud800", "über", "\U0001f600", "\x00"])
    | st.sampled_from(["s:a", "s:b", "f:a", "f:x:y", "f:", ":", "\ud800:a", "ü:b"])
)
FEATURES = (
    st.lists(NAMES, max_size=12)
    | st.dictionaries(NAMES, NUMBERS, max_size=12)
    | st.lists(NUMBERS, max_size=8)
)


def as_reference(features):
    if isinstance(features, dict):
        return reference.Features(list(features), np.array(list(features.values()), dtype=np.float64))
    if features and isinstance(features[0], str):
        return reference.Features(features)
    values = np.array(features, dtype=np.float64)
    return reference.Features([str(i) for i in range(len(values))], values)


def bits(array):
    array = np.asarray(array)
    return array.dtype.str, array.shape, array.tobytes()
