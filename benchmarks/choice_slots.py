"""Slots beside Vowpal Wabbit's `ccb` (a reward for each slot) and `slates` (one reward for the page).

    python benchmarks/choice_slots.py

Every visitor has one of eight interests. A page has three places, of which lower ones are clicked less. An item is clicked
by a chance that depends on interest, item and place; `ccb` draws the three of twelve items, without replacement, `slates`
each of four items of its own. Ours is the preset; of Vowpal Wabbit the best of nine settings, chosen in hindsight. The
figures are the share of clicked places; `ideal` is that of the best page for every visitor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import Report, arguments, track

from feedrank import learners

INTERESTS, ITEMS, PLACES = 8, 12, 3
PLACE = np.array([1.0, 0.7, 0.5])
SETTINGS = {
    f"{name} lr {rate:g}": f"{flags} -l {rate:g}"
    for name, flags in {
        "epsilon 0.05": "--epsilon 0.05",
        "squarecb": "--squarecb",
        "squarecb gamma 100": "--squarecb --gamma_scale 100",
    }.items()
    for rate in (0.1, 0.5, 2.0)
}
Array = np.ndarray[Any, np.dtype[Any]]


def main() -> None:
    parser = arguments(__doc__, "choice_slots")
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--orders", type=int, default=3)
    asked = parser.parse_args()
    if asked.quick:
        asked.pages, asked.orders = 20, 1
    report, rows = Report("Slots beside Vowpal Wabbit", asked.out), list[list[object]]()
    for kind in ("ccb", "slates"):
        worlds = [World(seed, kind == "slates") for seed in range(asked.orders)]
        own = float(np.mean([ours(world, asked.pages) for world in track(worlds, kind)]))
        best = float(np.mean([world.ideal for world in worlds]))
        try:
            theirs = {
                name: float(np.mean([vowpal(world, flags, asked.pages) for world in worlds]))
                for name, flags in track(list(SETTINGS.items()), f"Vowpal Wabbit, {kind}")
            }
        except ModuleNotFoundError:
            report.text("Vowpal Wabbit is not installed.")
            theirs = {"none": float("nan")}
        name = max(theirs, key=lambda one: theirs[one])
        rows.append(
            [kind, f"{own:.4f}", f"{theirs[name]:.4f}", name, f"{best:.4f}", f"{own / theirs[name]:.3f}"]
        )
    head = [
        f"{asked.pages} pages, {asked.orders} worlds",
        "feedrank",
        "Vowpal Wabbit's best",
        "which",
        "ideal",
        "ratio",
    ]
    report.table(head, rows)


class World:
    """The chance of a click by interest, item and place; with `own` every place has items of its own."""

    def __init__(self, seed: int, own: bool) -> None:
        self.seed, self.own = seed, own
        rng = np.random.default_rng(seed)
        self.chances = rng.beta(1, 4, size=(INTERESTS, ITEMS))[:, :, None] * PLACE
        self.groups = [
            list(range(place * 4, place * 4 + 4)) if own else list(range(ITEMS)) for place in range(PLACES)
        ]
        pages = [self._best(interest) for interest in range(INTERESTS)]
        self.ideal = float(np.mean(pages))

    def _best(self, interest: int) -> float:
        if self.own:
            return float(
                np.mean([self.chances[interest, group, p].max() for p, group in enumerate(self.groups)])
            )
        # Places are ordered alike for every item: the best item goes to the best place.
        best = np.sort(self.chances[interest, :, 0])[::-1][:PLACES]
        return float((best * PLACE).mean())


def ours(world: World, pages: int) -> float:
    """The share of clicks of the preset."""
    rng = np.random.default_rng(100 + world.seed)
    learner = learners.build({"task": "choice"})
    items = [{"id": f"i{i}", "features": {}} for i in range(ITEMS)]
    slots = [
        {"id": f"s{p}", "exclude": [f"i{i}" for i in range(ITEMS) if i not in group]}
        for p, group in enumerate(world.groups)
    ]
    clicked = 0.0
    for _ in range(pages):
        interest = int(rng.integers(INTERESTS))
        page = {"items": items, "slots": slots, "features": [f"likes {interest}"]}
        served = learner.predict(page, chance=rng.random()).served()
        chosen = [int(one["choice"][1:]) for one in served["slots"]]
        clicks = rng.random(PLACES) < world.chances[interest, chosen, range(PLACES)]
        clicked += clicks.mean()
        rewards = np.full(PLACES, clicks.mean()) if world.own else clicks
        learner.learn(page, {"reward": {f"s{p}": float(r) for p, r in enumerate(rewards)}}, served=served)
    return clicked / pages


def vowpal(world: World, flags: str, pages: int) -> float:
    """The share of clicks of one setting."""
    from vowpalwabbit import Workspace

    rng = np.random.default_rng(100 + world.seed)
    kind = "slates" if world.own else "ccb"
    mode = "--slates -q ca" if world.own else "--ccb_explore_adf -q ca -q sa --cubic csa"
    model = Workspace(f"{mode} {flags} -b 20 --quiet --random_seed {world.seed + 1}", enable_logging=False)
    place_of = {item: p for p, group in enumerate(world.groups) for item in group}
    mark = (lambda i: f" {place_of[i]}") if world.own else (lambda i: "")
    actions = [f"{kind} action{mark(i)} |a i{i}" for i in range(ITEMS)]
    clicked = 0.0
    for _ in range(pages):
        interest = int(rng.integers(INTERESTS))
        shared = f"|c likes{interest}"
        slots = [f"|s s{p}" for p in range(PLACES)]
        drawn = model.predict(
            [f"{kind} shared {shared}", *actions, *(f"{kind} slot {slot}" for slot in slots)]
        )
        first = [one[0] for one in drawn]  # the drawn one comes first
        chosen = [world.groups[p][a] for p, (a, _) in enumerate(first)]
        clicks = rng.random(PLACES) < world.chances[interest, chosen, range(PLACES)]
        clicked += clicks.mean()
        if world.own:
            lines = [f"slates slot {a}:{p} {slot}" for (a, p), slot in zip(first, slots, strict=True)]
            model.learn([f"slates shared {-clicks.mean()} {shared}", *actions, *lines])
        else:
            each = zip(first, clicks, slots, strict=True)
            lines = [f"ccb slot {a}:{-float(click)}:{p} {slot}" for (a, p), click, slot in each]
            model.learn([f"ccb shared {shared}", *actions, *lines])
    model.finish()
    return clicked / pages


if __name__ == "__main__":
    main()
