"""What exists, and what it takes: losses and algorithms, each registered by the file that holds it.

The spec reader and its refusals, docs/spec.md, `/openapi.json` and the form of the page are all made from these values.
Registering is one call at the end of a file; `learners/__init__.py` imports every file of `tasks/` and `algorithms/`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from . import forms
from .checks import Check
from .errors import already_registered
from .forms import Form
from .instances import FeatureVector, ItemList
from .model import Model
from .tasks.task import Task

if TYPE_CHECKING:
    from .learner import Learner

Key = TypeVar("Key")
Value = TypeVar("Value")
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Needs:
    """A condition: another field, read before, has one of these values."""

    field: str
    values: tuple[object, ...]

    def holds(self, spec: Mapping[str, object]) -> bool:
        return spec.get(self.field) in self.values

    def __str__(self) -> str:
        return f"{self.field}: {' or '.join(map(str, self.values))}"


def needs(field: str, *values: object) -> Needs:
    """See `Needs`."""
    return Needs(field, values)


class _First:
    """The default of a parameter that is one of some words: the first of them."""

    def __repr__(self) -> str:
        return "the first"


FIRST = _First()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a spec. It has a meaning only in the `forms` that it fits, and where `when` holds.

    `default` may be a function of the spec read so far; then `shown` says in docs what it gives. A parameter whose
    default is None may be left out, or be null. `required` may be a condition. One that is `omitted` stands in a full spec
    only where it is not the default, because learners were stored before it was there. One with `versions` says which
    version a learner has, and what learners have that were stored without it; a spec that leaves it out means any version.
    """

    check: Check | Callable[[Form], Check]
    text: str
    default: object = FIRST
    when: Needs | None = None
    forms: Callable[[Form], bool] = lambda form: True
    required: bool | Needs = False
    shown: str = ""
    example: object = None
    why: str = ""
    omitted: bool = False
    versions: Callable[[Form], object] | None = None

    def check_for(self, form: Form) -> Check:
        return self.check if isinstance(self.check, Check) else self.check(form)

    def default_for(self, form: Form, spec: Spec) -> object:
        if self.default is FIRST:
            options = self.check_for(form).options
            return options[0] if options else None
        if self.default in (dict, list):
            return self.default()
        return self.default(spec) if callable(self.default) else self.default

    def is_required(self, spec: Spec) -> bool:
        return self.required.holds(spec) if isinstance(self.required, Needs) else self.required

    def refusal(self) -> str:
        """Why it cannot stand where it has no meaning."""
        return self.why or (f"goes with {self.when}" if self.when else "has no meaning here")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one event takes at most: `seconds` of one processor, roughly, and `bytes` of memory beside the learner."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Size:
    """How large an event, and the learner behind it, are; `examples` are those that a kernel has stored.

    `grades` is how many different grades the truth gives, or 0 where nobody knows.
    """

    labels: int
    items: int
    features: int
    known_features: int = 0
    examples: int = 0
    grades: int = 0


def first_order_cost(spec: Spec, size: Size) -> Cost:
    """Linear in what the event touches: some arrays of (features) x (labels or items)."""
    cells = max(1, size.features) * max(1, size.labels, size.items)
    return Cost(1e-4 + 2e-6 * size.items + 2e-8 * cells, 64 * cells)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to learn: the tasks it does, the parameters it takes (in the order in which they are read), its builder.

    `tasks` may be a function, for an algorithm that does whatever has a registered loss. `agree` refuses what no single
    field can tell, `accepts` an instance that the spec rules out. `cost` estimates one event (see `Cost`).
    `presets`: for some tasks, the settings that a spec without `algorithm` means. `weight`: what an event of weight w does.
    `learner`, where a round is not that of `Learner`. `linear`: whether float32 may hold its weights.
    """

    name: str
    text: str
    tasks: tuple[str, ...] | Callable[[], tuple[str, ...]]
    parameters: Mapping[str, Parameter]
    build: Callable[[Spec], Model]
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    agree: Callable[[Spec], None] = lambda spec: None
    accepts: Callable[[Mapping[str, object], FeatureVector | ItemList], None] | None = None
    cost: Callable[[Spec, Size], Cost] = first_order_cost
    weight: str = "takes a step w times as long"
    learner: Callable[[Spec, Any], "Learner"] | None = None
    linear: Callable[[Spec], bool] = lambda spec: False

    def does(self) -> tuple[str, ...]:
        """The names of its tasks."""
        return self.tasks() if callable(self.tasks) else self.tasks


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss that has a `Task` for Predtron: `make` builds it of a full spec."""

    name: str
    text: str
    tasks: tuple[str, ...]
    make: Callable[[Spec], Task]


_ALGORITHMS: dict[str, Algorithm] = {}
_LOSSES: dict[tuple[str, str], Loss] = {}
_PRESETS: dict[str, Spec] = {}


def register(entry: Algorithm | Loss) -> None:
    """Make it known. Two of one name are a mistake of the programmer."""
    if isinstance(entry, Loss):
        for task in entry.tasks:
            _new(_LOSSES, (task, entry.name), entry)
        return
    _new(_ALGORITHMS, entry.name, entry)
    for task, preset in entry.presets.items():
        register_preset(task, {"algorithm": entry.name, **preset})


def register_preset(task: str, settings: Mapping[str, object]) -> None:
    """What a spec of this task without `algorithm` means; a task has one."""
    _new(_PRESETS, task, dict(settings))


def _new(table: dict[Key, Value], key: Key, value: Value) -> None:
    if key in table:
        raise already_registered(key)
    table[key] = value


def algorithm(name: str) -> Algorithm:
    return _ALGORITHMS[name]


def algorithms() -> tuple[Algorithm, ...]:
    """All of them, by name."""
    return tuple(_ALGORITHMS[name] for name in sorted(_ALGORITHMS))


def preset(task: str) -> Spec:
    """What a spec without `algorithm` means."""
    return dict(_PRESETS[task])


def losses(task: str) -> tuple[str, ...]:
    """The registered losses of a task, the form's own first."""
    first = forms.of(task).loss
    every = [name for of, name in _LOSSES if of == task]
    return tuple(sorted(every, key=lambda name: name != first))


def loss(task: str, name: str) -> Loss:
    return _LOSSES[task, name]


def loss_names(task: str) -> tuple[str, ...]:
    """Every loss that some algorithm takes on this task."""
    every: dict[str, None] = {}
    for entry in algorithms():
        parameter = entry.parameters.get("loss")
        if parameter is not None and task in entry.does():
            every |= dict.fromkeys(parameter.check_for(forms.of(task)).options)
    return tuple(every)


def learnable_tasks() -> tuple[str, ...]:
    """The tasks that have a registered loss."""
    return tuple(task for task in forms.names() if losses(task))


def discover(packages: Iterable[ModuleType]) -> None:
    """Import every file of the packages, so that it registers itself."""
    for package in packages:
        for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(entry.name)
