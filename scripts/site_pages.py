"""Put the pages of the documentation site together: those of the tree, and two made from the code.

    python scripts/site_pages.py FOLDER

The folder gets the layout of the tree, so that a link works on the site as it does in the repository, and `mkdocs.yml` with
every page in its menu.
"""

import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from feedrank import clients, learners
from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs", "examples", "benchmarks")
KINDS = {".md", ".png", ".svg", ".py", ".ipynb", ""}
MENU = "BENCHMARKS"  # where mkdocs.yml wants the pages of the figures


def copy(target: Path) -> None:
    """The written pages, and what they link to."""
    for name in PAGES:
        source = ROOT / name
        files = [source] if source.is_file() else [f for f in sorted(source.rglob("*")) if f.is_file()]
        for file in files:
            if file.suffix in KINDS and "results" not in file.parts:
                place = target / file.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


def kind(schema: dict[str, Any]) -> str:
    """A schema in one line."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if either := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(kind, either)))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def calls() -> Iterator[str]:
    """Every call of /openapi.json: what it does, its parameters, bodies and replies."""
    described = create_app(Settings(store="sqlite::memory:")).openapi()
    yield "# Every call\n\nMade from `/openapi.json`. [The API with curl](../docs/api.md) shows them at work.\n"
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            yield f"## `{method.upper()} {path}`\n"
            yield (call.get("description") or call.get("summary") or "").strip() + "\n"
            if parameters := call.get("parameters"):
                yield row("parameter", "in", "type", "meaning") + "\n|---|---|---|---|"
                for one in parameters:
                    text = one.get("description", "")
                    yield row(f"`{one['name']}`", one["in"], kind(one.get("schema", {})), text)
                yield ""
            body = call.get("requestBody", {}).get("content", {})
            yield "".join(f"Body ({media}): {kind(part.get('schema', {}))}\n" for media, part in body.items())
            yield row("status", "reply", "meaning") + "\n|---|---|---|"
            for status, reply in call.get("responses", {}).items():
                shapes = {kind(part.get("schema", {})) for part in reply.get("content", {}).values()}
                yield row(status, " or ".join(sorted(shapes)), reply.get("description", ""))
            yield ""
    yield "## Bodies and replies\n"
    for name, schema in sorted(described.get("components", {}).get("schemas", {}).items()):
        yield f"### {name}\n\n{schema.get('description', '')}\n"
        if properties := schema.get("properties"):
            yield row("field", "type", "meaning") + "\n|---|---|---|"
            for field, part in properties.items():
                needed = " (required)" if field in schema.get("required", ()) else ""
                yield row(f"`{field}`{needed}", kind(part), part.get("description", ""))
            yield ""


def signature(call: Callable[..., Any]) -> str:
    """How it is called, without the package's own prefix in the types."""
    return str(inspect.signature(call)).replace("feedrank.", "").replace("'", "")


def members(module: Any, level: str) -> Iterator[str]:
    """What a module promises in `__all__`, with the public methods of its classes."""
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if inspect.ismodule(value) or not callable(value):
            continue
        yield f"{level} `{name}`\n\n{inspect.getdoc(value) or ''}\n"
        if not inspect.isclass(value):
            yield f"```python\n{name}{signature(value)}\n```\n"
            continue
        if issubclass(value, Exception):
            continue
        for method, call in inspect.getmembers(value, inspect.isfunction):
            if not method.startswith("_") and call.__doc__:
                yield f"- `{method}{signature(call)}`: {call.__doc__.strip().splitlines()[0]}"
        yield ""


def python() -> Iterator[str]:
    """The public names of the learners and of the client."""
    yield "# Python\n\nMade from the code: what `__all__` promises.\n\n## `feedrank.learners`\n"
    yield from members(learners, "###")
    yield "## `feedrank.clients`\n\n[From Python, over HTTP](../docs/client.md) shows it at work.\n"
    yield from members(clients, "###")


def main(target: Path) -> None:
    """All pages, and the settings of the site beside them."""
    shutil.rmtree(target, ignore_errors=True)
    copy(target)
    for name, text in {"calls": calls(), "python": python()}.items():
        place = target / "reference" / f"{name}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text("\n".join(text))
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    figures = sorted(page.name for page in (target / "benchmarks").glob("*.md"))
    for entry in settings["nav"]:
        for title, pages in entry.items():
            if pages == MENU:
                entry[title] = [f"benchmarks/{page}" for page in figures]
    listed = yaml.safe_dump(settings["nav"])
    unlisted = [
        f"docs/{page.name}" for page in sorted((target / "docs").glob("*.md")) if page.name not in listed
    ]
    if unlisted:
        settings["nav"].append({"More": unlisted})
    settings |= {"docs_dir": str(target), "site_dir": str(target.parent / "site")}
    (target.parent / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
