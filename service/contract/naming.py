"""Names of learners, aliases and experiments, and the lengths of their lists."""

from __future__ import annotations

import re

from .faults import Unprocessable

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


def every_name(name: str) -> bool:
    """What a caller without prefixes may see."""
    return True
