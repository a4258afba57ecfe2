"""Learn from a DataFrame of pandas, get predictions as one: see `feedrank.compat.frames`. Tests: tests/test_compat.py."""

from .frames import Remote
from .frames import learn_frame as learn
from .frames import predict_frame as predict

__all__ = ["Remote", "learn", "predict"]
