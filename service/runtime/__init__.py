"""The runtime: writes events to logs, computes learners from logs, and answers requests from them."""

from .host import Host

__all__ = ["Host"]
