"""Parameters that several algorithms take, each with one meaning."""

from .checks import choice, cost_matrix, costs, integer, label_blocks, number
from .registry import Parameter, needs

OF_VECTORS = "goes with feature vectors"
FIRST_PLACES = "only the first so many positions count"
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
MATRIX = Parameter(
    cost_matrix,
    "what each decision costs on each truth, {truth: {decision: cost}}; not named: 0 on the diagonal, 1 off it",
    None,
    needs("loss", "matrix"),
    required=True,
    example={"urgent": {"later": 20}},
)
GAIN = Parameter(
    choice("exponential", "linear"),
    "what a grade y is worth to NDCG: 2^y - 1, or y",
    when=needs("loss", "ndcg"),
    forms=lambda form: form.ranks,
    why="goes with loss: ndcg",
    example="linear",
    omitted=True,
)
DISCOUNT = Parameter(
    choice("log", "reciprocal"),
    "what a position p is worth to NDCG: 1 / log2(1 + p), or 1 / p",
    when=needs("loss", "ndcg"),
    forms=lambda form: form.ranks,
    why="goes with loss: ndcg",
    example="reciprocal",
    omitted=True,
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
KERNEL = Parameter(
    choice("linear", "gaussian", "polynomial"),
    "exp(-||x - x'||^2 / (2 bandwidth^2)), or (1 + <x, x'>)^degree",
    example="gaussian",
)
DEGREE = Parameter(
    integer(least=1), "the degree of the polynomial kernel", 2, needs("kernel", "polynomial"), example=3
)
