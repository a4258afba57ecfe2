"""Which experts there are, and which of them a preset consists of.

An expert is one file that registers itself. A preset is a named, versioned list of experts, and a learner keeps the version
that it was made with: a new expert joins the newest version of a list that no release has had yet, never an older one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...checks import Check
from ...errors import SpecError, already_registered, pointer
from ...registry import Spec
from .experts import Expert


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expert is built for: any bits or one label that is right, rows of a constant feature, who else is there.

    `shared`: the labels that are right share one unit.
    """

    bits: bool
    bias: int
    beside: frozenset[str] = frozenset()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ExpertEntry:
    """`trust` is its weight in a pool at the start, `scale` that of the scores. `alone`: the text of the algorithm that it
    is by itself, or none."""

    name: str
    build: Callable[[Setting], Expert]
    trust: float
    alone: str = ""


_EXPERTS: dict[str, ExpertEntry] = {}

_FIVE = ("dual-ascent", "least-squares", "naive-bayes", "adagrad", "recent-errors")
_SIX = (*_FIVE, "trees")
_SEVEN = (*_SIX, "entropy")
_VECTORS = ("class-means", "vector-ridge")
_LISTS = ("ridge", "coin", "listnet")
_LISTS_2 = ("ridge", "list", "pair", "coin")
_BITS, _LABELS = ("ordinal", "multilabel"), ("binary", "multiclass", "label-ranking")
_FIRST = dict.fromkeys(_LABELS + _BITS, _FIVE)
# By version, oldest first. Those of releases never change.
PRESETS: tuple[Mapping[str, Sequence[str]], ...] = (
    {**_FIRST, "subset-ranking": _LISTS},  # 0.2
    {
        **dict.fromkeys(_BITS, (*_SIX, *_VECTORS)),
        **dict.fromkeys(_LABELS, (*_SEVEN, *_VECTORS)),
        "subset-ranking": _LISTS_2,
    },  # 0.3
)


def register_expert(entry: ExpertEntry) -> None:
    """Make it known. Two of one name are a mistake of the programmer."""
    if entry.name in _EXPERTS:
        raise already_registered(entry.name)
    _EXPERTS[entry.name] = entry


def expert(name: str) -> ExpertEntry:
    return _EXPERTS[name]


def expert_entries() -> tuple[ExpertEntry, ...]:
    """All of them, by name."""
    return tuple(_EXPERTS[name] for name in sorted(_EXPERTS))


def preset_names(task: str) -> list[str]:
    """`multiclass-2`, `multiclass-1`: the newest first."""
    return [f"{task}-{version}" for version in range(len(PRESETS), 0, -1)]


def experts_of(preset: str) -> list[str]:
    """The experts of a version of a preset."""
    task, _, version = preset.rpartition("-")
    return list(PRESETS[int(version) - 1][task])


def name_preset(spec: Spec) -> None:
    """A list of experts is the preset whose list it is; of one that is nobody's, `preset` is null."""
    experts = spec.get("experts")
    if experts is None:
        return
    lists = [spec["preset"], *preset_names(spec["task"])]
    spec["preset"] = next((name for name in lists if name and experts_of(name) == experts), None)


def _names(value: object, field: str) -> list[str]:
    if (
        not isinstance(value, list)
        or not value
        or len(set(map(str, value))) < len(value)
        or not all(name in _EXPERTS for name in value)
    ):
        raise SpecError(f"must be a list of some of {', '.join(sorted(_EXPERTS))}", pointer(field))
    return list(value)


def names_check() -> Check:
    """A list of experts, each once."""
    words = {"type": "string", "enum": sorted(_EXPERTS)}
    return Check(_names, {"type": "array", "items": words, "minItems": 1, "uniqueItems": True})
