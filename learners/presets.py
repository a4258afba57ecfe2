"""Our best settings for each task: what a spec without `algorithm` means.

Where streams are named beside one, it was chosen on them, and the benchmark prints the figures. Those of binary and ordinal
are plain: the one algorithm of the task, unit length and a bias. Ordinal's step was the better of two on a few streams that
no benchmark keeps.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "binary": {"algorithm": "predtron", "loss": "zero-one", "normalize": "unit", "bias": True},
    # Enron mailboxes, benchmarks/enron.py; squared norm, because it takes any features (docs/dual-ascent.md).
    "multiclass": {"algorithm": "dual-ascent", "update": "III", "weighting": "idf", "normalize": "unit"},
    "ordinal": {
        "algorithm": "predtron",
        "loss": "absolute",
        "learning_rate": 0.3,
        "normalize": "unit",
        "bias": True,
    },
    # yeast, scene, enron, bibtex: benchmarks/peers.py. The budget bounds a round to about a millisecond.
    "multilabel": {
        "algorithm": "quadratic-surrogate",
        "loss": "hamming",
        "regularization": 0.1,
        "budget": 512,
        "normalize": "unit",
        "bias": True,
    },
    "label-ranking": {"algorithm": "dual-ascent", "update": "III", "weighting": "idf", "normalize": "unit"},
    "subset-ranking": {"algorithm": "listnet", "normalize": "list"},  # MQ2008, OHSUMED: benchmarks/lists.py
}


def of(task: str) -> dict[str, Any]:
    """A copy of the task's preset."""
    return dict(PRESETS[task])
