"""Labels under other names: what a spec, a truth or a decision says, as if an old name had always been the new one.

    renames  {old: new}, resolved: no new name is an old one, so that one step leads to where all others lead

In a set, and in an order, a name counts once, where it stands first; of two grades of one name the higher one counts.
What a spec says of the new name, it says; what it says of the old one counts where it says nothing of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import forms, registry
from .errors import SpecError, TruthError, pointer
from .spec import parameters, read

if TYPE_CHECKING:
    from .registry import Spec

__all__ = ["composed", "in_answer", "in_spec", "named_in"]


def composed(renames: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """What `renames` and then `more` say, resolved; TruthError, with a pointer into `more`, where they go in a circle."""
    steps, resolved = {**renames, **more}, dict[str, str]()
    for old in steps:
        name, passed = old, dict[str, None]()
        while name in steps and name not in resolved:
            if name in passed:
                raise TruthError(
                    "goes in a circle: a label that was renamed cannot get its name back", pointer(old)
                )
            passed[name] = None
            name = steps[name]
        resolved |= dict.fromkeys(passed, resolved.get(name, name))
    return {old: resolved[old] for old in steps}


def in_answer(answer: Any, renames: Mapping[str, str]) -> Any:
    """A truth, or a decision that was served; what is none is left to who reads it."""
    if not isinstance(answer, Mapping):
        return answer
    return {field: _renamed(value, renames) for field, value in answer.items()}


def _renamed(value: Any, renames: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return renames.get(value, value)
    if isinstance(value, list | tuple | set | frozenset):
        if not all(isinstance(name, str) for name in value):
            return value
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        return list(dict.fromkeys(renames.get(name, name) for name in ordered))
    if isinstance(value, Mapping):
        grades: dict[Any, Any] = {}
        for name, grade in value.items():
            new = renames.get(name, name)
            if new not in grades or not _is_at_most(grade, grades[new]):
                grades[new] = grade
        return grades
    return value


def _is_at_most(grade: object, other: object) -> bool:
    """Of what is no grade nothing is true: it stays, to be refused."""
    numbers = isinstance(grade, int | float) and isinstance(other, int | float)
    return numbers and grade <= other  # type: ignore[operator]


def in_spec(spec: Spec, renames: Mapping[str, str]) -> Spec:
    """A full spec with the new names; SpecError where no learner of its task can have these labels."""
    if not renames:
        return spec
    form, table = forms.of(spec["task"]), parameters(registry.algorithm(spec["algorithm"]))
    changed: dict[str, object] = dict(spec)
    for name, value in spec.items():
        if name == "labels":
            changed[name] = _neighbours(value, renames) if form.closed else _renamed(value, renames)
        elif value and name in table and table[name].check_for(form).labels(value, name):
            changed[name] = _stated(value, renames)
    try:
        return read(changed)
    except SpecError as error:
        if error.pointer.startswith(pointer("labels")):
            raise SpecError(
                f"{form.name} needs {form.wanted or 'its labels'}: these cannot become one", error.pointer
            ) from None
        raise


def named_in(spec: Spec) -> list[str]:
    """The labels that a full spec names."""
    form, table = forms.of(spec["task"]), parameters(registry.algorithm(spec["algorithm"]))
    names = list(spec.get("labels", ()))
    for name, value in spec.items():
        if value and name in table:
            names += [label for label, _ in table[name].check_for(form).labels(value, name)]
    return names


def _neighbours(labels: list[str], renames: Mapping[str, str]) -> list[str]:
    """Labels in an order of their own: only neighbours become one."""
    names = [renames.get(name, name) for name in labels]
    return [name for i, name in enumerate(names) if not i or name != names[i - 1]]


def _stated(value: Any, renames: Mapping[str, str]) -> Any:
    """Numbers by label, or by truth and decision, or blocks of labels."""
    if isinstance(value, list):
        return _blocks(value, renames)
    if not isinstance(value, Mapping):
        return value
    said: dict[str, Any] = {}
    for name in _own_first(value, renames):
        new, part = renames.get(name, name), value[name]
        if not isinstance(part, Mapping):
            said.setdefault(new, part)
            continue
        row = said.setdefault(new, {})
        for decision in _own_first(part, renames):
            other = renames.get(decision, decision)
            if new != other or name == decision:  # to take one for the other is no mistake any more
                row.setdefault(other, part[decision])
    return said


def _own_first(value: Mapping[str, Any], renames: Mapping[str, str]) -> list[str]:
    return sorted(value, key=renames.__contains__)


def _blocks(value: list[list[str]], renames: Mapping[str, str]) -> list[list[str]]:
    seen: set[str] = set()
    blocks = []
    for block in value:
        names = [name for name in _renamed(block, renames) if name not in seen]
        seen.update(names)
        if names:
            blocks.append(names)
    return blocks
