"""An alarm when a learner gets worse, with a bounded rate of false alarms at every look.

A loss l in [0, 1] is compared with b, the mean loss since the last alarm plus a tolerance, against c = 2, 4 and 16 times
its odds:

    e = 1 + (b' - b) / (b (1 - b)) (l - b),   b' = c b / (c b + 1 - b)

and Shiryaev and Roberts' sums M <- (M + 1) e of the three are averaged. While the expected loss of a round, given all
before, is at most b, E[e] <= 1, so that M - t is a supermartingale and the mean time to a false alarm, at M >= 100,000,
is at least 100,000 rounds: an e-detector (Shin, Ramdas and Rinaldo 2024). A swap of labels raises it in a few dozen.
"""

from ...json_types import Json
from ...kernel import alarm
from ...kernel.alarm import THRESHOLD, Evidence
from ...weights.base import Counters

DriftMark = tuple[int, int, int | None, int, float, Evidence]


class Drift:
    """`alarms` counts them; `last` is the round of the last one."""

    count: int
    sum: float

    def __init__(self) -> None:
        self.rounds: int = 0
        self.alarms: int = 0
        self.last: int | None = None
        self._restart()

    def _restart(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.evidence: Evidence = (0.0, 0.0, 0.0)  # replaced, never changed

    def learn(self, loss: float) -> bool:
        """One more round with this loss in [0, 1]; True if it raises the alarm."""
        self.rounds += 1
        self.evidence = alarm.evidence_after(self.evidence, self.count, self.sum, loss)
        self.count += 1
        self.sum += loss
        if self.value() < THRESHOLD:
            return False
        self.alarms += 1
        self.last = self.rounds
        self._restart()
        return True

    def value(self) -> float:
        """M, the evidence for a change; the alarm is raised at 100,000."""
        return alarm.value(self.evidence)

    def mark(self) -> DriftMark:
        """What `rewind` takes back to."""
        return self.rounds, self.alarms, self.last, self.count, self.sum, self.evidence

    def rewind(self, mark: DriftMark) -> None:
        """All as it was at the mark."""
        self.rounds, self.alarms, self.last, self.count, self.sum, self.evidence = mark

    def describe(self) -> dict[str, Json]:
        """For `GET`: how often, when, and how near."""
        return {
            "alarms": self.alarms,
            "last_alarm": self.last,
            "evidence": self.value(),
            "threshold": THRESHOLD,
        }

    def counters(self) -> Counters:
        return {
            "rounds": self.rounds,
            "alarms": self.alarms,
            "last": self.last,
            "count": self.count,
            "sum": self.sum,
            "evidence": list(self.evidence),
        }

    def restore(self, counters: Counters) -> None:
        self.rounds, self.alarms, self.last = counters["rounds"], counters["alarms"], counters["last"]
        self.count, self.sum = counters["count"], counters["sum"]
        first, second, third = map(float, counters["evidence"])
        self.evidence = first, second, third
