"""One thread for NumPy, as the command line sets it; laws without a clock; a real browser, only for the tests of pages."""

import gc
import os
import shutil
import signal
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, not whether the law holds.
settings.register_profile("feedrank", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("feedrank")

# What is collected stays until the end: looking for garbage in it takes half the time of collecting, in every process.
gc.disable()

# NumPy reads it on import. Products are small, and on a busy machine threads that wait for each other cost seconds.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests that run in the background of a shell ignore Ctrl-C, and so would every command that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--window-size=1280,900",
)
# Files that take longest, the longest first: a run on several processes begins with them, so that none waits for one of
# them at the end.
LONG = (
    "test_benchmarks.py",
    "test_page_browser.py",
    "test_mail_commands.py",
    "test_openapi.py",
    "test_mail_page.py",
    "test_laws.py",
    "test_mail_filing.py",
    "test_package.py",
    "test_docker.py",
    "test_server_process.py",
    "test_cli.py",
    "test_same_bits.py",
    "test_mail_dovecot.py",
    "test_mail_folders.py",
    "test_mail_watching.py",
    "test_mail_moves.py",
    "test_search_demo.py",
    "test_demo.py",
    "test_faults_disk.py",
    "test_spreading.py",
    "test_ingest.py",
    "test_http_door.py",
    "test_forged_snapshots.py",
    "test_refusal_laws.py",
    "test_prediction_laws.py",
    "test_experiment_handover.py",
    "test_trials.py",
    "test_stream.py",
    "test_experiment_http.py",
    "test_limits.py",
    "test_extremes.py",
    "test_experiment_state.py",
    "test_faults_kill.py",
    "test_compat.py",
    "test_task_searches.py",
    "test_examples.py",
    "test_site.py",
)
# What `scripts/test quick` leaves out beside the long files: parts of other programs, and faults made on purpose.
FIXTURES = {"chromium", "imap_server", "dovecot", "kafka", "nats_address", "own_redis", "own_postgres",
            "redis_cluster", "redis_replicated", "kill_rounds"}  # fmt: skip
FOLDERS = {"imap", "artefacts", "page"}
# What a condition may raise while the page is still being drawn.
NOT_YET = (IndexError, ValueError)


def pytest_collection_modifyitems(items):
    """Long files first. A file is done by one process, and all tests of pages by the one that has the browser."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))
    for item in items:
        item.add_marker(
            pytest.mark.xdist_group("browser" if "chromium" in item.fixturenames else item.path.name)
        )
        if item.path.name in places or FIXTURES & set(item.fixturenames) or FOLDERS & set(item.path.parts):
            item.add_marker(pytest.mark.whole)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def quick_cc(tmp_path_factory):
    """A C compiler that does not optimise, for tests of builds: it takes a seventh of the time."""
    script = tmp_path_factory.mktemp("compiler") / "cc"
    script.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Debian's chromium, driven by selenium; a profile of its own."""
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    if None in programs:
        pytest.skip("no browser: `apt-get install chromium chromium-driver` to test the pages")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """The browser at its usual size and in light mode. What it logs by the end of a test, CSP reports too, fails it."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def emulate(scheme="light", width=1280):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def find(css):
        return chromium.find_elements(By.CSS_SELECTOR, css)

    def wait(condition, message=""):
        return WebDriverWait(chromium, 600, 0.05, NOT_YET).until(lambda _: condition(), message)

    def text(css):
        return chromium.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", css
        )

    def one(css):
        return wait(lambda: find(css), css)[0]

    def logs():
        return chromium.get_log("browser")

    def opened(url):
        chromium.get("about:blank")  # else only the part behind # would change
        chromium.get(url)

    emulate()
    opened("about:blank")
    logs()
    yield SimpleNamespace(
        driver=chromium,
        emulate=emulate,
        find=find,
        wait=wait,
        text=text,
        one=one,
        logs=logs,
        open=opened,
        run=chromium.execute_script,
    )
    assert logs() == []
