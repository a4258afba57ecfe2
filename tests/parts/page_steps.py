"""What tests do on the page in a browser."""


def show(browser, client, path="/#/"):
    browser.open(f"{client.base_url}".rstrip("/") + path)


def version(browser):
    tiles = browser.text(".tile dd")
    return tiles[0] if tiles else ""


def curve(browser):
    return browser.run("return document.querySelector('.plot .line.mean')?.getAttribute('d')")


def ask(browser, words):
    field = browser.one("#instance")
    field.clear()
    field.send_keys(words)
    browser.one(".card form button").click()
