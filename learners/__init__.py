"""All algorithms, pure: NumPy and SciPy, no I/O, no clock, no globals.

learner = build({"task": "multiclass"})
learner.learn({"features": ["cheap", "pills"]}, {"label": "junk"})
learner.predict({"features": ["pills"]}).label
"""

from .algorithms import build
from .codec import dump, fingerprint, load
from .errors import (
    FeedrankError,
    InputError,
    InstanceError,
    OptionError,
    SnapshotError,
    SpecError,
    TruthError,
)
from .instances import Listing, Words
from .learner import Learner
from .results import Outcome, Prediction

__all__ = [
    "FeedrankError",
    "InputError",
    "InstanceError",
    "Learner",
    "Listing",
    "OptionError",
    "Outcome",
    "Prediction",
    "SnapshotError",
    "SpecError",
    "TruthError",
    "Words",
    "build",
    "dump",
    "fingerprint",
    "load",
]
