"""The page for everyone: enough contrast, the keyboard alone, a name for everything, a narrow screen."""

import json

import pytest
from page_steps import show, version
from selenium.webdriver import ActionChains, Keys


def contrast(browser, ink, ground):
    """The contrast of two colours of the style sheet, as WCAG defines it."""
    return browser.run(
        """
        const light = (name) => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.color = `var(--${name})`;
          const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
          });
          probe.remove();
          return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const [one, two] = [light(arguments[0]), light(arguments[1])].sort((a, b) => b - a);
        return (one + 0.05) / (two + 0.05);
        """,
        ink,
        ground,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_enough_contrast(server, teach, browser, scheme):
    browser.emulate(scheme)
    teach(server, "m", 5)
    show(browser, server)
    browser.wait(lambda: browser.find(".spark"))
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, ground[4:-1].split(","))) < 60) == (scheme == "dark")
    pairs = [("ink", "card"), ("dim", "card"), ("dim", "ground"), ("accent", "card"), ("on-accent", "accent")]
    pairs += [
        ("recent", "card"),
        ("for", "for-wash"),
        ("against", "against-wash"),
        ("ink", "wash"),
        ("dim", "wash"),
    ]
    low = {pair: contrast(browser, *pair) for pair in pairs if contrast(browser, *pair) < 4.5}
    assert not low


def test_the_keyboard_alone_is_enough(server, teach, browser):
    teach(server, "m", 30)
    show(browser, server)
    browser.wait(lambda: browser.find(".spark path"))

    def tab_to(css):
        for _ in range(60):
            ActionChains(browser.driver).send_keys(Keys.TAB).perform()
            if browser.run("return document.activeElement.matches(arguments[0])", css):
                # Where one is must be seen.
                ring = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
                assert ring == "solid"
                return
        raise AssertionError(f"{css} cannot be reached")

    def press(*keys):
        ActionChains(browser.driver).send_keys(*keys).perform()

    tab_to('a[href="#/learners/m"]')
    press(Keys.ENTER)
    browser.wait(lambda: version(browser) == "30")
    tab_to(".plot")
    now = browser.text(".where")
    press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert browser.text(".where") != now
    tab_to("#instance")
    press("hotel gate")
    ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    browser.wait(lambda: browser.find(".ranking > li"))
    tab_to(".ranking button")
    press(Keys.ENTER)
    browser.wait(lambda: version(browser) == "31")
    tab_to(".labels tr:last-child button")
    press(Keys.SPACE)
    browser.wait(
        lambda: browser.text('.labels [aria-pressed="true"]') == browser.text(".labels tr:last-child button")
    )


def test_everything_has_a_name_and_fits_a_narrow_screen(server, teach, browser):
    browser.emulate(width=360)
    teach(server, "m", 30)
    server.put("/v1/learners/other", json={"task": "multiclass"})
    server.put("/v1/experiments/e", json={"arms": ["m", "other"]})
    for path, ready in (
        ("/#/", ".spark path"),
        ("/#/learners/m", ".weights .bar"),
        ("/#/experiments", ".experiments strong"),
        ("/#/experiments/e", ".picture .strip"),
    ):
        show(browser, server, path)
        browser.wait(lambda ready=ready: browser.find(ready))
        wide = browser.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, path
        nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        needing = {"button", "link", "textbox", "searchbox", "img", "checkbox", "spinbutton", "navigation"}
        for node in nodes:
            if not node.get("ignored") and node["role"]["value"] in needing:
                assert node.get("name", {}).get("value"), (path, json.dumps(node["role"]))
