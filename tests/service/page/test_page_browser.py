"""The page in a real browser. Every test also fails on anything in the console, reports of the policy included."""

import socket

import pytest
from page_steps import ask, curve, show, version
from selenium.webdriver import Keys

from feedrank.service.http.keyring import add_key

SCRIPT = "<script>alert(1)</script>"


def test_learners_are_listed_and_move_by_themselves(server, teach, browser):
    for name in ("one", "two"):
        teach(server, name, 40)
    show(browser, server)
    browser.wait(lambda: len(browser.find(".spark path")) == 2)
    rows = browser.text(".learners tbody tr")
    assert [row[:3] for row in rows] == ["one", "two"]
    mistakes = server.get("/v1/learners/one").json()["progress"]["mistakes"]
    assert f"40{mistakes}" in rows[0]
    browser.run("window.same = true")
    teach(server, "one", 2)
    teach(server, "three", 1)
    browser.wait(lambda: "42" in browser.text(".learners tbody tr")[0])
    browser.wait(lambda: len(browser.find(".learners tbody tr")) == 3)
    assert browser.run("return window.same")
    browser.one("#filter").send_keys("tw")
    browser.wait(lambda: [row[:3] for row in browser.text(".learners tbody tr")] == ["two"])


def test_predict_correct_and_see_the_curve_move(server, teach, browser):
    teach(server, "folders", 30)
    show(browser, server, "/#/learners/folders")
    browser.wait(lambda: version(browser) == "30")
    before = curve(browser)
    ask(browser, "The invoice from the hotel")
    browser.wait(lambda: browser.find(".ranking > li"))
    spoke = browser.text(".ranking > li:first-child .spoke li")
    assert any(word.startswith(("invoice", "hotel")) for word in spoke)
    right = browser.one(".ranking > li:last-child button")
    label = right.get_attribute("data-label")
    right.click()
    browser.wait(lambda: browser.text(".outcome")[0].startswith("A mistake"))
    browser.wait(lambda: version(browser) == "31")
    assert curve(browser) != before
    event = server.get("/v1/learners/folders/events", params={"after": 30}).json()["events"][0]
    assert event["truth"] == {"label": label}
    assert event["prediction_id"]
    assert event["instance"]["features"] == {"the": 2, "invoice": 1, "from": 1, "hotel": 1}
    browser.one("#other").send_keys("a new label", Keys.ENTER)
    browser.wait(lambda: "a new label" in browser.text(".labels tbody th button"))


def test_a_label_is_renamed_or_merged_with_one_that_it_is_taken_for(server, teach, browser):
    teach(server, "folders", 60)
    mixed = server.get("/v1/learners/folders/reliability").json()["labels"]
    old = next(label for label, row in mixed.items() if row["taken_for"])
    show(browser, server, "/#/learners/folders")
    browser.wait(lambda: browser.find(".labels tbody th button"))

    def choose(label):
        next(one for one in browser.find(".labels tbody th button") if one.text == label).click()

    choose(old)
    browser.wait(lambda: browser.find(".proposed button"))
    browser.wait(lambda: browser.text(".rename .tag") == [old])
    browser.find(".proposed button")[0].click()
    other = browser.one("#label-new").get_attribute("value")
    assert other in mixed
    browser.one(".rename form button").click()
    browser.wait(lambda: "Merge" in browser.text("#confirm-title")[0])
    browser.one("dialog.confirm button[value='']").click()
    browser.wait(lambda: not browser.find("dialog.confirm"))
    assert version(browser) == "60"
    browser.one(".rename form button").click()
    browser.one("dialog.confirm button[value=ok]").click()
    browser.wait(lambda: version(browser) == "61")
    browser.wait(lambda: old not in browser.text(".labels tbody th button"))
    assert server.get("/v1/learners/folders").json()["renames"] == {old: other}
    assert any("renamed" in row for row in browser.text(".events li"))


