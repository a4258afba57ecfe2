"""Experiments on the page, in a real browser: watched, paused, promoted."""

from page_steps import show


def test_an_experiment_narrows_while_one_watches(server, browser):
    for name in ("a", "b"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    server.put("/v1/experiments/e", json={"arms": ["a", "b"], "measure": "reward"})

    def play(start, rounds):
        asked = [{"features": ["x"], "unit": f"u{i}"} for i in range(start, start + rounds)]
        reply = server.post("/v1/experiments/e/predict", json={"instances": asked}).json()["predictions"]
        events = [
            {"prediction_id": one["prediction_id"], "reward": float(one["learner"] == "b")} for one in reply
        ]
        assert server.post("/v1/experiments/e/feedback", json={"events": events}).status_code == 200

    play(0, 4)
    show(browser, server, "/#/experiments")
    browser.wait(lambda: "Undecided" in "".join(browser.text(".experiments .card")))
    browser.one(".experiments a").click()
    browser.wait(lambda: "Undecided" in "".join(browser.text(".verdict")))
    play(4, 80)
    browser.wait(lambda: browser.text(".verdict.decided") == ["b is better"])
    band = browser.run("return document.querySelector('.band').getAttribute('d')")
    assert band.count("L") > 40
    assert browser.text(".arms tbody tr")[1].startswith("b1.00")
    reply = [picture.get_attribute("aria-label") for picture in browser.find(".picture .strip")]
    assert all("expected 50 %" in each for each in reply)
    assert browser.text(".forest button") == ["a minus b"]
    assert "a minus b over time: reward" in browser.text(".card h2")


def test_an_experiment_is_paused_and_promoted_only_when_confirmed(server, browser):
    for name in ("a", "b"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    definition = {"arms": ["a", "b"], "measure": "reward", "alias": "live"}
    server.put("/v1/experiments/e", json=definition)
    status = lambda: server.get("/v1/experiments/e").json()["status"]  # noqa: E731
    show(browser, server, "/#/experiments/e")
    browser.wait(lambda: "Pause" in browser.text(".actions button"))
    pause, stop, promote, _ = browser.find(".actions button")
    pause.click()
    browser.wait(lambda: "Resume" in browser.text(".actions button"))
    assert status() == "paused"
    pause.click()
    browser.wait(lambda: status() == "running")
    stop.click()
    browser.one("dialog.confirm button.quiet").click()
    browser.wait(lambda: not browser.find("dialog.confirm"))
    assert status() == "running"
    promote.click()
    browser.wait(lambda: browser.find("dialog.confirm select"))
    browser.run("document.getElementById('promote-arm').value = 'b'")
    browser.find("dialog.confirm menu button")[1].click()
    browser.wait(lambda: status() == "stopped")
    assert server.get("/v1/experiments/e").json()["promoted"] == "b"
    assert server.get("/v1/learners/live").json()["name"] == "b"


def test_a_guardrail_that_has_not_passed_must_be_overridden_on_the_page(server, browser):
    for name in ("a", "b"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    guard = {"measure": "zero-one", "limit": 0.02}
    server.put(
        "/v1/experiments/e",
        json={"arms": ["a", "b"], "measure": "reward", "guardrails": [guard], "alias": "live"},
    )
    show(browser, server, "/#/experiments/e")
    browser.wait(lambda: "Promote" in browser.text(".actions button"))
    for override in (False, True):
        browser.find(".actions button")[2].click()
        browser.wait(lambda: browser.find("#promote-override"))
        browser.run("document.getElementById('promote-arm').value = 'b'")
        if override:
            browser.one("#promote-override").click()
        browser.find("dialog.confirm menu button")[1].click()
        if not override:
            browser.wait(lambda: "override" in "".join(browser.text(".actions .outcome")))
            assert server.get("/v1/experiments/e").json()["promoted"] is None
            assert all("409" in line["message"] for line in browser.logs())
    browser.wait(lambda: server.get("/v1/experiments/e").json()["promoted"] == "b")
    browser.wait(lambda: any("b was promoted" in text for text in browser.text(".head p")))


def test_five_arms_are_one_plot_and_one_table_and_a_promotion_is_taken_back(server, browser):
    arms = [f"arm{i}" for i in range(5)]
    for name in (*arms, "before"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    server.put("/v1/aliases/live", json={"learner": "before"})
    per = {"window": 0.05, "value": "any"}
    plan = {
        "arms": arms,
        "measure": "metric:orders",
        "per": per,
        "segments": {"country": ["DE"]},
        "alias": "live",
    }
    server.put("/v1/experiments/e", json=plan)
    for i in range(40):
        body = {"unit": f"u{i}", "segments": {"country": "DE"}}
        arm = server.post("/v1/experiments/e/assign", json=body).json()["arm"]
        event = {"unit": f"u{i}", "metric": "orders", "value": float(arm == "arm4")}
        server.post("/v1/experiments/e/events", json=event).raise_for_status()
    show(browser, server, "/#/experiments/e")
    browser.wait(lambda: len(browser.find(".forest button")) == 10)
    assert len(browser.find(".plot")) == 1
    assert len(browser.find(".arms tbody tr")) == 5
    browser.find(".forest button")[9].click()
    browser.wait(
        lambda: any(text.startswith("arm3 minus arm4 over time") for text in browser.text(".card h2"))
    )
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    promote, back = browser.find(".actions button")[2:]
    assert promote.get_attribute("class") == "quiet"
    promote.click()
    browser.wait(lambda: "live serves before now" in "".join(browser.text("dialog .note")))
    browser.run("document.getElementById('promote-arm').value = 'arm4'")
    browser.find("dialog.confirm menu button")[1].click()
    browser.wait(lambda: server.get("/v1/learners/live").json()["name"] == "arm4")
    browser.wait(back.is_displayed)
    back.click()
    browser.wait(lambda: browser.find("dialog.confirm"))
    browser.find("dialog.confirm menu button")[1].click()
    browser.wait(lambda: server.get("/v1/learners/live").json()["name"] == "before")


def test_an_experiment_is_defined_on_the_page(server, browser):
    for name in ("old", "new"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    show(browser, server, "/#/experiments")
    browser.wait(lambda: browser.find(".create summary"))
    browser.one(".create summary").click()
    browser.one("#plan-name").send_keys("trial")
    browser.one("#plan-arms").send_keys("old, nobody")
    browser.one("#plan-measure").send_keys("reward")
    browser.run(
        "const value = document.getElementById('plan-value'); value.value = 'total';"
        "value.dispatchEvent(new Event('change'))"
    )
    browser.one(".create form button").click()
    browser.wait(lambda: "nobody" in "".join(browser.text(".create .outcome")))
    field = browser.one("#plan-arms")
    field.clear()
    field.send_keys("old, new")
    browser.one(".create form button").click()
    browser.wait(lambda: "Started" in "".join(browser.text(".create .outcome")))
    definition = server.get("/v1/experiments/trial").json()["definition"]
    assert definition["arms"] == ["old", "new"]
    assert definition["per"] == {"window": 604800.0, "value": "total", "cap": 100.0}
    browser.wait(lambda: browser.text(".experiments h2") == ["trial"])
    assert all("422" in line["message"] for line in browser.logs())
