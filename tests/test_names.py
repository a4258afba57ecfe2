"""One name for one thing: within a package no class or type has two definitions, and no two files share a name."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
# The kernel's arrays, and what a learner asks of weights whatever their form: one thing in two layers.
KNOWN = {"learners": {"Weights"}, "service": set(), "clients": set()}


def definitions(package):
    """The classes and type aliases of a package, each with the files that define it."""
    places = defaultdict(set)
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name[0].isupper() and not name.isupper() and "TypeVar" not in ast.unparse(node.value):
                    places[name].add(path)
    return places


@pytest.mark.parametrize("package", KNOWN)
def test_no_class_or_type_is_defined_twice(package):
    twice = {name: sorted(map(str, paths)) for name, paths in definitions(package).items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in KNOWN[package]} == {}
    assert KNOWN[package] <= twice.keys()


@pytest.mark.parametrize("package", KNOWN)
def test_no_two_files_share_a_name(package):
    names = [path.name for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("package", [*KNOWN, "feedrank"])
def test_few_values_are_of_any_type(package):
    lines = uses = 0
    for path in (ROOT / package).rglob("*.py"):
        if package != "feedrank" or not set(path.parts) & set(KNOWN):
            text = path.read_text()
            lines += text.count("\n")
            uses += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(text)))
    assert lines > 500
    assert 1000 * uses / lines <= 12, f"{uses} uses of Any in {lines} lines"


@pytest.mark.parametrize("package", KNOWN)
def test_no_file_is_longer_than_one_idea(package):
    texts = {path.name: path.read_text() for path in (ROOT / package).rglob("*.py")}
    # What a script writes is as long as what it lists.
    long = {name: text.count("\n") for name, text in texts.items() if "\nWritten by scripts/" not in text}
    assert {name: lines for name, lines in long.items() if lines > 350} == {}
