"""LETOR files and the measures of rankings, against the standard tools."""

import gzip
import random

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, ERR, RR, Qrel, ScoredDoc, nDCG

from feedrank.clients import ranking_measures as measures
from feedrank.clients.letor import LetorError, Query, queries, read

TEXT = """\
2 qid:10 1:0.5 2:-1e-3 # docid = GX1
0 qid:10 1:0.25

1 qid:11 7:1
# a remark
0 qid:10 1:1
"""


def test_lists_are_grouped_by_neighbours():
    result = list(queries(TEXT.splitlines()))
    assert [(query.qid, query.grades) for query in result] == [("10", [2, 0]), ("11", [1]), ("10", [0])]
    assert result[0].features == [{"1": 0.5, "2": -0.001}, {"1": 0.25}]
    assert result[0].instance == {
        "items": [{"id": "1", "features": {"1": 0.5, "2": -0.001}}, {"id": "2", "features": {"1": 0.25}}]
    }
    assert result[0].relevance == {"1": 2}
    assert result[0].ranked(["2", "1"]) == [0, 2]


@pytest.mark.parametrize("packed", [False, True])
def test_files_plain_and_gzip_are_streamed(tmp_path, packed):
    path = tmp_path / "letor.txt"
    data = "".join(f"{i % 3} qid:{i // 10} 1:{i}\n" for i in range(3000)).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    seen = []
    reader = read(path, seen.append)
    first = next(reader)
    assert first.grades == [i % 3 for i in range(10)]
    assert seen[-1] <= path.stat().st_size
    assert len(list(reader)) == 299
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size


def test_the_reader_holds_one_list_at_a_time():
    taken = 0

    def lines():
        nonlocal taken
        for i in range(1000):
            taken += 1
            yield f"0 qid:{i} 1:1"

    reader = queries(lines())
    next(reader)
    next(reader)
    assert taken <= 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2", "qid"),
        ("x qid:1 1:2", "float"),
        ("-1 qid:1 1:2", "below 0"),
        ("1 qid:1 1", "feature:value"),
        ("1 qid:1 1:nan", "finite"),
        ("inf qid:1 1:2", "finite"),
    ],
)
def test_bad_lines_are_named(line, message):
    with pytest.raises(LetorError, match=message) as caught:
        list(queries(["0 qid:1 1:1", line]))
    assert str(caught.value).startswith("line 2: ")


def test_a_cut_gzip_file_is_an_error(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 5000)[:-20])
    with pytest.raises(LetorError, match="damaged"):
        list(read(path))


@pytest.fixture(scope="module")
def ranked():
    """Lists of grades in ranked order, some without anything relevant."""
    rng = random.Random(3)
    lists = [[rng.choice([0, 0, 1, 2, 4]) for _ in range(rng.randint(1, 30))] for _ in range(40)]
    return [*lists, [0, 0, 0], [1], [0] * 15 + [3]]


def theirs(measure, ranked):
    qrels = [Qrel(str(q), str(d), g) for q, grades in enumerate(ranked) for d, g in enumerate(grades)]
    run = [
        ScoredDoc(str(q), str(d), 1000.0 - d) for q, grades in enumerate(ranked) for d in range(len(grades))
    ]
    return {int(one.query_id): one.value for one in ir_measures.iter_calc([measure], qrels, run)}


@pytest.mark.parametrize(
    ("measure", "ours", "digits"),
    [
        (AP, measures.ap, 1e-9),
        (RR, measures.mrr, 1e-9),
        (
            nDCG(dcg="exp-log2") @ 10,
            lambda grades: measures.ndcg(grades, 10),
            6e-6,
        ),  # gdeval prints five digits
        (nDCG(dcg="exp-log2") @ 3, lambda grades: measures.ndcg(grades, 3), 6e-6),
        (ERR @ 10, lambda grades: measures.err(grades, 10), 6e-6),
    ],
)
def test_values_are_those_of_the_standard_tools(ranked, measure, ours, digits):
    result = theirs(measure, ranked)
    assert len(result) >= len(ranked) - 1
    for number, value in result.items():
        assert ours(ranked[number]) == pytest.approx(value, abs=digits), ranked[number]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 12))
def test_measures_are_shares_of_the_best(grades, cutoff):
    best = sorted(grades, reverse=True)
    assert 0 <= measures.ndcg(grades, cutoff) <= 1 + 1e-12
    assert measures.err(grades, cutoff) <= measures.err(best, cutoff) + 1e-12
    assert measures.ap(grades) <= measures.ap(best)
    for perfect in (measures.ndcg(best), measures.ap(best), measures.mrr(best)):
        assert perfect == (pytest.approx(1) if any(grades) else 0)


def test_means_over_all_and_over_judged_lists():
    means = measures.Means(cutoff=10)
    means.add([0, 1])
    means.add([0, 0])
    assert (means.lists, means.judged) == (2, 1)
    assert means.of(means.lists)["MRR"] == 0.25
    assert means.of(means.judged)["MRR"] == 0.5
    assert measures.Means().of(0) == {}


def test_a_query_has_no_features_to_begin_with():
    assert Query("1").instance == {"items": []}
