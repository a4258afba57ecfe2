"""Parameters that several algorithms take, each with one meaning."""

from .checks import costs, integer, label_blocks, number
from .registry import Parameter, needs

WEIGHTS = Parameter(
    costs(zero=False),
    "what missing each label costs; a label not named costs 1",
    dict,
    needs("loss", "weighted"),
    example={"junk": 0.2},
)
REJECT_COSTS = Parameter(
    costs(zero=True),
    "what abstaining costs, by the true label; a label not named costs 1",
    dict,
    needs("loss", "reject"),
    example={"junk": 0.2},
)
BLOCKS = Parameter(
    label_blocks,
    "labels of one block count as equal; a label not named is a block of its own",
    None,
    needs("loss", "block-zero-one"),
    required=True,
    example=[["cat", "dog"], ["car"]],
)
BANDWIDTH = Parameter(
    number(above=0), "the bandwidth of the Gaussian kernel", 1.0, needs("kernel", "gaussian"), example=0.5
)
BELOW = Parameter(
    integer(least=0),
    "so many items below the last click count as seen and not clicked, of those that were shown",
    0,
    needs("examination", None),
    forms=lambda form: form.items and not form.chooses,
    why="goes with clicks on items, and not with `examination`",
    example=3,
    versions=lambda form: 0,
)
