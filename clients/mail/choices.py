"""Which folders hold a person's choices: not the inbox, nor what a mail program fills by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

# What such folders are called where the server does not say what they are for (RFC 6154).
_OTHERS = re.compile(
    r"inbox|trash|bin|deleted( items| messages)?|junk( e-?mail)?|spam|bulk mail|sent( items| messages| mail)?"
    r"|drafts?|outbox|templates|papierkorb|gesendet|entwürfe|corbeille|envoyés|brouillons|papelera|enviados|borradores",
    re.IGNORECASE,
)


def is_choice(folder: str, exclude: Sequence[str] = ()) -> bool:
    """Whether to learn from a folder; `exclude` are patterns such as `Lists/*`."""
    own = folder.removeprefix("INBOX/")  # some servers put every folder below the inbox
    if any(_OTHERS.fullmatch(part) for part in own.split("/")):
        return False
    return not any(fnmatchcase(folder, pattern) for pattern in exclude)
