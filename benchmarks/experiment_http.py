"""Experiments played over HTTP against a real server, every figure of GET worked out anew from what was sent.

    python benchmarks/experiment_http.py [--runs 40] [--events 120] [--look 4] [--at-once 12] [--only CELL ...]

A server process with a store of its own; each run makes its learners and its experiment, asks, answers and looks by
calls of the public contract alone, several runs at once. `experiment_brute.py` says what GET must show.

Users decide by chance which arm is better, or do not look at what is shown: all arms are equal, and a verdict is false. In
`unequal` the second arm errs 0.05 less often.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import replicas as parts
from experiment_cells import CELLS, PER_CELLS, Cell, PerCell
from experiment_per_players import PerRun
from experiment_players import Caller, Outcome, Run
from report import Report, arguments


async def play_all(
    port: int, cell: Cell | PerCell, runs: int, events: int, look: int, at_once: int
) -> list[Outcome]:
    gate = asyncio.Semaphore(at_once)

    async def one(number: int) -> Outcome:
        async with gate, Caller(port) as caller:
            if isinstance(cell, PerCell):
                return await PerRun(cell, number, caller, events).play()
            return await Run(cell, number, caller, events, look).play()

    return await asyncio.gather(*map(one, range(runs)))


def main() -> None:
    parser = arguments(__doc__, "experiment_http")
    parser.add_argument("--runs", type=int, default=40, help="of each cell; a quarter of them of `unequal`")
    parser.add_argument(
        "--events", type=int, default=120, help="of a run; 25 times as many, at most, of `unequal`"
    )
    parser.add_argument("--look", type=int, default=4, help="events between two looks")
    parser.add_argument("--at-once", type=int, default=12)
    cells: tuple[Cell | PerCell, ...] = (*CELLS, *PER_CELLS)
    names = [cell.name for cell in cells]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    if options.quick:
        options.runs, options.events, options.only = 1, 24, names[:2]
    report = Report("Experiments over HTTP, worked out anew", options.out)
    rows: list[list[object]] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:{Path(folder) / 'store.db'}"
        with parts.replica(parts.Host("127.0.0.1"), store, None) as server:
            for cell in (cell for cell in cells if cell.name in options.only):
                runs, events = options.runs, options.events
                if cell.effect:
                    runs, events = max(1, runs // 4), 25 * events
                done = asyncio.run(play_all(server.port, cell, runs, events, options.look, options.at_once))
                wrong += [text for one in done for text in one.wrong]
                rows.append(row(cell, done))
                print(rows[-1], flush=True)
    head = [
        "cell",
        "method",
        "arms",
        "units",
        "runs",
        "events",
        "calls",
        "looks",
        "looks checked with intervals",
    ]
    report.table([*head, "figures that differ", "runs that ever give a verdict"], rows)
    for text in wrong[:20]:
        report.text(f"    {text}")


def row(cell: Cell | PerCell, done: list[Outcome]) -> list[object]:
    winners = Counter(one.winner.rpartition("-")[2] for one in done if one.winner)
    named: object = sum(winners.values())
    if cell.effect:
        after = sorted(one.decided for one in done if one.decided)
        named = f"{named}, {winners['1']} of them the better; after {', '.join(map(str, after))} events"
    totals = [
        sum(values)
        for values in zip(*((one.events, one.calls, one.looks, one.deep) for one in done), strict=True)
    ]
    return [
        cell.name,
        cell.method,
        cell.arms,
        cell.units,
        len(done),
        *totals,
        sum(len(one.wrong) for one in done),
        named,
    ]


if __name__ == "__main__":
    main()
