"""The client library: `Client`, `AsyncClient`, typed replies, one exception tree. Mail is in `feedrank.clients.mail`."""

from .client import AsyncClient, Client, Retry
from .exceptions import (
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    InvalidResponse,
    NoReply,
    NotFound,
    Refused,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    UnknownInput,
)
from .replies import Entry, Learner, Outcome, Prediction, Progress
from .requests import item_table

__all__ = [
    "AsyncClient",
    "BadRequest",
    "Client",
    "ClientError",
    "Conflict",
    "Entry",
    "Forbidden",
    "Gone",
    "Invalid",
    "InvalidResponse",
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
    "UnknownInput",
    "item_table",
]
