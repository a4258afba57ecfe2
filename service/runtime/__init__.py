"""The runtime: logs become learners, events become durable, requests are answered from them."""

from .host import Host

__all__ = ["Host"]
