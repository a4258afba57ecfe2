"""Blocks of features: the length of x, its shares, and that a block's worth is learned."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import build, dump, fingerprint, load
from feedrank.learners.blocks import TINY, Blocks, block_of
from feedrank.learners.instances import Vector
from feedrank.learners.kernel import Table

SPEC = {"task": "multiclass", "algorithm": "dual-ascent", "update": "III", "normalize": "blocks"}

NAMES = st.sampled_from(["a", "b", "s:a", "s:b", "f:a", "f:x:y", ":", "f:"])
VECTORS = st.dictionaries(
    NAMES, st.floats(-1e200, 1e200).filter(lambda value: abs(value) > 1e-200), min_size=1
)


def table_of(names):
    table = Table()
    for name in names:
        table.add(name)
    return table


def blocks_of(names):
    blocks = Blocks()
    blocks.grow(table_of(names))
    return blocks


def by_hand(vector, worth):
    """The formula of the module, feature by feature."""
    top = max(abs(value) for value in vector.values())
    v = {name: value / top for name, value in vector.items()}
    squares = {}
    for name, value in v.items():
        squares[block_of(name)] = squares.get(block_of(name), 0.0) + value * value
    squares = {block: square for block, square in squares.items() if square > TINY}
    whole, shares = sum(value * value for value in v.values()), sum(worth[block] for block in squares)
    return {
        name: value * math.sqrt(0.5 / whole + 0.5 * worth[block_of(name)] / shares / squares[block_of(name)])
        for name, value in v.items()
        if block_of(name) in squares
    }


def test_the_block_is_what_stands_before_the_first_colon():
    assert [block_of(name) for name in ("word", "from:a", "to:x:y", ":")] == ["", "from", "to", ""]


@given(VECTORS, st.sets(NAMES), st.integers(0, 30), st.integers(0, 30))
def test_x_has_length_one_and_the_shares_of_the_formula(vector, known, right, wrong):
    names = sorted(known)
    blocks = blocks_of(names)
    if names:
        blocks.right[0], blocks.wrong[0] = right, wrong
    worth = dict.fromkeys([block_of(name) for name in vector], 1.0)
    if names:
        worth[block_of(names[0])] = ((1 + right) / (1 + wrong)) ** 2
    rows = np.array([i for i, name in enumerate(names) if name in vector], dtype=np.intp)
    values = np.array([vector[names[i]] for i in rows.tolist()])
    unknown = [name for name in vector if name not in known]
    x, rest = blocks.scaled(rows, values, unknown, np.array([vector[name] for name in unknown]))
    got = dict(
        zip([*(names[i] for i in rows.tolist()), *unknown], [*x.tolist(), *rest.tolist()], strict=True)
    )
    assert math.hypot(*got.values()) == pytest.approx(1.0)
    for name, value in by_hand(vector, worth).items():
        assert got[name] == pytest.approx(value, rel=1e-9, abs=1e-300)


def test_a_block_is_right_where_its_part_of_the_scores_points_with_the_step():
    blocks = blocks_of(["a", "s:a", "f:a", "f:b"])
    rows = np.array([0, 1, 2, 3])
    parts = np.array([[0.5, 0.1], [0.0, 0.3], [0.2, 0.2], [0.1, 0.1]])
    blocks.judge(
        Vector(rows, np.ones(4)), parts, np.array([-1.0, 1.0])
    )  # the step lifts label 0 and lowers label 1
    assert blocks.arrays()["right"].tolist() == [1, 0, 0]
    assert blocks.arrays()["wrong"].tolist() == [0, 1, 0]  # the last block says nothing either way


def test_noise_loses_its_share_and_the_telling_block_wins_it():
    luck = random.Random(4)
    learner = build(SPEC)
    mistakes = []
    for _ in range(400):
        label = luck.choice("xyz")
        event = [f"noise:{luck.randrange(40)}", f"from:{label}{luck.randrange(3)}", f"w{luck.randrange(60)}"]
        mistakes.append(learner.learn({"features": event}, {"label": label}).mistake)
    blocks = learner.transform.blocks
    odds = dict(zip(blocks.names, (1 + blocks.right) / (1 + blocks.wrong), strict=False))
    assert odds["from"] > 3 * max(odds["noise"], odds[""])
    assert sum(mistakes[-100:]) <= 2


def test_predicting_changes_no_block_and_a_snapshot_keeps_them():
    learner = build({**SPEC, "weighting": "idf"})
    luck = random.Random(5)
    for number in range(60):
        event = [f"a:{luck.randrange(9)}", f"b:{luck.randrange(9)}", f"{number % 7}"]
        learner.learn({"features": event}, {"label": luck.choice("xyz")})
    before = fingerprint(learner)
    learner.predict({"features": ["a:1", "new:block", "b:77"]})
    assert fingerprint(learner) == before
    again = load(dump(learner))
    assert (
        again.transform.blocks.arrays()["right"].tolist()
        == learner.transform.blocks.arrays()["right"].tolist()
    )
    for one in (learner, again):
        one.learn({"features": ["a:1", "c:2"]}, {"label": "x"})
    assert fingerprint(again) == fingerprint(learner)


def test_damaged_counts_of_blocks_are_refused():
    blocks = Blocks()
    names = table_of(["a", "s:a"])
    for right, wrong in (([1.0], [1.0, 2.0]), ([1.0, -1.0], [0.0, 0.0]), ([1.0, math.nan], [0.0, 0.0])):
        with pytest.raises(ValueError):
            blocks.restore(names, {"right": np.array(right), "wrong": np.array(wrong)})
