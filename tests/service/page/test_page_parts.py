"""Experts, choices, comparing, making learners, long lists of labels, health, and calls that are tried on /docs."""

import pytest

ITEMS = [{"id": name, "features": {}} for name in ("coffee", "tea")]


@pytest.fixture
def show(browser, server):
    def go(path=""):
        browser.open(f"{str(server.base_url).rstrip('/')}/{path.removeprefix('/')}")

    return go


def test_the_front_page_names_the_kernel_and_makes_a_learner(server, browser, show):
    show()
    browser.wait(lambda: "Ready" in browser.text(".health")[0] and "kernel" in browser.text(".health")[0])
    browser.one(".create summary").click()
    browser.wait(lambda: "ordinal" in browser.text("#new-task option"))
    assert "gamma" in browser.text(".create .spec dt")  # every field that the server knows
    browser.one("#new-name").send_keys("fresh")
    browser.one(".create form button").click()
    browser.wait(lambda: browser.text(".create .outcome") and "two" in browser.text(".create .outcome")[0])
    browser.one("#new-labels").send_keys("no, yes")
    browser.one(".create form button").click()
    browser.wait(lambda: browser.text(".create .outcome a") == ["fresh"])
    assert server.get("/v1/learners/fresh").json()["spec"]["labels"] == ["no", "yes"]
    assert all("422" in entry["message"] for entry in browser.logs())  # the refusal, nothing else


def test_costs_are_typed_into_a_table_of_the_labels(server, browser, show):
    show()
    browser.one(".create summary").click()
    browser.wait(lambda: "ordinal" in browser.text("#new-task option"))
    browser.one("#new-name").send_keys("priced")
    browser.one("#new-labels").send_keys("no, yes, __proto__")
    browser.one(".create form details summary").click()
    cells = browser.find(".costs input")
    assert len(cells) == 9
    cells[1].send_keys("2.5")
    browser.one("#new-labels").send_keys(", more")  # what was typed stays
    browser.find(".costs input")[4].send_keys("0")
    browser.one("#new-task option[value=multiclass]").click()
    browser.one(".create form button").click()
    browser.wait(lambda: browser.text(".create .outcome a") == ["priced"])
    spec = server.get("/v1/learners/priced").json()["spec"]
    assert (spec["algorithm"], spec["loss"], spec["matrix"]) == (
        "auto",
        "matrix",
        {"no": {"yes": 2.5}, "yes": {"no": 0}},
    )
    browser.one("#new-task option[value=multilabel]").click()
    assert not browser.find(".costs")[0].is_displayed()


def test_experts_stand_beside_the_pool_and_an_empty_learner_claims_nothing(server, teach, browser, show):
    teach(server, "pool", 30, {"task": "multiclass"})
    show("/#/learners/pool")
    browser.wait(lambda: len(browser.text(".experts tbody tr")) == 7)
    teach(server, "pool", 5, {"task": "multiclass"})
    browser.wait(lambda: browser.find(".line.more-7"))  # the pool and seven experts
    server.put("/v1/learners/empty", json={"task": "multilabel"})
    show("/#/learners/empty")
    browser.wait(lambda: "No event yet" in browser.text("main")[0])
    # A card without data is not drawn; what it is made of, and a form to try it, are.

    def drawn():
        return {title.text for title in browser.find(".card h2") if title.is_displayed()}

    browser.wait(lambda: drawn() == {"No event yet", "Try it", "Settings"})
    assert "Proved" not in browser.text("main")[0]
    server.post("/v1/learners/empty/feedback", json={"features": ["a"], "labels": ["x"]})
    browser.wait(lambda: {"Learning curve", "Labels", "Recent events", "Experts"} <= drawn())
    assert "No event yet" not in drawn()


def test_a_field_of_the_settings_leads_to_what_it_means(server, browser, show):
    server.put("/v1/learners/m", json={"task": "multiclass"})
    show("/#/learners/m")
    browser.wait(lambda: "normalize" in browser.text(".spec dt"))
    link = next(one for one in browser.find(".spec dt a") if one.text == "normalize")
    link.click()
    browser.wait(lambda: browser.find("#spec-normalize.here"))
    assert browser.one("#spec-normalize").is_displayed()


def test_a_choice_shows_its_items_and_its_apprentice(server, browser, show):
    server.put("/v1/learners/drinks", json={"task": "choice", "baseline": 0.5})
    for _ in range(5):
        served = server.post("/v1/learners/drinks/predict", json={"items": ITEMS}).json()
        event = {"prediction_id": served["prediction_id"], "reward": 1}
        server.post("/v1/learners/drinks/feedback", json=event)
    show("/#/learners/drinks")
    browser.wait(lambda: "coffee" in "".join(browser.text(".chosen tbody th")))
    assert "valid at every look" in browser.text(".guard")[0]
    browser.one(".card form button").click()
    browser.wait(lambda: "drawn with probability" in "".join(browser.text(".decision")))


def test_learners_are_compared_on_one_chart(server, teach, browser, show):
    for name in ("one", "two"):
        teach(server, name, 30)
    show()
    browser.wait(lambda: len(browser.find(".learners input")) == 2)
    for box in browser.find(".learners input"):
        box.click()
    browser.one(".compare").click()
    browser.wait(lambda: browser.text(".compared tbody th") == ["one", "two"])
    browser.wait(lambda: browser.find(".line.mean") and browser.find(".line.more-1"))


