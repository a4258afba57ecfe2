"""SciPy's sparse arrays, imported when the first one is made: most learners never make one, and a start waits for it."""

from importlib import import_module
from typing import Any

import numpy as np


def issparse(values: Any) -> bool:
    """Whether these values are a sparse array; all others here are NumPy's."""
    return not isinstance(values, np.ndarray)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("scipy.sparse"), name)
