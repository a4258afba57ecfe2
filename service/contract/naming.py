"""Rules for names of learners, aliases and experiments, and limits on page sizes and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping

from feedrank.learners.errors import pointer

from .faults import Unprocessable
from .settings import Settings

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
SHAPE = re.compile(NAME)
LONGEST_NAME = 128
LONGEST_PAGE = 1000


def is_name(name: str) -> bool:
    """Whether it could be the name of something."""
    return SHAPE.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Refuse what can be no name."""
    if not is_name(name):
        raise Unprocessable.at(
            "",
            "a name has 1 to 128 letters, digits, dots, underscores or dashes and starts with a letter or digit",
        )


def check_limit(limit: int) -> None:
    """Refuse pages that are too long, or empty."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise Unprocessable.at("/limit", f"must be from 1 to {LONGEST_PAGE}")


def spec_members(spec: object, settings: Settings) -> int:
    """How many labels, costs or numbers a spec lists; Unprocessable if a field has more than a learner may have labels."""
    members = 0
    for field, value in spec.items() if isinstance(spec, Mapping) else ():
        if not isinstance(value, list | Mapping):
            continue
        size = len(value)
        if size <= settings.max_labels:
            size = sum(len(part) if isinstance(part, list) else 1 for part in value)
        if size > settings.max_labels:
            raise Unprocessable.at(pointer(field), f"at most {settings.max_labels} labels per learner")
        members += size
    return members


def every_name(name: str) -> bool:
    """What a caller without prefixes may see."""
    return True
