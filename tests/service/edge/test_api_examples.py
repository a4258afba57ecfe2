"""The examples of docs/api.md, run in order against a server; and the links of the guides lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
WAITED = re.compile(r'^feedrank_waits_total\{reason="([^"]+)"\}', re.M)
GUIDES = ("api.md", "errors.md", "operating.md", "architecture.md")


def test_examples_of_the_api_guide_work(start, tmp_path):
    process = start()
    text = (DOCS / "api.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.S)
    script = "\n".join(blocks).replace("http://127.0.0.1:8000", process.url)
    # Every curl fails on a refusal, and with it the script.
    script = 'set -eu\ncurl() { command curl --fail-with-body --silent --show-error "$@"; echo; }\n' + script
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert '"duplicate":true' in done.stdout
    assert '"contributions"' in done.stdout
    assert (tmp_path / "messages.feedrank").stat().st_size > 0
    # Only these could not be answered in the callback of their socket: the first call by an alias, and predictions under an
    # id of the caller's own, which the store may know already.
    metrics = subprocess.run(
        ["curl", "-s", f"{process.url}/metrics"], capture_output=True, text=True, check=True
    )
    assert set(WAITED.findall(metrics.stdout)) <= {"name", "remembering", "subject"}


@pytest.mark.parametrize("guide", GUIDES)
def test_links_lead_somewhere(guide):
    text = (DOCS / guide).read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        page = DOCS / name if name else DOCS / guide
        assert page.exists(), target
        headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.M)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, target


def test_every_type_of_problem_is_listed():
    from feedrank.service.contract import faults as errors
    from feedrank.service.http import edge, problems, shares, wire

    listed = (DOCS / "errors.md").read_text()
    kinds = {
        kind
        for module in (errors, problems, edge, shares, wire)
        for kind in vars(module).values()
        if isinstance(kind, type)
    }
    for kind in kinds:
        if issubclass(kind, errors.ServiceError) and kind is not errors.StoreRefused:
            assert f"| `{kind.type}` | {kind.status} |" in listed
