"""Adapters of engines: real SQLite FTS5 and tantivy indexes, Elasticsearch's and OpenSearch's JSON, UBI events."""

import sqlite3

import pytest
import tantivy

from feedrank.clients.search import Reranked, Result, Shown, elastic, fts5, tantivy_index, ubi

DOCUMENTS = {
    "socket": ("socket", "low level networking interface"),
    "ssl": ("ssl", "secure wrapper for socket objects; a socket is wrapped"),
    "select": ("select", "waiting for i/o completion on a socket"),
    "email": ("email", "messages and mime"),
}


@pytest.fixture
def sqlite():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE docs USING fts5(name UNINDEXED, title, body)")
    rows = [(name, *texts) for name, texts in DOCUMENTS.items()]
    connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def index():
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("body", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for name, (title, body) in DOCUMENTS.items():
        writer.add_document(tantivy.Document(id=name, title=title, body=body))
    writer.commit()
    index.reload()
    return index


def check(results):
    assert {result.id for result in results} == {"socket", "ssl", "select"}
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0
    assert next(one for one in results if one.id == "ssl").fields["body"].startswith("secure")


def test_fts5(sqlite):
    check(fts5.search(sqlite, "docs", "Socket", id="name"))
    assert fts5.search(sqlite, "docs", "socket", id="name", weights=[0, 100, 1])[0].id == "socket"
    assert len(fts5.search(sqlite, "docs", "socket", limit=2)) == 2
    assert fts5.search(sqlite, "docs", "socket", limit=1)[0].id.isdigit()  # the rowid
    assert [one.id for one in fts5.search(sqlite, "docs", "networking sock", id="name", every=True)] == [
        "socket"
    ]


def test_tantivy(index):
    check(tantivy_index.search(index, "Socket", ["title", "body"]))
    assert [one.id for one in tantivy_index.search(index, "socket", ["title"])] == ["socket"]
    assert len(tantivy_index.search(index, "socket", ["title", "body"], limit=2)) == 2


@pytest.mark.parametrize(
    "typed",
    [
        '"',
        "AND",
        "NOT socket",
        "NEAR(a b",
        "title:socket",
        "a* OR",
        "(",
        "*",
        "é -x",
        "^socket",
        "socket~2^9",
    ],
)
def test_nothing_typed_is_an_operator_or_an_error(sqlite, index, typed):
    for parsed in (fts5.search(sqlite, "docs", typed), tantivy_index.search(index, typed, ["title", "body"])):
        assert all(result.score > 0 for result in parsed)


@pytest.mark.parametrize("typed", ["", "  ", "!?"])
def test_no_words_find_nothing(sqlite, index, typed):
    assert fts5.search(sqlite, "docs", typed) == []
    assert tantivy_index.search(index, typed, ["title"]) == []


REPLY = {
    "took": 3,
    "hits": {
        "total": {"value": 2, "relation": "eq"},
        "max_score": 2.5,
        "hits": [
            {"_index": "books", "_id": "7", "_score": 2.5, "_source": {"title": "Sockets", "isbn": "x-7"}},
            {
                "_index": "books",
                "_id": "9",
                "_score": 1.5,
                "_source": {"isbn": "x-9"},
                "fields": {"year": [1999]},
            },
        ],
    },
}


def test_elastic_replies():
    assert elastic.results(REPLY) == [
        Result("7", 2.5, {"title": "Sockets", "isbn": "x-7"}),
        Result("9", 1.5, {"isbn": "x-9", "year": 1999}),
    ]
    assert [one.id for one in elastic.results(REPLY, id="isbn")] == ["x-7", "x-9"]


def test_elastic_hits_without_a_score_keep_their_order():
    hits = [{"_id": str(i), "_score": None, "_source": None, "sort": [i]} for i in range(3)]
    assert [(one.id, one.score) for one in elastic.results({"hits": {"hits": hits}})] == [
        ("0", 3),
        ("1", 2),
        ("2", 1),
    ]


@pytest.mark.parametrize(
    "reply", [{}, [], {"error": {"type": "parsing_exception"}}, {"hits": {"hits": [{}]}}]
)
def test_what_is_no_reply_of_a_search_is_told(reply):
    with pytest.raises(elastic.ReplyError, match="not the reply"):
        elastic.results(reply)


def test_elastic_requests():
    assert elastic.request("red shoes", ["title^3", "body"], size=50) == {
        "query": {"multi_match": {"query": "red shoes", "fields": ["title^3", "body"]}},
        "size": 50,
    }
    full = elastic.request(
        "q", ["title"], source=["title"], filters=[{"term": {"shop": 1}}], ubi={"client_id": "c"}
    )
    assert full["query"]["bool"]["filter"] == [{"term": {"shop": 1}}]
    assert full["query"]["bool"]["must"][0]["multi_match"]["query"] == "q"
    assert full["_source"] == ["title"]
    assert full["ext"] == {"ubi": {"user_query": "q", "client_id": "c"}}


def event(query, thing, place, action="click", time="2026-01-01T00:00:00Z"):
    attributes = {"object": {"object_id": thing, "object_id_field": "id"}, "position": {"ordinal": place}}
    return {"query_id": query, "action_name": action, "timestamp": time, "event_attributes": attributes}


def test_ubi_events_become_visits():
    queries = [{"query_id": "q1", "query_response_hit_ids": ["a", "b", "c"]}, {"query_id": "q3"}]
    events = [
        event("q1", "c", 3, time="2026-01-01T00:00:09Z"),
        event("q1", "b", 2, time="2026-01-01T00:00:05Z"),
        event("q1", "b", 2, time="2026-01-01T00:00:07Z"),
        event("q1", "a", 1, action="hover"),
        event("q2", "y", 2),
        event("q2", "x", 1, action="impression"),
        {"action_name": "login"},
        {"action_name": "click", "query_id": "q1", "event_attributes": {}},
    ]
    result = ubi.visits(events, queries)
    assert (result["q1"].engine, result["q1"].clicked) == (["a", "b", "c"], ["b", "c"])
    assert result["q1"].page(2) == ["a", "b", "c"]  # the third was reached, so its page was shown
    assert result["q2"].page(10) == ["x", "y"]  # shown, as far as its events tell
    assert result["q3"] == ubi.Visit("q3")  # nobody clicked
    assert ubi.visits(events, actions=["hover"])["q1"].clicked == ["a"]


def test_our_pages_become_ubi_records_and_come_back():
    page = Reranked([], Shown("p1", ["b", "a"], ["a", "b"]), "learned", 3)
    record = ubi.query_record(page, "shoes", client_id="c")
    clicked = ubi.click_event(page, "a", client_id="c")
    assert record["user_query"] == "shoes"
    assert clicked["event_attributes"]["position"] == {"ordinal": 2}
    (visit,) = ubi.visits([clicked], [record]).values()
    assert (visit.query_id, visit.engine, visit.clicked) == ("p1", ["a", "b"], ["a"])
