"""Raw texts: the mistakes of the preset by the rule that makes words of them, and the features that this gives.

    python benchmarks/texts.py --data DATA

Every text is predicted, then learned, in the order in which it is stored.
"""

from __future__ import annotations

import gzip
import json
import math
import time
from pathlib import Path

from report import Report, arguments, track

from feedrank.learners import build, text

Texts = list[tuple[str, str]]  # label, text


def sets(folder: Path) -> dict[str, Texts]:
    """Every `text-NAME.jsonl.gz`: a header, then [label, text] a line."""
    found: dict[str, Texts] = {}
    for path in sorted(folder.glob("text-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            next(lines)
            found[path.name.removeprefix("text-").removesuffix(".jsonl.gz")] = [
                (str(label), str(raw)) for label, raw in map(json.loads, lines)
            ]
    return found


def play(texts: Texts, rule: str) -> tuple[int, float, float]:
    """Mistakes, features a text, and processor time of all."""
    learner = build({"task": "multiclass", "tokenizer": rule})
    mistakes, start = 0, time.process_time()
    for label, raw in texts:
        mistakes += learner.learn({"text": raw}, {"label": label}).mistake
    seconds = time.process_time() - start
    return mistakes, sum(len(text.tokens(raw, rule)) for _, raw in texts) / len(texts), seconds


def main() -> None:
    """Play every set by every rule."""
    given = arguments(__doc__, "texts", "tables").parse_args()
    report = Report("Raw texts: words, and parts of words", given.out)
    if given.data is None:
        report.text("Skipped: no --data.\n")
        return
    rows: list[list[object]] = []
    logs: list[float] = []
    for name, texts in track(list(sets(given.data / "tables").items()), "texts"):
        (one, few, before), (two, many, after) = (play(texts, rule) for rule in text.RULES)
        ratio = (two + 0.5) / (one + 0.5)
        logs.append(math.log(ratio))
        shares = [f"{count / len(texts):.4f}" for count in (one, two)]
        rows.append(
            [name, len(texts), *shares, f"{ratio:.3f}", f"{few:.0f}, {many:.0f}", f"{after / before:.2f}"]
        )
    rules = [f"mistakes, {rule}" for rule in text.RULES]
    report.table(["texts", "events", *rules, "ratio", "features a text", "time, ratio"], rows)
    report.text(f"Geometric mean of the ratios: {math.exp(sum(logs) / len(logs)):.3f}\n")


if __name__ == "__main__":
    main()
