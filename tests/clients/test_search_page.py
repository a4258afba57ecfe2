"""docs/search.md says what runs: its Python blocks, in order, against the service in process."""

import re
from functools import partial
from pathlib import Path

from feedrank.clients import Client
from feedrank.clients.search import Reranker
from feedrank.embedded import Embedded

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
ADDRESS = 'Client("http://127.0.0.1:8000")'


def test_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    assert ADDRESS in blocks[0]
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'page.db'}")) as client:
        # A busy machine may take longer than a visitor would wait.
        names = {"embedded": client, "patient": partial(Reranker, deadline=300)}
        for block in blocks:
            exec(block.replace(ADDRESS, "embedded").replace("Reranker(", "patient("), names)
        reranker = names["reranker"]
        assert reranker.flush(300)
        counts = reranker.outbox.counts
        assert (counts.sent, counts.refused, reranker.last_error) == (2, 0, None)
        # Both pages are in their window. Closed, each counts once, with the clicks that joined it.
        assert reranker.closed(names["page"], ["sku-2"])
        assert reranker.flush(300)
        assert client.learner("shop-search").version == 1
        assert reranker.status().handover["evidence"] == 1
        reranker.close()
    assert names["show"] == ["sku-7", "sku-2"]
    assert names["page"].prediction_id == "5e3b2a1c-8b7d-4f2e-a3d4-c9b2e1f3a4b5"