@pytest.mark.parametrize(
    ("spec", "words", "truth"),
    [
        ({"task": "binary", "labels": ["ham", "spam"]}, "hello", {"label": "spam"}),
        ({"task": "ordinal", "labels": ["1", "2", "3"]}, '{"a": 2}', {"label": "3"}),
        ({"task": "multilabel", "labels": ["x", "y"]}, '["a", "b"]', {"labels": ["x", "new", "other"]}),
        ({"task": "label-ranking", "labels": ["x", "y"]}, "word", {"labels": ["x", "new", "other"]}),
        (
            {"task": "subset-ranking"},
            '[{"id": "p", "features": [1, 0]}, {"id": "q", "features": [0, 1]}]',
            {"relevance": {"p": 0, "q": 2.5}},
        ),
        (
            {
                "task": "multiclass",
                "labels": ["x", "y"],
                "algorithm": "predtron",
                "kernel": "gaussian",
                "bandwidth": 1,
            },
            "a kernel cannot explain",
            {"label": "y"},
        ),
    ],
    ids=lambda value: value.get("task") if isinstance(value, dict) else None,
)
def test_every_task_can_be_tried_and_corrected(server, browser, spec, words, truth):
    server.put("/v1/learners/t", json=spec)
    show(browser, server, "/#/learners/t")
    browser.wait(lambda: version(browser) == "0")
    ask(browser, words)
    browser.wait(lambda: browser.find(".ranking > li"))
    if "label" in truth:
        browser.one(f'.ranking button[data-label="{truth["label"]}"]').click()
    elif "labels" in truth:
        browser.one('.ranking input[data-name="x"]').click()
        browser.one("#other").send_keys("new, other")
        browser.one(".answer > button").click()
    else:
        grade = browser.one('.ranking input[data-id="q"]')
        grade.clear()
        grade.send_keys("2.5")
        browser.one(".answer > button").click()
    browser.wait(lambda: version(browser) == "1")
    assert server.get("/v1/learners/t/events").json()["events"][0]["truth"] == truth


def test_what_is_refused_is_said_beside_the_form(server, teach, browser):
    teach(server, "m", 3)
    show(browser, server, "/#/learners/m")
    browser.wait(lambda: version(browser) == "3")
    ask(browser, '{"a": ')
    browser.wait(lambda: browser.text(".outcome.bad")[0].startswith("That is not JSON"))
    ask(browser, '{"a": "b"}')
    browser.wait(lambda: "number" in browser.text(".outcome.bad")[0])
    # The browser itself notes every refused request.
    assert ["422" in entry["message"] for entry in browser.logs()] == [True]


def test_markup_in_a_label_is_text(server, teach, browser):
    teach(server, "m", 60)
    show(browser, server, "/#/learners/m")
    browser.wait(lambda: SCRIPT in browser.text(".labels tbody th button"))
    next(button for button in browser.find(".labels button") if button.text == SCRIPT).click()
    browser.wait(lambda: browser.text(".note .tag") == [SCRIPT])
    ask(browser, "angle bracket <img src=x onerror=alert(2)>")
    browser.wait(lambda: SCRIPT in browser.text(".ranking .name"))
    assert SCRIPT in browser.text(".events .tag")
    assert browser.run("return [document.scripts.length, document.images.length]") == [1, 0]


def test_the_bound_is_drawn_where_theory_has_one(server, teach, browser):
    teach(
        server,
        "proved",
        80,
        {"task": "multiclass", "algorithm": "dual-ascent", "normalize": "unit", "C": 0.5, "gamma": 1.0},
    )
    teach(server, "plain", 80, {"task": "multiclass", "algorithm": "predtron"})
    show(browser, server, "/#/learners/proved")
    browser.wait(lambda: browser.find(".plot .line.bound"))
    reply = browser.text(".chart + .note")[0]
    certificate = server.get("/v1/learners/proved").json()["certificate"]
    assert reply.endswith(f"There were {certificate['mistakes']}.")
    assert float(reply.split("at most ")[1].split()[0]) >= certificate["mistakes"]
    show(browser, server, "/#/learners/plain")
    browser.wait(lambda: curve(browser))
    assert not browser.find(".plot .line.bound")


