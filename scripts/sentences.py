"""Sentences that are written in more than one module: `python scripts/sentences.py`; fails above `MOST` of them.

A message, a help text or a statement of SQL that stands in two places is soon worded, or mended, in one of them only.
Counted are the literals of at least four words in the three packages, docstrings left out; what is filled in counts as
one word.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("learners", "service", "clients")
WORDS, MOST = 4, 15
OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def literals(tree: ast.Module) -> Iterator[str]:
    """The texts of a module, those of f-strings with `{}` for what is filled in."""
    passed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, OWNERS) and ast.get_docstring(node, clean=False) is not None:
            passed.add(node.body[0].value)  # type: ignore[attr-defined]
        if isinstance(node, ast.JoinedStr):
            passed.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in passed:
            yield node.value


def repeated() -> dict[str, list[str]]:
    """Each sentence that stands in two modules or more, with the modules."""
    places: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for text in literals(ast.parse(file.read_text())):
                if len(text.split()) >= WORDS:
                    places[text].add(str(file.relative_to(ROOT)))
    return {text: sorted(files) for text, files in sorted(places.items()) if len(files) > 1}


if __name__ == "__main__":
    sentences = repeated()
    if len(sentences) > MOST:
        for text, files in sentences.items():
            print(f"{text!r}: {', '.join(files)}")
        sys.exit(f"{len(sentences)} sentences are written in two modules or more; at most {MOST} may be")
