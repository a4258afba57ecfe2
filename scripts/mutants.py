"""Would the tests notice? `scripts/mutants [--seed 1] [--count 60]`: small changes of hot files, and their tests.

A copy of the tree is made. The quick tests run there once, and `coverage` notes which of them reach each line of
the files below. Then, mutant by mutant, one operator, constant, condition or statement of a line that is reached is
changed, and the tests that reach it are run, those first that reach fewest lines. A mutant is killed when one of
them fails, or takes ten times as long as all; one that lives is printed. Fails when fewer than `--least` are killed.

What changes nothing that anybody could see is not drawn: docstrings, annotations, messages, `__slots__`,
`__repr__`, asserts and what only a type checker reads.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from reached import ROOT, copied, reaching, run

HOT = (  # what a predict, a feedback, a line of a stream and a fold cross
    "service/http/bodies.py",
    "service/http/calls.py",
    "service/http/wire.py",
    "service/runtime/appending.py",
    "service/runtime/applying.py",
    "service/runtime/at_once.py",
    "service/runtime/feedback.py",
    "service/runtime/follower.py",
    "service/runtime/memory.py",
    "service/runtime/predictor.py",
    "service/runtime/questions.py",
    "service/runtime/streams.py",
    "service/runtime/writer.py",
    "service/store/shared.py",
    "service/store/sqlite.py",
    "service/store/sqlite_writer.py",
    "learners/learner.py",
    "learners/growth.py",
    "learners/instances.py",
    "learners/truths.py",
    "learners/whole_rounds.py",
)
TESTS = 60  # at most so many of the tests that reach a line are run
PATIENCE = 10.0  # a mutant that takes so many times as long as the tests take is killed: it runs in circles
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
SILENT = {"__repr__", "__str__", "__slots__", "TYPE_CHECKING"}


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    what: str
    source: str


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in the place of `node`, and what was done."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        swapped = SWAPS[type(node.ops[0])]
        yield (
            f"{type(node.ops[0]).__name__} -> {swapped.__name__}",
            ast.Compare(node.left, [swapped()], node.comparators),  # type: ignore[list-item]
        )
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        other = copy.copy(node)
        other.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        yield f"{type(node.op).__name__} -> {type(other.op).__name__}", other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "without not", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        yield (
            f"{node.value} -> {not node.value if type(node.value) is bool else node.value + 1}",
            ast.Constant(not node.value if type(node.value) is bool else node.value + 1),
        )
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(node.test, ast.Constant):
        other = copy.copy(node)
        other.test = ast.UnaryOp(ast.Not(), node.test)
        yield "the other way", other
    elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        yield "left out", ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "returns nothing", ast.Return(None)


def seen(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Each node whose change somebody could see: its parent, the field, and its place in a list."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "msg", "exc"):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.Assert, ast.JoinedStr, ast.Raise)):
                continue
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.name in SILENT:
                continue
            if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id in SILENT:
                continue
            yield node, field, place
            yield from seen(child)


def mutants_of(path: str, reached: set[int]) -> Iterator[Mutant]:
    tree = ast.parse((ROOT / path).read_text())
    for parent, field, place in list(seen(tree)):
        node = getattr(parent, field) if place is None else getattr(parent, field)[place]
        line = getattr(node, "lineno", None)
        if line is None or line not in reached:
            continue
        for what, other in changes(node):
            ast.copy_location(other, node)
            put(parent, field, place, other)
            yield Mutant(path, line, what, ast.unparse(ast.fix_missing_locations(tree)))
            put(parent, field, place, node)


def put(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--least", type=float, default=0.9, help="the share that must be killed")
    parser.add_argument("tests", nargs="*", help="where tests are looked for; default: all quick ones")
    options = parser.parse_args()
    draw = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        lines = reaching(tree, HOT, "not slow and not artefact and not whole", options.tests)
        reached: dict[str, set[int]] = defaultdict(set)
        for path, line in lines:
            reached[path].add(line)
        drawn: list[Mutant] = []
        candidates = {path: list(mutants_of(path, reached[path])) for path in HOT}
        for path in draw.choices(
            [p for p in HOT if candidates[p]],
            [len(candidates[p]) for p in HOT if candidates[p]],
            k=options.count,
        ):
            drawn.append(draw.choice(candidates[path]))
        print(
            f"{sum(map(len, candidates.values()))} possible, {len(drawn)} drawn with seed {options.seed}",
            flush=True,
        )
        killed = 0
        for mutant in drawn:
            tests = lines[mutant.path, mutant.line][:TESTS]
            start = time.monotonic()
            if run(tree, "-x", *tests):
                raise SystemExit(
                    f"{mutant.path}:{mutant.line}: its tests fail by themselves: {' '.join(tests)}"
                )
            took = time.monotonic() - start
            target = tree / mutant.path
            whole = target.read_text()
            target.write_text(mutant.source)
            dead = run(tree, "-x", *tests, seconds=30 + PATIENCE * took) != 0
            target.write_text(whole)
            killed += dead
            print(
                f"{'killed' if dead else 'LIVES '}  {mutant.path}:{mutant.line}  {mutant.what}  ({len(tests)} tests)",
                flush=True,
            )
    share = killed / len(drawn)
    print(f"{killed} of {len(drawn)} killed: {share:.2f}, at least {options.least:.2f} asked")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
