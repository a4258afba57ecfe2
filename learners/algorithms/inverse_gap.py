"""Choosing one item and learning from its reward: bilinear logistic regression with inverse-gap exploration."""

from ..checks import Check, choice, number
from ..choice.bilinear import FORGET
from ..choice.chooser import ChoiceLearner
from ..choice.memories import AUTO
from ..choice.rewards import Rewards
from ..errors import SpecError, pointer
from ..instances import LARGEST
from ..registry import Algorithm, Cost, Parameter, Size, Spec, register


def _range(value: object, field: str) -> list[float]:
    bounds = value if isinstance(value, list | tuple) else ()
    if len(bounds) != 2 or any(isinstance(end, bool) or not isinstance(end, int | float) for end in bounds):
        raise SpecError("must be a list of two numbers", pointer(field))
    low, high = float(bounds[0]), float(bounds[1])
    if not -LARGEST <= low < high <= LARGEST:
        raise SpecError("must be two finite numbers, the lower one first", pointer(field))
    return [low, high]


RANGE = Check(_range, {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})


def _between(least: float, most: float) -> Check:
    def read(value: object, field: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise SpecError(f"must be a number from {least:g} to {most:g}", pointer(field))
        return float(value)

    return Check(read, {"type": "number", "minimum": least, "maximum": most})


def _forget(value: object, field: str) -> float | str:
    if value == "auto":
        return "auto"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise SpecError("must be `auto`, or a number of at least 0 and below 1", pointer(field))
    return float(value)


FORGETS = Check(
    _forget, {"anyOf": [{"enum": ["auto"]}, {"type": "number", "minimum": 0, "exclusiveMaximum": 1}]}
)


def agree(spec: Spec) -> None:
    """A default reward lies within the range."""
    low, high = spec["range"]
    if spec["default_reward"] is not None and not low <= spec["default_reward"] <= high:
        raise SpecError(f"must be from {low:g} to {high:g}, the range of rewards", pointer("default_reward"))


def build(spec: Spec) -> Rewards:
    """The state of a choice."""
    low, high = spec["range"]
    forget = AUTO if spec["forget"] == "auto" else (spec["forget"],)
    return Rewards(spec["gamma"], spec["floor"], low, high, spec["baseline"], forget)


def cost(spec: Spec, size: Size) -> Cost:
    """A block of W on the context's rows and the items' columns."""
    cells = max(1, size.features) * max(1, size.items)
    return Cost(2e-4 + 2e-8 * cells, 64 * cells)


register(
    Algorithm(
        "inverse-gap",
        "draws an item, with higher probability the better it seems, and estimates its reward from context and item",
        ("choice",),
        {
            "gamma": Parameter(
                number(above=0), "how fast exploration fades: gamma sqrt(K t) times the gap", 20.0, example=50
            ),
            "floor": Parameter(
                _between(0.0, 1.0),
                "share of the choices that is spread evenly over all items",
                0.02,
                example=0.05,
            ),
            "range": Parameter(
                RANGE,
                "the smallest and the largest possible reward",
                lambda spec: [0.0, 1.0],
                shown="[0, 1]",
                example=[-1, 1],
            ),
            "forget": Parameter(
                FORGETS,
                "the share of old evidence about a feature that fades each time it is met; `auto` runs 0.01, 0.001 and 0 "
                "side by side and follows those that foretell the rewards best",
                "auto",
                example=0.01,
                versions=lambda form: FORGET,
            ),
            "outside": Parameter(
                choice("refuse", "clip"),
                "a reward outside of `range`: refused, or counted as the nearer end, such as a revenue with a cap",
                "refuse",
                omitted=True,
            ),
            "default_reward": Parameter(
                _between(-LARGEST, LARGEST),
                "the reward used if none comes within `wait` seconds; without it, nothing is learned from such a choice",
                None,
                example=0,
            ),
            "baseline": Parameter(
                _between(0.0, 0.99),
                "above 0: the learner decides in this share of the calls, and the first item not excluded is served "
                "in the others, until the learner is proved not worse; a tenth of the calls stays with that item",
                0.0,
                example=0.1,
            ),
        },
        build,
        presets={"choice": {}},
        agree=agree,
        cost=cost,
        weight="counts the event w times in its implicit step",
        learner=ChoiceLearner,
    )
)
