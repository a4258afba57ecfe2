"""What all benchmarks share: a report of Markdown tables and SVG plots, with the command, versions and machine noted."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track as progress

T = TypeVar("T")

# The subfolders of --data, and where their files come from.
SOURCES = {
    "enron": "USER.tar.gz: the raw ham mailboxes of the Enron-Spam corpus, Metsis et al. 2006",
    "letor": "mq2008-S1.txt.gz ... ohsumed-S5.txt.gz: the five parts of MQ2008 and OHSUMED, LETOR, Microsoft Research",
    "streams": "NAME.jsonl.gz: a header, then [truth, features] a line",
    "tables": "text-NAME.jsonl.gz: a header, then [label, text] a line",
    "multilabel": "NAME.arff.gz and NAME.xml: MULAN's multilabel sets",
}
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


def arguments(doc: str | None, name: str, *parts: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark takes, and --data where it reads these parts of the data."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument(
        "--out", type=Path, default=here / "results" / name, help="folder for tables and plots"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a little of everything: whether it runs, no figures"
    )
    if parts:
        sources = "; ".join(f"{part}/ ({SOURCES[part]})" for part in parts)
        parser.add_argument("--data", type=Path, help=f"a folder with {sources}")
    return parser


class Report:
    """Prints as it goes, and writes the same to `out`/report.md; plots stand beside it."""

    def __init__(self, title: str, out: Path) -> None:
        self.out = out
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.md").write_text("", encoding="utf-8")
        self.text(f"# {title}\n\n    {command()}\n\n{machine()}\n")

    def text(self, words: str) -> None:
        """A paragraph."""
        print(words, flush=True)
        with (self.out / "report.md").open("a", encoding="utf-8") as file:
            print(words, file=file)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A Markdown table; floats with four digits."""
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
        self.text("\n".join(lines) + "\n")

    def plot(
        self,
        name: str,
        x: Sequence[float],
        lines: Mapping[str, Sequence[float]],
        labels: tuple[str, str],
        *,
        log: bool = False,
        dots: bool = True,
    ) -> None:
        """A plot of lines over x as NAME.svg, both axes logarithmic if so; said and left out without matplotlib."""
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
            axes.plot(x, y, marker="o" if dots else "", markersize=3, label=label)
        if log:
            axes.loglog()
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


def command() -> str:
    """The command that runs, as others would type it: the data by its name, the folder of the results left out."""
    words = [f"python benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    for option, shown in (("--data", ["--data", "DATA"]), ("--out", [])):
        if option in words:
            at = words.index(option)
            words[at : at + 2] = shown
    return " ".join(words)


def track(rounds: Sequence[T], what: str) -> Iterable[T]:
    """The rounds, with a progress bar beside the report that leaves no trace in it."""
    return progress(rounds, description=f"{what:<40}", console=Console(stderr=True), transient=True)


def machine() -> str:
    """Versions and machine, in one line."""
    installed = []
    for package in PACKAGES:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    versions = f"Python {platform.python_version()}, {', '.join(installed)}"
    return f"Commit {commit()}; {versions}; {platform.machine()}, {os.cpu_count()} cores."


def commit() -> str:
    """The commit that is measured, with a + behind it where files differ from it; `unknown` outside of a checkout."""
    here = Path(__file__).resolve().parent
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()


def needs(path: Path | None, what: str, where: str) -> Path | None:
    """The folder of the data, or None after a line that says what is missing and where it comes from."""
    if path is not None and path.is_dir():
        return path
    print(f"skipped: {what} needs --data DATA ({where})" + (f"; {path} is not a folder" if path else ""))
    return None


def part(data: Path | None, name: str) -> Path | None:
    """The subfolder `name` of the data, or None after such a line."""
    return needs(data and data / name, f"{name}/", SOURCES[name])
