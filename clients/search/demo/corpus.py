"""The corpus of the demo: documentation strings of Python's standard library, read from source, not imported."""

from __future__ import annotations

import ast
import sqlite3
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from .. import fts5
from ..hits import Result

__all__ = ["Document", "SearchIndex", "documents"]

_PASSED_OVER = {"this", "antigravity", "idlelib", "lib2to3", "turtledemo"}


class Document(NamedTuple):
    """A module, class or function with a documentation string; `id` is its dotted name."""

    id: str
    module: str
    title: str
    kind: str
    body: str


def documents(library: Path | None = None, modules: int | None = None) -> Iterator[Document]:
    """Every public module of the standard library and its public classes and functions, by name."""
    root = library or Path(sysconfig.get_paths()["stdlib"])
    names = sorted(name for name in sys.stdlib_module_names if name[0] != "_" and name not in _PASSED_OVER)
    taken = 0
    for name in names:
        path = next((p for p in (root / f"{name}.py", root / name / "__init__.py") if p.is_file()), None)
        if path is not None and (modules is None or taken < modules):
            taken += 1
            yield from _read(name, ast.parse(path.read_bytes()))


def _read(module: str, tree: ast.Module) -> Iterator[Document]:
    for node in (tree, *tree.body):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node)
        own = "" if isinstance(node, ast.Module) else node.name
        if text and not own.startswith("_"):
            id = f"{module}.{own}" if own else module
            kind = {ast.ClassDef: "class", ast.FunctionDef: "function"}.get(type(node), "module")
            yield Document(id, module, id.replace(".", " ").replace("_", " "), kind, text)


class SearchIndex:
    """A full-text index of documents in memory; may be shared by threads."""

    def __init__(self, corpus: Iterator[Document]) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = Lock()
        columns = "id UNINDEXED, module UNINDEXED, title, kind UNINDEXED, body"
        self._connection.execute(f"CREATE VIRTUAL TABLE docs USING fts5({columns}, tokenize = 'porter')")
        self._connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", corpus)

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM docs").fetchone()[0])

    def search(self, query: str, limit: int = 20) -> list[Result]:
        """The engine's results."""
        with self._lock:
            return fts5.search(self._connection, "docs", query, id="id", limit=limit)

    def modules(self) -> list[str]:
        """The names of all modules."""
        with self._lock:
            return [row[0] for row in self._connection.execute("SELECT DISTINCT module FROM docs ORDER BY 1")]

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()
