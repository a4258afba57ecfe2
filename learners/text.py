"""Raw text as features, by a rule with a name, so that a learner keeps the rule it was made with.

`words-1`, for one text:

1. Unicode NFKC, then casefold.
2. A word is a longest run of letters and digits (and marks that belong to them); every Chinese or Japanese character is a
   word of its own, because such text has no spaces. All else separates words.
3. The features are the distinct words, and the distinct pairs of neighbouring words joined by one space. Each counts 1.

A text of named fields, `{"subject": "...", "body": "..."}`: the features of each field, with its name and a colon before
them: `subject:cheap`, `subject:cheap pills`. Pairs do not cross fields.
"""

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise

from .errors import InstanceError, pointer

RULES = ("words-1",)

# Han, Hiragana, Katakana: one character, one word. Elsewhere runs of word characters without the underscore.
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_WORD = re.compile(
    rf"[{_IDEOGRAPHS}]|(?:(?![{_IDEOGRAPHS}])[^\W_])(?:(?![{_IDEOGRAPHS}])[^\W_]|[\u0300-\u036f])*"
)


def tokens(text: str) -> list[str]:
    """The words of a text, then its pairs, each once, in the order in which they first stand there."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return list(dict.fromkeys((*words, *map(" ".join, pairwise(words)))))


def read(text: object) -> list[str]:
    """The features of `"text"`: of a text, or of an object of texts by field."""
    if isinstance(text, str):
        return tokens(text)
    if not isinstance(text, Mapping):
        raise InstanceError("must be text, or an object of texts", "/text")
    features: list[str] = []
    for field, part in text.items():
        if not isinstance(field, str) or not field:
            raise InstanceError("a field's name must be text that is not empty", "/text")
        if not isinstance(part, str):
            raise InstanceError("must be text", pointer("text", field))
        features += [f"{field}:{token}" for token in tokens(part)]
    return features
