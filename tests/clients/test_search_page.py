"""docs/search.md says what runs: its Python blocks, in order, against the service in process."""

import re
from functools import partial
from pathlib import Path

from feedrank.clients import Client
from feedrank.clients.search import Reranker
from feedrank.embedded import Embedded

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
ADDRESS = 'Client("http://127.0.0.1:8000")'


def test_the_page_runs(tmp_path, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    assert ADDRESS in blocks[0]
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'page.db'}")) as client:
        # A busy machine may take longer than a visitor would wait.
        names = {"embedded": client, "patient": partial(Reranker, deadline=30)}
        for block in blocks:
            exec(block.replace(ADDRESS, "embedded").replace("Reranker(client,", "patient(client,"), names)
        assert client.learner("shop-search").version == 1  # the UBI events told the same clicks again
        assert client.learner("learned").version == 1
    assert names["show"] == ["sku-7", "sku-2"]
    assert capsys.readouterr().out == "undecided\n"
    names["reranker"].close()
    names["trial"].close()
