"""Naive Bayes on words: how often each sparse feature came with each label.

    s_k = sum_j u_j log P(j | k) + log P(k),   P(j | k) = (n_jk + a) / (N_k + a V),   a = 0.1

over the sparse features j with u_j > 0; n_jk events of label k named j, N_k is their sum, V the number of features. For
bits, log P(j) and log P(not k) are taken off. It learns from one event what a linear learner needs many for, which is
what counts while labels are rare. Kept is L_jk = log(1 + n_jk / a), 0 for a pair that never met.
"""

from typing import Any

import numpy as np

from ... import kernel
from ...growth import columns_for, grown
from ...instances import Floats, Ints, Vector
from ...kernel import log, times, word_scores
from ...weights.base import Arrays, Counters
from ...weights.linear import BRIEF_IN_POOL
from ...weights.stored_rows import restore_stored, stored
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target

SMOOTHING = 0.1


class NaiveBayes(Expert):
    """See above."""

    name = "naive-bayes"
    kind = 1
    scale: float = 1.0

    def __init__(self, setting: Setting) -> None:
        self.bits: bool = setting.bits
        self.features: int = 0
        self.labels: int = 0
        self._kept = kernel.Weights(brief=BRIEF_IN_POOL)
        self.background: Floats = np.zeros(0)  # L of all events
        self.words: Floats = np.zeros(0)  # N_k
        self.events: Floats = np.zeros(0)  # of label k
        self.all_words: float = 0.0
        self.all_events: float = 0.0
        self._before: list[list[Any]] = []
        self._usual: tuple[Floats, Ints, Floats] | None = None

    def grow(self, features: int, columns: int) -> None:
        self._kept.grow(features, columns)
        self.features, self.labels = features, columns
        self.background = grown(self.background, features)
        self.words, self.events = grown(self.words, columns), grown(self.events, columns)

    def mark(self) -> Any:
        """References, and copies of what is small; `learn` keeps the logarithms that it changes."""
        self._before, self._usual = [], None
        arrays = self._kept, self.background, self.words.copy(), self.events.copy()
        return arrays, self.features, self.labels, self.all_words, self.all_events

    def rewind(self, mark: Any) -> None:
        for logs, rows, column, old in self._before:
            if old is not None:
                logs.set_column(rows, column, old)
        if self._usual is not None:
            background, rows, old = self._usual
            background[rows] = old
        arrays, self.features, self.labels, self.all_words, self.all_events = mark
        self._kept, self.background, self.words, self.events = arrays
        self._kept.shrink(self.features, self.labels)

    def scores(self, inputs: Inputs) -> Floats:
        if not self.bits:
            x = inputs.scaled
            room = SMOOTHING * float(self.features) + SMOOTHING
            seen = x.rows, x.values, x.dense, x.unseen
            rows, values, size, s = word_scores(self._kept, seen, self.words, self.events, room)
            inputs.kept["words"] = rows, values, size
            return s
        rows, values, size = inputs.words()
        s = self._kept.scores(Vector(rows, values)) - times(values, self.background.take(rows))
        return np.asarray(s + self._constant(size))

    def fused(self) -> tuple[Any, ...]:
        return True, self.scale, SMOOTHING, self._kept, self.words, self.events, self.background

    def _constant(self, size: float) -> Floats:
        """What does not depend on the words: log P(k), and the size of the vocabulary times the length."""
        k = self.labels
        room = SMOOTHING * float(self.features)
        room += SMOOTHING
        events = self.events[:k] + 0.5
        if not self.bits:
            logs = log(np.concatenate((self.words[:k] + room, events)))
            return np.asarray(logs[k:] - size * logs[:k])
        others = self.all_events - self.events[:k] + 0.5
        logs = log(np.concatenate((self.words[:k] + room, events, others, [self.all_words + room])))
        return np.asarray(logs[k : 2 * k] - logs[2 * k : 3 * k] - size * (logs[:k] - logs[3 * k]))

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        rows, _, _ = inputs.words()
        more = target.weight / SMOOTHING
        labels = target.relevant.nonzero()[0].tolist() if target.only is None else [target.only]
        if len(rows):
            for k in labels:
                self._raise(rows, k, more)
            if self.bits:
                self._usual = self.background, rows, self.background.take(rows)
                kernel.recount(self.background[:, None], rows, 0, more)
        seen = target.weight * len(rows)
        for k in labels:
            self.words[k] += seen
            self.events[k] += target.weight
        self.all_words += seen
        self.all_events += target.weight

    def _raise(self, rows: Ints, column: int, more: float) -> None:
        # Its place first, then the step, which gives the way back: nothing can fail between the two.
        entry: list[Any] = [self._kept, rows, column, None]
        self._before.append(entry)
        entry[3] = self._kept.recount(rows, column, more)

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        rows, values, size = inputs.words()
        x = inputs.scaled
        every = np.zeros((len(x.rows), self.labels))
        block = self._kept.take(rows)
        if self.bits:
            block = block - self.background.take(rows)[:, None]
        every[~x.dense & (x.values > 0.0)] = block * values[:, None]
        return every, self._constant(size), np.zeros(self.labels)

    def reset(self) -> None:
        kept = kernel.Weights(brief=BRIEF_IN_POOL)
        kept.grow(self.features, self.labels)
        self._kept, self.background = kept, np.zeros_like(self.background)
        self.words, self.events = np.zeros_like(self.words), np.zeros_like(self.events)
        self.all_words = self.all_events = 0.0

    def arrays(self) -> Arrays:
        return {
            "logs": stored(self._kept),
            "background": self.background[: self.features],
            "words": self.words[: self.labels],
            "events": self.events[: self.labels],
        }

    def counters(self) -> Counters:
        return {"all_words": self.all_words, "all_events": self.all_events}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("the counts do not fit the features and labels")
        restore_stored(self._kept, arrays["logs"])
        self.background[: self.features] = arrays["background"]
        self.words[: self.labels] = arrays["words"]
        self.events[: self.labels] = arrays["events"]
        self.all_words, self.all_events = counters["all_words"], counters["all_events"]

    def nbytes(self, features: int, columns: int) -> int:
        return self._kept.nbytes() + 8 * (features + 2 * columns)

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * (features * (columns_for(columns) + 1) + 2 * columns)


register_expert(
    ExpertEntry(
        "naive-bayes",
        NaiveBayes,
        0.3,
        "probabilities from counting how often each sparse feature came with each label",
    )
)
