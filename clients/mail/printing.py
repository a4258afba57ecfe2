"""What the mail commands print: a learning curve, a ranking with its reasons, a systemd unit."""

from __future__ import annotations

import json
import re

from rich.table import Table

from ..replies import Prediction
from .bookkeeping import MailState
from .options import announce, out
from .training import Curve

__all__ = ["UNIT", "quoted", "show_curve", "show_ranking"]

UNIT = """\
[Unit]
Description=feedrank: sort mail
After=network-online.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""


def quoted(word: str) -> str:
    """A word of ExecStart as systemd reads it, to which `%` and `$` mean something even in quotes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped == word and re.fullmatch(r"[\w@+=:,./-]+", word) else f'"{escaped}"'


def show_curve(curve: Curve, folders: int) -> None:
    """How many were learned, and the mistakes on the way."""
    out.print(f"{len(curve.mistakes)} messages learned from {folders} folders")
    if not curve.mistakes:
        return
    table = Table("messages", "mistakes so far", "since the line above", "")
    for rounds, total, recent in curve.points():
        table.add_row(str(rounds), f"{total:.1%}", f"{recent:.1%}", "█" * round(40 * recent))
    out.print(table)


def show_ranking(prediction: Prediction, record: MailState, sure: bool, reasons: int, form: str) -> None:
    """The folders, best first, and what speaks for each; `form` is `text` or `json`."""
    ranking = [
        (record.folder_of(entry.key), entry.score, _reasons(entry.contributions or {}, reasons))
        for entry in prediction.ranking
    ]
    if form == "json":
        entries = [{"folder": folder, "score": score, "reasons": why} for folder, score, why in ranking]
        first = ranking[0][0] if ranking else None
        out.print_json(
            json.dumps({"folder": first, "margin": prediction.margin, "sure": sure, "ranking": entries})
        )
        return
    for folder, score, why in ranking:
        text = ", ".join(f"{name} {value:+.2f}" for name, value in why.items())
        announce(f"{score:8.3f}  {folder}  ({text})")


def _reasons(contributions: dict[str, float], most: int) -> dict[str, float]:
    return dict(sorted(contributions.items(), key=lambda item: -abs(item[1]))[:most])
