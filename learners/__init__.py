"""All algorithms, pure: NumPy and SciPy, no I/O, no clock, no globals.

learner = build({"task": "multiclass"})
learner.learn({"features": ["cheap", "pills"]}, {"label": "junk"})
learner.predict({"features": ["pills"]}).label
"""

from . import algorithms, registry, tasks
from .codec import dump, fingerprint, load, pieces
from .errors import (
    FeedrankError,
    InputError,
    InstanceError,
    OptionError,
    SnapshotError,
    SpecError,
    TruthError,
)
from .instances import FeatureVector, ItemList
from .learner import Learner, build
from .results import Outcome, Prediction
from .vocabulary import reference

__all__ = [
    "FeatureVector",
    "FeedrankError",
    "InputError",
    "InstanceError",
    "ItemList",
    "Learner",
    "OptionError",
    "Outcome",
    "Prediction",
    "SnapshotError",
    "SpecError",
    "TruthError",
    "build",
    "dump",
    "fingerprint",
    "load",
    "pieces",
    "reference",
]

registry.discover((tasks, algorithms))
