"""Whose a folder is: the person's own, or others', by what the server says of its namespaces (RFC 2342).

A server shows the folders of other users and public ones beside the person's own. Private mail does not belong there, and
what others put there is not the person's choice. The longest prefix that fits a name tells its namespace: Cyrus has
`INBOX.` for the person's own, `user.` for those of other users and the empty prefix for shared ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError

__all__ = ["Namespaces"]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """(prefix, separator) of each namespace: the person's own, and all others."""

    own: tuple[tuple[str, str], ...] = (("", "/"),)
    foreign: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, imap: IMAPClient) -> Namespaces:
        """As the server tells them. One that knows no namespaces has no others'; one that does not tell is not read."""
        if not imap.has_capability("NAMESPACE"):
            return cls()
        try:
            reply = imap.namespace()
            own, users, shared = (_read(part) for part in (reply.personal, reply.other, reply.shared))
        except IMAPClientAbortError:
            raise
        except (IMAPClientError, ValueError, LookupError, TypeError, AttributeError) as error:
            # Without it, a public folder looks like one of the person's own.
            raise IMAPClientError(f"the server's namespaces cannot be read: {error}") from error
        return cls(own or (() if users or shared else (("", "/"),)), users + shared)

    def is_foreign(self, name: str) -> bool:
        """Whether the folder is not the person's own; where the server says both, it is not."""
        own, foreign = _longest(self.own, name), _longest(self.foreign, name)
        return name.upper() != "INBOX" and (own < 0 or foreign >= own)

    def prefix(self, name: str) -> list[str]:
        """The prefix of the folder's namespace, as names: `INBOX.` is [INBOX]."""
        fitting = [each for each in self.own if _fits(each, name)]
        if not fitting:
            return []
        prefix, separator = max(fitting, key=lambda each: len(each[0]))
        return [part for part in prefix.split(separator or "/") if part]


def _read(part: Any) -> tuple[tuple[str, str], ...]:
    """One of the three lists of the reply; NIL is none."""
    if part is None:
        return ()
    read = tuple((prefix, separator or "") for prefix, separator, *_ in part)
    if not all(isinstance(text, str) for each in read for text in each):
        raise ValueError("a prefix is no text")
    return read


def _fits(namespace: tuple[str, str], name: str) -> bool:
    """Whether the folder is below the prefix, or is the folder that all of the namespace is below."""
    prefix, separator = (part.casefold() for part in namespace)
    own = name.casefold()
    return own.startswith(prefix) or bool(
        separator and prefix.endswith(separator) and own + separator == prefix
    )


def _longest(namespaces: tuple[tuple[str, str], ...], name: str) -> int:
    """The length of the longest prefix that fits, -1 without one."""
    return max((len(each[0]) for each in namespaces if _fits(each, name)), default=-1)
