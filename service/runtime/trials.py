"""The loss of many specs on one log, by progressive validation, on any executor.

A trial is a pure function of a spec and the log's lessons, so that a pool of processes, or a Dask cluster, gives the same
bits as one process; its fingerprint shows it. Retracted events are left out.

The mean loss of a stream that learns is no mean of independent values: its interval comes from the means of `BLOCKS`
stretches, by Student's t.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from feedrank import learners
from feedrank.learners import registry, renaming
from feedrank.learners.errors import InputError
from feedrank.learners.spec import parameters
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.store import Store

from .catalogue import CatalogEntry, Catalogue
from .checkpoints import newest_state, revised
from .folding import PAGE
from .learner_state import recipe

BLOCKS = 30
T_975 = 2.045  # Student's t of 29 degrees of freedom, two sides of 95 %
# What a mean loss is a mean of: drawn anew, the trials could not be compared.
JUDGES = (
    "labels", "loss", "weights", "reject_costs", "blocks", "cutoff", "measure", "range",
    "outside", "default_reward", "baseline"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lessons:
    """The events of a log that teach, one JSON line each: plain bytes, to be sent to any worker.

    Labels have the names that they have now, in the spec as well; `renames` are those that were given up.
    """

    name: str
    spec: JSON
    lines: bytes
    count: int
    renames: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Identifies the events."""
        return sha256(self.lines).hexdigest()


@dataclass(frozen=True, slots=True)
class Trial:
    """What one spec made of the lessons. `half_width` is of the 95 % interval around the mean loss."""

    spec: JSON
    rounds: int
    refused: int
    mean_loss: float | None
    half_width: float | None
    fingerprint: str
    problem: str = ""


async def collect(store: Store, name: str, until: int | None = None) -> Lessons:
    """The lessons of a learner's log, from its first entry; NotFound if the log no longer reaches back to it."""
    entry = await Catalogue(store, 0).resolve(name)
    head = await store.head(entry.log)
    if head.floor > 1:
        raise NotFound(f"the log of {entry.name!r} starts at version {head.floor}: its beginning was trimmed")
    last = head.version if until is None else min(until, head.version)
    lines: list[bytes] = []
    renames, at = await renames_of(store, entry), 0
    while at < last:
        entries = await store.read(entry.log, at, min(PAGE, last - at))
        if not entries:
            break
        for one in entries:
            event = Event.read(one)
            if event.truth is not None and not event.retracts and not 0 < one.retracted <= last:
                truth, served = (renaming.in_answer(one, renames) for one in (event.truth, event.served))
                lines.append(orjson.dumps([event.instance, truth, served, event.weight]))
        at = entries[-1].version
    spec = learners.build(entry.spec, renames).spec
    return Lessons(entry.name, spec, b"\n".join(lines), len(lines), renames)


async def renames_of(store: Store, entry: CatalogEntry) -> dict[str, str]:
    """The labels of a learner that were renamed, and what they are called now."""
    head = await store.head(entry.log)
    if not head.revisions and head.floor == 1:
        return {}
    how = recipe(entry.spec)
    state, snapshot = await newest_state(store, entry.log, entry.name, how, head, None, None, set())
    return (await revised(store, entry.log, how, state, snapshot, head, None)).learner.renames


def run_trial(spec: JSON, lines: bytes) -> Trial:
    """Predict, then learn, every lesson; what the spec cannot learn from is counted and left out."""
    try:
        learner = learners.build(spec)
    except InputError as error:
        return Trial(spec, 0, 0, None, None, "", str(error))
    losses: list[float] = []
    refused = 0
    for line in lines.splitlines():
        instance, truth, served, weight = orjson.loads(line)
        try:
            losses.append(learner.learn(instance, truth, served=served, weight=weight).loss)
        except InputError:
            refused += 1
    mean = math.fsum(losses) / len(losses) if losses else None
    return Trial(learner.spec, len(losses), refused, mean, half_width(losses), learners.fingerprint(learner))


def half_width(losses: Sequence[float]) -> float | None:
    """Half of the 95 % interval of the mean, from the means of consecutive stretches; None for short streams."""
    size = len(losses) // BLOCKS
    if size < 2:
        return None
    means = [math.fsum(losses[i * size : (i + 1) * size]) / size for i in range(BLOCKS)]
    centre = math.fsum(means) / BLOCKS
    variance = math.fsum((mean - centre) ** 2 for mean in means) / (BLOCKS - 1)
    return T_975 * math.sqrt(variance / BLOCKS)


# ---- which specs


def grid(base: View, values: Mapping[str, Sequence[Any]]) -> Iterator[JSON]:
    """`base` with every combination of the values."""
    for chosen in product(*values.values()):
        yield changed(base, dict(zip(values, chosen, strict=True)))


