"""Text of strangers: the same words whatever its length, and never a time that grows faster than the text."""

import sys
import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import text
from feedrank.learners.kernel import words

PARTS = [
    *(
        "a",
        "B1",
        " ",
        "_",
        "é",
        "e\u0301",
        "\u0301",
        "\u0323",
        "\u0345",
        "\u0344",
        "\uff76\uff9e",
        "\uff9f",
        "ﬃ",
        "ﷺ",
        "漢",
        "か",
    ),
    *(
        "\u1100\u1161",
        "\u1161",
        "\u11a8",
        "\u314f",
        "\uffc2",
        "\uac00",
        "\u09c7\u09be",
        "\u09be",
        "ß",
        "İ",
        "😀",
        "\u0f73\u0f71",
    ),
]


def plainly(value):
    """The rule as docs/spec.md has it, in one go."""
    found = words.word_patterns().word.findall(unicodedata.normalize("NFKC", value).casefold())
    return list(dict.fromkeys((*found, *map(" ".join, pairwise(found)))))


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from([1, 1, 1, 2, 70]))), st.integers(1, 9))
def test_pieces_give_the_words_of_the_whole(parts, size):
    value = "".join(part * count for part, count in parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", size)
        assert text.tokens(value) == plainly(value)
    assert text.tokens(value) == plainly(value)


def test_a_piece_begins_only_where_nothing_before_it_joins():
    decomposed = [
        d for c in map(chr, range(sys.maxunicode)) if (d := unicodedata.decomposition(c)) and "<" not in d
    ]
    seconds = {chr(int(one.split()[1], 16)) for one in decomposed if " " in one}
    seconds |= {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for char in map(chr, range(sys.maxunicode)):
        if char.isalnum() and text._begins(char):
            assert unicodedata.normalize("NFKD", char)[0] not in seconds
        elif unicodedata.combining(char):
            assert text.patterns().run.fullmatch(char * 64)


@pytest.mark.parametrize("part", ["\u0300\u0316", "a\uff9e\u0316", "a" + "\u0300\u0316" * 400])
def test_marks_one_upon_another_take_no_longer_than_their_number(part):
    def taken(length):
        value = "a" + part * (length // len(part))
        begun = time.thread_time()
        text.tokens(value)
        return time.thread_time() - begun

    # Processor time of this thread; in quadratic time the ratio is above a hundred.
    assert min(taken(200_000) for _ in range(3)) < 60 * max(taken(12_500) for _ in range(3))
