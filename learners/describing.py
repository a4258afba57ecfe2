"""What a learner knows of itself: the parts of `GET /v1/learners/{name}` that come from the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .json_types import Json

if TYPE_CHECKING:
    from .learner import Learner


def describe(learner: Learner) -> dict[str, Json]:
    """Spec, versions of what it was made with, labels, sizes, progress, certificate, and what its algorithm adds."""
    spec, experts, drift = learner.spec, learner.model.expert_rows(), learner.model.drift()
    more = ({} if experts is None else {"experts": experts}) | ({} if drift is None else {"drift": drift})
    return {
        "spec": spec,
        **{name: spec[name] for name in ("preset", "tokenizer") if spec.get(name)},
        "version": learner.version,
        "labels": list(learner.labels),
        "features": len(learner.features) - spec["bias"],
        "bytes": learner.nbytes(),
        "progress": learner.progress.to_json(),
        "certificate": learner.certificate,
        **more,
    }
