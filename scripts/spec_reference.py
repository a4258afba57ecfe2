"""Write docs/spec.md from the registrations of the core: `python scripts/spec_reference.py`."""

from pathlib import Path

from feedrank.learners import spec_page

if __name__ == "__main__":
    Path(__file__).resolve().parent.parent.joinpath("docs", "spec.md").write_text(spec_page.page())