def test_many_labels_are_paged_and_searched(server, browser, show):
    labels = [f"label-{i:03}" for i in range(45)]
    server.put("/v1/learners/many", json={"task": "multiclass", "algorithm": "predtron", "labels": labels})
    show("/#/learners/many")
    browser.wait(lambda: "1 to 20 of 45" in browser.text(".pager")[0])
    browser.find(".pager button")[1].click()
    browser.wait(lambda: "21 to 40 of 45" in browser.text(".pager")[0])
    browser.one("#label-search").send_keys("044")
    browser.wait(lambda: browser.text(".labels tbody th") == ["label-044"])


def test_nothing_is_hidden_on_a_phone(server, teach, browser, show):
    teach(server, "n" * 100, 30)
    browser.emulate(width=390)
    show()
    browser.wait(lambda: browser.find(".spark path"))
    cells = browser.find(".learners tbody td")
    assert len(cells) == 5
    assert all(cell.is_displayed() for cell in cells)
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_a_call_is_tried_on_the_page_of_the_api(server, browser, show):
    show("/docs")
    browser.wait(lambda: browser.find(".operation"))
    calls = browser.text(".operation > summary code")
    at = calls.index("PUT /v1/learners/{name}")
    browser.run("document.querySelectorAll('.operation')[arguments[0]].open = true", at)
    form = browser.find(".operation .attempt")[at]
    name = form.find_element("css selector", "input[name=name]")
    name.send_keys("tried")
    body = form.find_element("css selector", "textarea")
    body.clear()
    body.send_keys('{"task": "multiclass"}')
    form.find_element("css selector", "button").click()
    browser.wait(lambda: browser.text(".operation[open] [role=status]")[0].startswith("201"))
    assert server.get("/v1/learners/tried").status_code == 200
    assert "progress" in "".join(browser.text(".operation[open] li details table"))  # the reply's fields
    for call in ("feedback", "predict"):  # as they come, with the example in the field
        at = calls.index(f"POST /v1/learners/{{name}}/{call}")
        browser.run("document.querySelectorAll('.operation')[arguments[0]].open = true", at)
        form = browser.find(".operation .attempt")[at]
        form.find_element("css selector", "input[name=name]").send_keys("tried")
        form.find_element("css selector", "button").click()
        status = form.find_element("css selector", "[role=status]")
        browser.wait(lambda status=status: status.text.startswith("200"))


def test_curves_run_over_time_too_and_experts_are_drawn_from_the_first_round(server, teach, browser, show):
    teach(server, "pool", 30, {"task": "multiclass"})
    points = server.get("/v1/learners/pool/history").json()["points"]
    assert [point["rounds"] for point in points] == list(range(1, 31))
    assert points == sorted(points, key=lambda point: point["at"])
    show("/#/learners/pool")
    browser.wait(lambda: browser.find(".line.more-3"))
    assert browser.text(".where")[0] == "round 30"
    browser.find(".axes button")[1].click()
    browser.wait(lambda: ":" in browser.text(".where")[0])
    assert len(browser.find(".line.more-3")) == 1
    browser.find(".axes button")[0].click()
    browser.wait(lambda: browser.text(".where")[0] == "round 30")


def test_a_learner_is_tried_with_what_it_was_taught_with(server, browser, show):
    server.put("/v1/learners/tickets", json={"task": "multiclass"})
    for i in range(4):
        subject, label = (("refund", "billing"), ("password", "access"))[i % 2]
        event = {"text": {"subject": subject, "body": "hello"}, "label": label}
        server.post("/v1/learners/tickets/feedback", json=event)
    show("/#/learners/tickets")
    browser.wait(lambda: len(browser.find("[data-field]")) == 2)
    assert "refund hello" in browser.text(".events")[0]
    browser.find("[data-field]")[0].send_keys("zyzzyva")
    browser.one(".card form button").click()
    browser.wait(lambda: "knows no feature" in "".join(browser.text(".outcome")))
    browser.find("[data-field]")[0].send_keys(" refund")
    browser.one(".card form button").click()
    browser.wait(lambda: "knows no feature" not in "".join(browser.text(".outcome")))
    assert browser.text(".decision")[0].startswith("billing")


def test_vectors_and_records_are_tried_as_they_are(server, browser, show):
    server.put("/v1/learners/vectors", json={"task": "multiclass"})
    for i in range(6):
        event = {"vector": [1.0 - 2 * (i % 2), 0.5, 0.25], "label": "ab"[i % 2]}
        server.post("/v1/learners/vectors/feedback", json=event)
    show("/#/learners/vectors")
    browser.wait(lambda: "a vector of 3 numbers" in "".join(browser.text(".events")))
    for typed, label in (("[1, 0.5, 0.25]", "a"), ("AACAvwAAAD8AAIA+", "b")):
        browser.run("document.querySelector('#instance').value = arguments[0]", typed)
        browser.one(".card form button").click()
        browser.wait(lambda label=label: (browser.text(".decision") or [""])[0].startswith(label))
    browser.run("document.querySelector('#instance').value = '[1]'")
    browser.one(".card form button").click()
    browser.wait(
        lambda: browser.run("return document.querySelector('.answer').inert")
    )  # it was not said of this
    assert any("422" in entry["message"] for entry in browser.logs())
    spec = {"task": "multiclass", "input": {"Subject": "text", "Plan": "category", "Id": "id"}}
    server.put("/v1/learners/rows", json=spec)
    for i in range(6):
        row = {"Subject": ("refund card", "lost password")[i % 2], "Plan": "gold"}
        server.post("/v1/learners/rows/feedback", json={"row": row, "label": ("billing", "access")[i % 2]})
    show("/#/learners/rows")
    browser.wait(lambda: len(browser.find("[data-field]")) == 2)
    assert "refund card gold" in "".join(browser.text(".events"))
    browser.find("[data-field]")[0].send_keys("password")
    browser.one(".card form button").click()
    browser.wait(lambda: (browser.text(".decision") or [""])[0].startswith("access"))
