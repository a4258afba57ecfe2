"""Write clients/replies.py from the contract's models: `python scripts/client_types.py`.

The client imports nothing of the service, so that its types are written, not imported. What they leave out on purpose:
objects that only a few look into stay plain JSON, and a text that is one of several stays any text, since a newer service
may know more of them. What the contract lets a reply leave out, or send as null, has a default.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from feedrank.service.contract import (  # noqa: E402
    experiment_bodies,
    experiment_models,
    log_models,
    reply_models,
    sureness_models,
)

PAGE = ROOT / "clients" / "replies.py"
WIDTH = 100
# One call replies with either model of a pair: what only one of them has may be missing.
TYPES: dict[str, tuple[type[BaseModel], ...]] = {
    "Entry": (reply_models.RankingEntry,),
    "Prediction": (reply_models.Prediction, experiment_bodies.ExperimentPrediction),
    "Outcome": (reply_models.Outcome,),
    "Predictions": (reply_models.Predictions,),
    "Outcomes": (reply_models.Outcomes,),
    "Progress": (reply_models.Progress,),
    "Expert": (reply_models.Expert,),
    "Learner": (reply_models.Learner,),
    "CatalogEntry": (reply_models.ListedLearner,),
    "Learners": (reply_models.Learners,),
    "Point": (reply_models.Point,),
    "History": (reply_models.History,),
    "LabelCount": (reply_models.LabelCount,),
    "LabelCounts": (reply_models.LabelCounts,),
    "FeatureWeight": (reply_models.FeatureWeight,),
    "Weights": (reply_models.Weights,),
    "Events": (log_models.Events,),
    "Renamed": (log_models.Renamed,),
    "Retracted": (log_models.Retracted,),
    "RetractedMany": (log_models.RetractedMany,),
    "Erased": (log_models.Erased,),
    "ErasedEverywhere": (log_models.ErasedEverywhere,),
    "ClicksSoFar": (reply_models.ClicksSoFar,),
    "RewardSoFar": (reply_models.RewardSoFar,),
    "QueueEntry": (sureness_models.QueueEntry,),
    "Queue": (sureness_models.Queue,),
    "Reliability": (sureness_models.Reliability,),
    "Alias": (reply_models.Alias,),
    "Aliases": (reply_models.Aliases,),
    "Experiment": (experiment_models.Experiment,),
    "Assigned": (experiment_bodies.Assigned,),
    "Unit": (experiment_bodies.Unit,),
    "UnitPage": (experiment_bodies.UnitPage,),
}
BASES = {"Entry": "Named"}
HEAD = '''"""Typed replies of the service. Decoding checks the types: a reply that differs raises InvalidResponse.

Written by scripts/client_types.py from the contract of the service: change it there. Fields that this version does not know
are ignored, so newer services may add some.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .payloads import JSON, Named

__all__ = [
'''


def page() -> str:
    """The module."""
    names = "".join(f'    "{name}",\n' for name in sorted(TYPES))
    return HEAD + names + "]\n" + "".join(map(written, TYPES, TYPES.values()))


def written(name: str, models: Sequence[type[BaseModel]]) -> str:
    """One class."""
    fields: dict[str, list[FieldInfo]] = {}
    for model in models:
        for field, info in model.model_fields.items():
            fields.setdefault(field, []).append(info)
    base = f"({BASES[name]})" if name in BASES else ""
    lines = ["", "", "@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}{base}:"]
    lines += [f'    """{models[0].__doc__}"""', ""]
    for field, infos in fields.items():
        lines += comments(infos[0].description)
        lines.append(f"    {field}: {declared(infos, len(models))}")
    return "\n".join(lines) + "\n"


def comments(description: str | None) -> list[str]:
    """What the contract says of a field, above it."""
    lines, rest = list[str](), (description or "").split()
    while rest:
        line = "    #"
        while rest and len(line) + len(rest[0]) < WIDTH:
            line += f" {rest.pop(0)}"
        lines.append(line)
    return lines


def declared(infos: Sequence[FieldInfo], models: int) -> str:
    """The type of a field, and its default."""
    kinds = list(dict.fromkeys(kind for info in infos for kind in alternatives(info.annotation)))
    optional = "None" in kinds or len(infos) < models
    if optional:
        kinds = [kind for kind in kinds if kind != "None"] + ["None"]
    union = " | ".join(kinds)
    if optional:
        return f"{union} = None"
    if all(info.is_required() for info in infos):
        return union
    default = infos[0].default
    return (
        f"{union} = field(default_factory={type(default).__name__})"
        if default == []
        else f"{union} = {json.dumps(default) if isinstance(default, str) else repr(default)}"
    )


def alternatives(kind: Any) -> list[str]:
    """The types that a field may have, each as it is written."""
    if get_origin(kind) in (Union, types.UnionType):
        return [text for part in get_args(kind) for text in alternatives(part)]
    return [spelled(kind)]


def spelled(kind: Any) -> str:
    """One type as it is written."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is type(None):
        return "None"
    if origin is Literal:
        return "str"
    if parts and hasattr(kind, "__metadata__"):  # a number within bounds
        return spelled(parts[0])
    if origin is list:
        return f"list[{' | '.join(alternatives(parts[0]))}]"
    if origin is dict:
        return "JSON" if parts[1] is Any else f"dict[str, {' | '.join(alternatives(parts[1]))}]"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        names = [name for name, models in TYPES.items() if kind in models]
        return names[0] if names else "JSON"
    if kind not in (str, int, float, bool):
        raise TypeError(f"no client type for {kind}")
    return str(kind.__name__)


if __name__ == "__main__":
    PAGE.write_text(page())
