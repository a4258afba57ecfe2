"""`feedrank search demo`: over HTTP, as the command, and in a real browser."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import httpx
import pytest

from feedrank.clients import Client
from feedrank.clients.search.demo.corpus import Document, SearchIndex, documents
from feedrank.clients.search.demo.site import Site, in_words
from feedrank.clients.search.demo.web import LONGEST_BODY, POLICY, serve
from feedrank.embedded import Embedded

EVIL = "<img src=x onerror=alert(1)><script>document.title = 'owned'</script>"
CORPUS = [
    Document("heap", "heap", "heap", "module", "Heap queues, in a module.\n\nPriority."),
    Document("heap.push", "heap", "heap push", "function", "Push onto the heap heap heap."),
    Document("heap.pop", "heap", "heap pop", "function", "Pop from the heap; the heap shrinks."),
    Document("evil", "evil", "evil", "module", EVIL),
    Document("queue", "queue", "queue", "module", "A queue is not a heap."),
]


@contextmanager
def running(folder):
    with Client("http://embedded", transport=Embedded(f"sqlite:{folder / 'demo.db'}")) as client:
        site = Site(client, SearchIndex(iter(CORPUS)), deadline=300)
        with serve(site) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()
                site.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with running(tmp_path_factory.mktemp("demo")) as url:
        yield url


@pytest.fixture
def web(url):
    with httpx.Client(base_url=url, trust_env=False, timeout=300) as web:
        yield web


def test_the_standard_library_is_a_corpus():
    result = list(documents(modules=12))
    assert len({one.module for one in result}) <= 12
    ids = [one.id for one in result]
    assert len(ids) == len(set(ids)) > 20
    assert "argparse.ArgumentParser" in ids
    assert {one.kind for one in result} == {"module", "class", "function"}
    index = SearchIndex(iter(result))
    assert index.search("argument parser")[0].fields["module"] == "argparse"
    assert len(index) == len(result)
    index.close()


def test_the_page_and_its_policy(web):
    for path, kind in {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css"}.items():
        reply = web.get(path)
        assert reply.headers["content-type"] == f"{kind}; charset=utf-8"
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
    page = web.get("/").text
    assert not re.search(r"<script(?! src=)|style=|\son\w+=", page)  # nothing that the policy would stop
    assert "innerHTML" not in web.get("/page.js").text


def test_search_click_and_compare(web):
    before = web.get("/status").json()
    result = web.get("/search", params={"q": "heap"}).json()
    assert {one["id"] for one in result["results"]} == {"heap", "heap.push", "heap.pop", "queue"}
    clicked = web.post("/click", json={"prediction_id": result["prediction_id"], "id": "heap"})
    assert clicked.json()["learned"] is True
    assert "“heap”: a click on heap at place" in clicked.json()["lesson"]
    second = web.post("/click", json={"prediction_id": result["prediction_id"], "id": "queue"})
    assert second.json() == {"learned": False}  # read, but the page has been judged
    after = web.get("/status").json()
    assert after["version"] == before["version"] + 1
    assert after["documents"] == len(CORPUS)
    assert after["handover"]["drafted"] == 0  # too few pages yet to show what was learned
    assert after["lessons"][0] == clicked.json()["lesson"]
    assert {"middle", "lower", "upper"} == after["ahead"].keys()


def test_a_visitor_keeps_a_cookie(web):
    first = web.get("/search", params={"q": "heap"})
    assert "HttpOnly; SameSite=Strict" in first.headers["set-cookie"]
    mine = web.cookies["visitor"]
    web.get("/search", params={"q": "queue"})
    assert web.cookies["visitor"] == mine


def test_visitors_teach_what_they_want(tmp_path):
    with running(tmp_path) as url, httpx.Client(base_url=url, trust_env=False, timeout=300) as web:
        before = [one["id"] for one in web.get("/search", params={"q": "heap"}).json()["results"]]
        assert before[0] != "heap"
        for _ in range(5):  # enough that chance, which drafts the lists, does not decide
            status = web.post("/visitors", json={"count": 100}).json()
        assert status["version"] > 100
        assert status["handover"]["evidence"] > 1
        assert status["handover"]["pages"] > 10
        assert status["learned"]["mean"] > status["engine"]["mean"]
        assert status["ahead"]["lower"] <= status["ahead"]["middle"] <= status["ahead"]["upper"]


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("engine:unit", "the engine's score"),
        ("rank", "the engine's place"),
        ("title:bm25", "the query's words in the title"),
        ("is_module", "to be a whole module"),
        ("seen:item", "seen:item"),
    ],
)
def test_features_are_named_as_people_say_it(feature, words):
    assert in_words(feature) == words


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ({"method": "GET", "url": "/nothing"}, 404),
        ({"method": "GET", "url": "/../../etc/passwd"}, 404),
        ({"method": "POST", "url": "/nothing", "json": {}}, 404),
        ({"method": "POST", "url": "/click", "data": {"id": "heap"}}, 415),
        ({"method": "POST", "url": "/click", "json": []}, 400),
        ({"method": "POST", "url": "/click", "json": {"id": 1}}, 400),
        ({"method": "POST", "url": "/click", "json": {"id": "x" * LONGEST_BODY}}, 413),
        ({"method": "POST", "url": "/visitors", "json": {"count": 10**6}}, 400),
        ({"method": "POST", "url": "/visitors", "json": {"count": True}}, 400),
        ({"method": "GET", "url": "/status", "headers": {"host": "evil.example:80"}}, 403),
        ({"method": "GET", "url": "/status", "headers": {"origin": "https://evil.example"}}, 403),
        ({"method": "GET", "url": "/search", "headers": {"origin": "null"}}, 403),
        ({"method": "GET", "url": "/status", "headers": {"sec-fetch-site": "cross-site"}}, 403),
        (
            {
                "method": "POST",
                "url": "/visitors",
                "json": {"count": 1},
                "headers": {"sec-fetch-site": "same-site"},
            },
            403,
        ),
    ],
)
def test_what_is_refused(web, call, status):
    reply = web.request(**call)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_one_command_starts_it():
    command = [sys.executable, "-m", "feedrank.cli", "search", "demo", "--port", "0", "--modules", "5"]
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            line = process.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert url, line
            assert "feedrank" in httpx.get(url[0], trust_env=False, timeout=300).text
            result = httpx.get(f"{url[0]}search?q=abstract", trust_env=False, timeout=300).json()
            assert result["results"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


def test_a_person_searches_clicks_and_watches(tmp_path, browser):
    with running(tmp_path) as url:
        browser.open(url)
        browser.wait(lambda: browser.text("#documents") == [str(len(CORPUS))])
        browser.one("#query").send_keys("heap\n")
        browser.wait(lambda: len(browser.find("#results li")) == 4)
        wanted = next(one for one in browser.find("#results button") if one.text == "heap")
        wanted.click()
        browser.wait(lambda: browser.find("#results .clicked"))
        assert browser.text("#results pre") == ["Heap queues, in a module.\n\nPriority."]
        browser.wait(lambda: browser.text("#pages") == ["1"])
        browser.wait(lambda: "“heap”: a click on heap" in browser.text("#lesson")[0])
        assert not browser.text("#lessons li")
        browser.one("#visitors").click()
        browser.wait(lambda: int(browser.text("#pages")[0]) > 10)
        browser.wait(lambda: len(browser.text("#lessons li")) == 4)
        assert all(": a click on " in lesson for lesson in browser.text("#lessons li"))
        browser.one("#tries button").click()
        browser.wait(lambda: browser.driver.execute_script("return query.value") == "json")
        # The interval is of the order that is ahead.
        status = httpx.get(f"{url}/status", trust_env=False, timeout=300).json()
        for middle, words in ((0.2, "Learned is ahead by 20.0 %"), (-0.2, "The engine is ahead by 20.0 %")):
            edges = sorted((middle / 2, 2 * middle))
            status["ahead"] = {"middle": middle, "lower": edges[0], "upper": edges[1]}
            browser.driver.execute_script("show(arguments[0])", status)
            assert words in browser.text("#ahead")[0]
            assert "between 10.0 % and 40.0 %" in browser.text("#ahead")[0]
        # Documents are text, never markup.
        query = browser.one("#query")
        query.clear()
        query.send_keys("evil\n")
        browser.wait(lambda: browser.text("#results p") == [EVIL])
        assert not browser.find("#results img")
        assert browser.driver.title == "feedrank: search that learns from clicks"
        browser.open("about:blank")


def test_a_click_on_a_page_that_nobody_saw_teaches_nothing(web):
    assert web.post("/click", json={"prediction_id": "nope", "id": "heap"}).json() == {"learned": False}
