"""The Host folds logs into learners and answers requests from them."""

from .host import Host
from .settings import HostSettings

__all__ = ["Host", "HostSettings"]
