"""The client library: `Client`, `AsyncClient`, typed replies, one exception tree. Mail is in `feedrank.clients.mail`."""

from .client import AsyncClient, Client, Retry
from .errors import (
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    Garbled,
    Gone,
    Invalid,
    NoReply,
    NotFound,
    Refused,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from .replies import Entry, Learner, Outcome, Prediction, Progress

__all__ = [
    "AsyncClient",
    "BadRequest",
    "Client",
    "ClientError",
    "Conflict",
    "Entry",
    "Forbidden",
    "Garbled",
    "Gone",
    "Invalid",
    "Learner",
    "NoReply",
    "NotFound",
    "Outcome",
    "Prediction",
    "Progress",
    "Refused",
    "Retry",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
]