def test_a_key_is_asked_for_once_and_kept_in_memory_only(make_server, teach, tmp_path, browser):
    admin = add_key(tmp_path / "keys", ["admin"])
    reader = add_key(tmp_path / "keys", ["predict"])
    server = make_server(keys_file=str(tmp_path / "keys"))
    server.headers["Authorization"] = f"Bearer {admin}"
    teach(server, "m", 5)
    show(browser, server)
    browser.wait(lambda: browser.find("dialog[open]"))
    browser.one("#ask-cancel").click()
    browser.wait(lambda: browser.text("main h1") == ["A key is needed"])
    browser.one("main button").click()
    browser.wait(lambda: browser.find("dialog[open]"))
    browser.one("#ask-key").send_keys("wrong", Keys.ENTER)
    browser.wait(lambda: "refused" in browser.text("#ask-why")[0])
    browser.one("#ask-key").send_keys(reader, Keys.ENTER)
    browser.wait(lambda: browser.find(".spark"))
    browser.one('a[href="#/learners/m"]').click()
    browser.wait(lambda: version(browser) == "5")
    browser.wait(lambda: "scope admin" in browser.text(".events")[0])
    assert not browser.find("dialog[open]")
    kept = browser.run("return [document.cookie, localStorage.length, sessionStorage.length, location.href]")
    assert kept[:3] == ["", 0, 0]
    assert reader not in kept[3] + browser.driver.page_source
    refusals = browser.logs()
    assert refusals
    assert all("401" in entry["message"] or "403" in entry["message"] for entry in refusals)


def test_a_hundred_learners_are_asked_about_only_where_one_looks(server, teach, browser):
    for i in range(110):
        teach(server, f"user-{i:03}", 3)
    show(browser, server)
    browser.wait(lambda: len(browser.find(".spark")) > 5)
    browser.wait(lambda: browser.run("return performance.getEntriesByName('first-contentful-paint').length"))
    assert browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime") < 5000
    count = (
        "return performance.getEntriesByType('resource').filter((one) => one.name.includes('history')).length"
    )
    asked = browser.run(count)
    assert asked < 60
    assert len(browser.find(".learners tbody tr")) == 50
    teach(server, "user-003", 1)  # only what moved is asked about again
    browser.wait(lambda: browser.run(count) == asked + 1)
    first, _, forth = browser.find(".pager button, .pager .note")
    assert not first.is_enabled()
    browser.run("arguments[0].click()", forth)
    browser.wait(lambda: browser.text(".pager .note") == ["51 to 100"])
    browser.wait(forth.is_enabled)
    browser.run("arguments[0].click()", forth)
    browser.wait(lambda: len(browser.find(".learners tbody tr")) == 10)
    browser.wait(lambda: browser.run("return !!document.querySelector('[data-name=user-109] .spark')"))
    assert not forth.is_enabled()
    browser.one("#filter").send_keys("user-00")  # also what is not on this page
    browser.wait(lambda: len(browser.find(".learners tbody tr")) == 10)
    browser.wait(lambda: "10 with this in their name" in "".join(browser.text(".head")))
    browser.one("#filter").send_keys("x")
    browser.wait(lambda: browser.find(".learners tbody tr") == [])


