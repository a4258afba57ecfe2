"""Fixed rules: mail that always goes into a folder, mail and folders that are never filed by what was learned.

    [[account.always]]                    [[account.never]]              [[account.never]]
    from = "*@bank.example"               from = "*@family.example"      folder = "Projects/*"
    folder = "Bills"                      # such mail stays in the inbox # nothing is filed there by itself

A rule may name `from`, `to`, `subject` and `list`: patterns without regard to case, all of which must match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .message import Message

__all__ = ["Rule", "RuleError", "Rules"]

PLACES = ("from", "to", "subject", "list")


class RuleError(ValueError):
    """A rule that says nothing, or too much."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Patterns by place; `folder` is where `always` puts a message, or a pattern of the folders of `never`."""

    patterns: tuple[tuple[str, str], ...]
    folder: str | None

    @classmethod
    def of(cls, table: Any, always: bool) -> Rule:
        """A table of the accounts file."""
        if not isinstance(table, Mapping) or not all(isinstance(value, str) for value in table.values()):
            raise RuleError("a rule is a table of texts")
        others = table.keys() - {*PLACES, "folder"}
        if others:
            raise RuleError(f"a rule has no {sorted(others)[0]!r}: it has {', '.join(PLACES)} and folder")
        patterns = tuple((place, table[place].casefold()) for place in PLACES if place in table)
        if always and not (patterns and table.get("folder")):
            raise RuleError("`always` needs a folder and one of " + ", ".join(PLACES))
        if not always and not (patterns or table.get("folder")):
            raise RuleError("`never` needs a folder or one of " + ", ".join(PLACES))
        return cls(patterns, table.get("folder"))

    def matches(self, message: Message) -> bool:
        """Whether the message is one of those."""
        values = {
            "from": message.sender,
            "to": message.recipients,
            "subject": [" ".join(message.subject.split())],
            "list": [message.list_id],
        }
        return all(
            any(fnmatchcase(value.casefold(), pattern) for value in values[place])
            for place, pattern in self.patterns
        )

    def __str__(self) -> str:
        what = ", ".join(f"{place} {pattern}" for place, pattern in self.patterns)
        return " → ".join(part for part in (what, self.folder) if part)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an account."""

    always: Sequence[Rule] = field(default_factory=tuple)
    never: Sequence[Rule] = field(default_factory=tuple)

    def folder(self, message: Message) -> str | None:
        """Where the first rule of `always` that matches puts the message."""
        return next((rule.folder for rule in self.always if rule.matches(message)), None)

    def keeps(self, message: Message) -> bool:
        """Whether the message must stay in the inbox."""
        return any(rule.patterns and not rule.folder and rule.matches(message) for rule in self.never)

    def closed(self, message: Message, names: Iterable[str]) -> bool:
        """Whether a message must not be filed into the folder with these names."""
        own = list(names)
        return any(
            rule.folder and any(fnmatchcase(name, rule.folder) for name in own) and rule.matches(message)
            for rule in self.never
        )

    def lines(self) -> list[str]:
        """What a person reads of them."""
        return [f"always: {rule}" for rule in self.always] + [f"never: {rule}" for rule in self.never]
