"""What all benchmarks share: a report of Markdown tables and SVG plots, with the command, versions and machine noted."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "feedrank",
    "numpy",
    "scipy",
    "vowpalwabbit",
    "river",
    "scikit-learn",
    "lightgbm",
    "fastapi",
    "uvicorn",
    "redis",
)


def arguments(doc: str | None, name: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark takes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument(
        "--out", type=Path, default=here / "results" / name, help="folder for tables and plots"
    )
    return parser


class Report:
    """Prints as it goes, and writes the same to `out`/report.md; plots stand beside it."""

    def __init__(self, title: str, out: Path) -> None:
        self.out = out
        out.mkdir(parents=True, exist_ok=True)
        self._file = (out / "report.md").open("w", encoding="utf-8")
        script, rest = Path(sys.argv[0]).name, " ".join(sys.argv[1:])
        self.text(f"# {title}\n\n    python benchmarks/{script} {rest}\n\n{machine()}\n")

    def text(self, words: str) -> None:
        """A paragraph."""
        print(words, flush=True)
        print(words, file=self._file, flush=True)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A Markdown table; floats with four digits."""
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
        self.text("\n".join(lines) + "\n")

    def plot(
        self, name: str, x: Sequence[float], lines: Mapping[str, Sequence[float]], labels: tuple[str, str]
    ) -> None:
        """A plot of lines over x as NAME.svg; said and left out where matplotlib is not installed."""
        try:
            import matplotlib as mpl
        except ModuleNotFoundError:
            self.text(f"(no plot {name}: pip install matplotlib, or feedrank[bench])\n")
            return
        mpl.use("svg")
        mpl.rcParams["svg.hashsalt"] = name  # the same figure gives the same file
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(figsize=(5.5, 3.5))
        for label, y in lines.items():
            axes.plot(x, y, marker="o", markersize=3, label=label)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.legend()
        axes.grid(alpha=0.3)
        figure.tight_layout()
        figure.savefig(self.out / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)
        self.text(f"![{name}]({name}.svg)\n")


def _cell(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def machine() -> str:
    """Versions and machine, in one line."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"Python {platform.python_version()}, {', '.join(found)}; {platform.machine()}, {os.cpu_count()} cores."


def needs(path: Path | None, what: str, where: str) -> Path | None:
    """The folder of the data, or None after a line that says what is missing and where it comes from."""
    if path is not None and path.is_dir():
        return path
    print(f"skipped: {what} needs --data FOLDER ({where})" + (f"; {path} is not a folder" if path else ""))
    return None