@pytest.mark.parametrize("events", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_curve_stays_small_and_still_moves(server, teach, browser, events):
    teach(server, "long", events, {"task": "multiclass", "algorithm": "predtron"})
    show(browser, server, "/#/learners/long")
    browser.wait(lambda: version(browser) == f"{events:,}")
    assert 100 < curve(browser).count("L") < 250
    size = browser.run(
        "const all = performance.getEntriesByType('resource');"
        "return all.find((one) => one.name.includes('points=240')).encodedBodySize"
    )
    assert size < 40_000
    browser.run("window.before = document.querySelector('.plot .line.mean').getAttribute('d')")
    ask(browser, "tax hotel")
    browser.one(".ranking > li:last-child button").click()
    browser.wait(lambda: version(browser) == f"{events + 1:,}")
    assert browser.run(
        "return window.before !== document.querySelector('.plot .line.mean').getAttribute('d')"
    )


def test_a_server_that_goes_and_comes_back_is_waited_for(make_server, teach, browser):
    server = make_server()
    teach(server, "m", 5)
    port = server.base_url.port
    show(browser, server)
    browser.wait(lambda: browser.text("#status") == ["live"])
    with socket.socket() as closed:  # stops the server, and nobody answers at its address
        make_server()
        closed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        closed.bind(("127.0.0.1", port))
        browser.wait(lambda: browser.text("#status") == ["no reply from the server; trying again"])
    teach(make_server(port=port), "m", 2)
    browser.wait(lambda: browser.text("#status") == ["live"])
    browser.wait(lambda: "7" in browser.text(".learners tbody tr")[0])
    assert all("ERR_CONNECTION" in entry["message"] for entry in browser.logs())


def test_an_old_prediction_is_not_corrected_while_the_server_is_gone(make_server, teach, browser):
    server = make_server()
    teach(server, "m", 5)
    port = server.base_url.port
    show(browser, server, "/#/learners/m")
    ask(browser, "tax hotel")
    assert browser.run("return document.querySelector('.answer').inert") is False
    with socket.socket() as closed:  # stops the server, and nobody answers at its address
        make_server()
        closed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        closed.bind(("127.0.0.1", port))
        browser.wait(lambda: browser.text("#status") == ["no reply from the server; trying again"])
        assert browser.run("return document.querySelector('.answer').inert")
        assert float(browser.run("return getComputedStyle(document.querySelector('.answer')).opacity")) < 0.6
    make_server(port=port).put("/v1/learners/m", json={"task": "multiclass"})
    browser.wait(lambda: browser.text("#status") == ["live"])
    assert browser.run("return document.querySelector('.answer').inert") is False
    assert all("ERR_CONNECTION" in entry["message"] for entry in browser.logs())


def test_the_api_is_described_without_anything_from_elsewhere(server, browser):
    show(browser, server, "/docs")
    browser.wait(lambda: browser.text("main h1"))
    paths = server.get("/openapi.json").json()["paths"]
    assert len(browser.find(".operation")) == sum(len(methods) for methods in paths.values())
    browser.one(".operation summary").click()
    browser.wait(lambda: "features" in "".join(browser.text(".operation[open] table")))


def test_how_sure_it_can_be(server, teach, browser):
    teach(server, "m", 120, {"task": "multiclass"})
    show(browser, server, "/#/learners/m")
    browser.wait(lambda: version(browser) == "120")
    browser.one('.tabs a[href$="/sure"]').click()
    browser.wait(lambda: browser.find(".stated tbody tr"))
    reply = server.get("/v1/learners/m/reliability").json()
    assert len(browser.find(".stated tbody tr")) == len(reply["bins"])
    assert browser.text(".stated tbody tr:last-child td")[-1] == str(reply["bins"][-1]["n"])
    assert browser.one(".tabs [aria-current]").text == "How sure can I be"


def test_review_by_keys_with_undo(server, teach, browser):
    teach(server, "m", 60, {"task": "multiclass"})
    for words in (["flight", "invoice"], ["invoice", "team"], ["gate", "due"]):
        server.post("/v1/learners/m/predict", json={"features": words})
    show(browser, server, "/#/learners/m/review")
    browser.wait(lambda: browser.find(".choices button"))
    first = browser.text(".instance p")
    label = browser.one(".choices li:nth-child(2) button").get_attribute("data-label")
    browser.one("body").send_keys("2")
    browser.wait(lambda: browser.text(".outcome")[0] == f"{label}. 1 answered.")
    assert browser.text(".instance p") != first
    event = server.get("/v1/learners/m/events", params={"after": 60}).json()["events"][0]
    assert (event["truth"], " ".join(event["instance"]["features"])) == ({"label": label}, first[0])
    assert server.get("/v1/learners/m/queue").json()["queue"] == []  # the others are leased to this page
    browser.one("body").send_keys("u")
    browser.wait(lambda: browser.text(".outcome")[0].startswith("The last answer was retracted"))
    assert server.get("/v1/learners/m/events", params={"after": 60}).json()["events"][0]["retracted"]
    browser.one("body").send_keys("1")
    browser.wait(lambda: browser.text(".outcome")[0].endswith("1 answered."))
    browser.one("body").send_keys("1")
    browser.wait(lambda: not browser.one(".card").is_displayed())
