"""Replies about the log: its entries, and what retracts, renames or erases."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from .json_types import JSON
from .request_models import Count


class LoggedEvent(BaseModel):
    """One entry of the log."""

    version: Count
    at: float = Field(description="seconds since 1970")
    kind: Literal["feedback", "retraction", "rename", "erased"]
    feedback_id: str | None = None
    prediction_id: str | None = None
    instance: JSON | None = None
    truth: JSON | None = None
    served: JSON | None = None
    draw: JSON | None = Field(
        None,
        description="of a choice drawn here: the probability of each item, what was excluded, the baseline",
    )
    weight: float | None = None
    min_precision: float | None = Field(None, description="of a prediction under this bound")
    audit: bool | None = Field(None, description="with `min_precision`: whether it was drawn as an audit")
    promise: Literal["account"] | None = Field(None, description="with `min_precision`: not by proof")
    subject: str | None = Field(None, description="the keyed hash of whom it is about")
    checksum: str | None = Field(None, description="of what was erased")
    retracted: bool | None = Field(None, description="of feedback: whether it was retracted")
    retracts: Count | None = Field(None, description="of a retraction: the version of the event")
    rename: dict[str, str] | None = Field(None, description="of a rename: the old labels and the new ones")


class Events(BaseModel):
    """A page of the log."""

    events: list[LoggedEvent]
    next: int | None = Field(description="`after` of the next page, or null")
    floor: Count = Field(description="the first version that is still kept")


class Retracted(BaseModel):
    """The retraction."""

    version: Count = Field(description="of the retraction")
    retracted: Count = Field(description="of the event")
    duplicate: bool
    state: Literal["done", "pending"] = Field(description="pending while the learner is being folded again")


class RetractedMany(BaseModel):
    """The retractions of a batch, in its order, and the state of the whole."""

    results: list[Retracted]
    state: Literal["done", "pending"]


class Renamed(BaseModel):
    """The labels as they are called now."""

    version: Count = Field(description="of the rename")
    renames: dict[str, str] = Field(description="of each old label, what it is called now")
    labels: list[str]
    duplicate: bool
    state: Literal["done", "pending"] = Field(description="pending while the learner is being folded again")


class Erased(BaseModel):
    """The receipt of what was erased."""

    erased: Count = Field(description="events, and remembered predictions without one")
    checksums: list[str] = Field(description="BLAKE2b-128 of what each of them held")
    version: Count = Field(description="of the learner")
    state: Literal["done", "pending"] = Field(description="pending while it goes on in the background")


class ErasedEverywhere(Erased):
    """The receipts of all learners and experiments that had something of the subject; `version` is the highest."""

    learners: dict[str, Erased]
    experiments: dict[str, Erased]
