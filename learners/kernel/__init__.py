"""The hot round: what must be fast, and what must give the same bits on every CPU. One seam, two versions of it.

    NAME       "native" where the compiled kernel was built, else "numpy"; FEEDRANK_KERNEL forces one of them
    read       plain Python objects -> Features         loads    raw JSON -> objects with Features in them
    text_features, together, beside, vector_of   folded text -> Features; with others; with a vector; a vector alone
    matrix, read_singles   numbers -> an array; listed_grades   those of a list;   body_bytes  what reading a body takes
    Table      Features -> LookedUp                     Weights  scores of a vector, and steps
    ascend     a direction of dual ascent               best     the highest scores
    FeatureBlocks   the block of every feature, and how often each block was right
    Rounds, BlendRounds   whole rounds, in two calls: what the pieces do, to the bit; None where the pieces do them
    ranking_json   a ranking as JSON; None where who wants it has to write it
    exp, log, cos_turns   of an array of float64; exp_of, log_of   of a number
    total, row_total, softmax, sigmoid, times, add_outer, sweep   sums, products and inverses
    scale, tally, recount   features scaled by what was counted of them
    forest_scores, forest_insert, forest_due, forest_step   trees on a window (`Forest`)
    word_scores, calibrated, recalibrate (and ..._bits), pool_round, adapt, entropic_step   pieces of the automatic learner
    entropic_move   a step of entropic weights
    list_inputs, list_scores, list_round   those of lists

`reference.py` and the other Python files here are the specification; the native version is in c/. Nobody outside this
folder asks which one runs but to say so.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .body_cost import check_body
from .forest import Forest

# Counts what the two versions have agreed on: a compiled kernel of another build must not run.
SEAM = 33


def _choice() -> str:
    wanted = os.environ.get("FEEDRANK_KERNEL", "")
    if wanted not in ("", "native", "numpy"):
        raise ValueError(f"FEEDRANK_KERNEL must be native or numpy, not {wanted!r}")
    if wanted != "numpy":
        try:
            if import_module(f"{__name__}._native").SEAM == SEAM:
                return "native"
        except ImportError:
            pass
    if wanted == "native":
        raise ImportError(
            "the native kernel is not built, or of another version: install feedrank where a C compiler is"
        )
    return "numpy"


NAME = _choice()

if TYPE_CHECKING or NAME == "numpy":
    from .adaptive import adapt
    from .ascent import ascend, best
    from .body_cost import body_bytes
    from .calibrate import calibrated, calibrated_bits, recalibrate, recalibrate_bits
    from .elementary import cos_turns, exp, exp_of, log, log_of, row_total, sigmoid, softmax, total
    from .entropy import entropic_move, entropic_step
    from .feature_blocks import FeatureBlocks
    from .forest import forest_due, forest_insert, forest_scores, forest_step
    from .lists import list_inputs, list_round, list_scores
    from .ndcg import gains, list_scaled, ndcg_loss
    from .products import add_outer, sweep, times
    from .reference import Features, LookedUp, loads, matrix, read
    from .singles import listed_grades, read_singles
    from .table import Table
    from .theta import Weights
    from .trust import pool_round
    from .welford import recount, scale, tally, word_scores
    from .words import beside, text_features, together, vector_of
else:
    from ._native import (
        FeatureBlocks,
        Features,
        Table,
        Weights,
        adapt,
        add_outer,
        ascend,
        beside,
        best,
        body_bytes,
        calibrated,
        calibrated_bits,
        cos_turns,
        entropic_move,
        entropic_step,
        exp,
        exp_of,
        forest_due,
        forest_insert,
        forest_scores,
        forest_step,
        gains,
        list_inputs,
        list_round,
        list_scaled,
        list_scores,
        listed_grades,
        loads,
        log,
        log_of,
        matrix,
        ndcg_loss,
        pool_round,
        ranking_json,
        read,
        read_singles,
        recalibrate,
        recalibrate_bits,
        recount,
        row_total,
        scale,
        sigmoid,
        softmax,
        sweep,
        tally,
        text_features,
        times,
        together,
        total,
        vector_of,
        word_scores,
    )
    from ._native import Vector as LookedUp

if TYPE_CHECKING or NAME == "numpy":
    ranking_json: Any = None
    Rounds: Any = None
    BlendRounds: Any = None
else:
    from ._native import BlendRounds, Rounds

__all__ = [
    "NAME",
    "BlendRounds",
    "FeatureBlocks",
    "Features",
    "Forest",
    "LookedUp",
    "Rounds",
    "Table",
    "Weights",
    "adapt",
    "add_outer",
    "ascend",
    "beside",
    "best",
    "body_bytes",
    "calibrated",
    "calibrated_bits",
    "check_body",
    "cos_turns",
    "entropic_move",
    "entropic_step",
    "exp",
    "exp_of",
    "forest_due",
    "forest_insert",
    "forest_scores",
    "forest_step",
    "gains",
    "list_inputs",
    "list_round",
    "list_scaled",
    "list_scores",
    "listed_grades",
    "loads",
    "log",
    "log_of",
    "matrix",
    "ndcg_loss",
    "pool_round",
    "ranking_json",
    "read",
    "read_singles",
    "recalibrate",
    "recalibrate_bits",
    "recount",
    "row_total",
    "scale",
    "sigmoid",
    "softmax",
    "sweep",
    "tally",
    "text_features",
    "times",
    "together",
    "total",
    "vector_of",
    "word_scores",
]