def changed(base: View, values: View) -> JSON:
    """`base` with these values; another algorithm starts from its own defaults, and has its task and labels only."""
    if values.get("algorithm", base.get("algorithm")) != base.get("algorithm"):
        base = {name: base[name] for name in ("task", "labels") if base.get(name)}
    return {**base, **values}


def sampled(base: View, count: int, seed: int) -> Iterator[JSON]:
    """`base` with random values of its algorithm's own parameters: words evenly, numbers by orders of magnitude.

    All differ (fewer than `count` where there are no more), and have the loss of `base`.
    """
    chance = random.Random(seed)  # noqa: S311  (a search, not a secret)
    full = learners.build(base).spec
    table = parameters(registry.algorithm(full["algorithm"]))
    fields = [name for name in full if name in table and name not in (*JUDGES, "wait", "tokenizer")]
    drawn: set[str] = set()
    for _ in range(100 * count):
        if len(drawn) == count:
            return
        spec = {"task": full["task"], "algorithm": full["algorithm"]}
        spec |= {name: full[name] for name in JUDGES if full.get(name)}
        for name in fields:
            value = _draw(full[name], table[name].check_for(learners.build(base).form).schema, chance)
            if value is not None:
                spec[name] = value
        if _problem(spec) is None and (key := key_of(completed(spec))) not in drawn:
            drawn.add(key)
            yield spec


def completed(spec: JSON) -> JSON:
    """The spec with all its defaults, by which equal ones are known; as it is where it cannot be built."""
    return spec if _problem(spec) else learners.build(spec).spec


def _problem(spec: JSON) -> str | None:
    try:
        learners.build(spec)
    except InputError as error:
        return str(error)
    return None


def _draw(value: Any, schema: View, chance: random.Random) -> Any:
    if "enum" in schema:
        return chance.choice(list(schema["enum"]))
    if isinstance(value, bool):
        return chance.random() < 0.5
    if isinstance(value, int | float) and value > 0:
        drawn = float(f"{value * 10 ** chance.uniform(-1, 1):.3g}")
        most = schema.get("maximum", math.inf)
        return min(max(1, round(drawn)), most) if isinstance(value, int) else min(drawn, most)
    return value


# ---- running them

Shown = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One call of a pure function that returns plain JSON; `key` identifies the function and all that it depends on."""

    key: str
    work: Callable[..., JSON]
    arguments: tuple[Any, ...]


def run_jobs(
    jobs: Sequence[Job],
    executor: Executor,
    state: Path | None = None,
    progress: Shown = lambda done, total: None,
) -> list[JSON]:
    """The result of every job, in their order. What `state` has from an earlier run is not run again.

    A job that fails fails all of them, but only after the others are done and written down.
    """
    unique = {job.key: job for job in jobs}
    results = {key: row for key, row in _known(state).items() if key in unique}
    waiting = {
        executor.submit(job.work, *job.arguments): key for key, job in unique.items() if key not in results
    }
    failure: Exception | None = None
    progress(len(results), len(unique))
    for future in as_completed(waiting):
        key = waiting[future]
        try:
            results[key] = future.result()
        except Exception as error:
            failure = failure or error
            continue
        if state is not None:
            with state.open("ab") as file:
                # A line break in front: the run before may have been killed in the middle of a line.
                file.write(b"\n" + orjson.dumps({"key": key, **results[key]}))
        progress(len(results), len(unique))
    if failure is not None:
        raise failure
    return [results[job.key] for job in jobs]


def sweep(
    lessons: Lessons,
    specs: Sequence[JSON],
    executor: Executor,
    state: Path | None = None,
    progress: Shown = lambda done, total: None,
) -> list[Trial]:
    """All trials, the best first. Those that `state` has from an earlier run over the same events are not run again."""
    digest = lessons.digest
    jobs = [Job(key_of(digest, spec), _trial_row, (spec, lessons.lines)) for spec in specs]
    trials = [Trial(**row) for row in run_jobs(jobs, executor, state, progress)]
    return sorted(trials, key=lambda trial: (trial.mean_loss is None, trial.refused, trial.mean_loss or 0.0))


def _trial_row(spec: JSON, lines: bytes) -> JSON:
    return asdict(run_trial(spec, lines))


def key_of(*parts: str | int | View | None) -> str:
    """The same for equal parts."""
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _known(state: Path | None) -> dict[str, JSON]:
    if state is None or not state.exists():
        return {}
    rows = {}
    for line in state.read_bytes().splitlines():
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # the last line of a run that was killed
        rows[row.pop("key")] = row
    return rows


def check_specs(specs: Sequence[JSON]) -> None:
    """Refuse a sweep none of whose specs can be built; single ones are shown with their problem."""
    problems = [problem for spec in specs if (problem := _problem(spec)) is not None]
    if specs and len(problems) == len(specs):
        raise Unprocessable.at("", f"no spec of the sweep can be built: {problems[0]}")
