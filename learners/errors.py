"""What can go wrong in the core, and whose fault it is.

FeedrankError
├── InputError            what was handed in is wrong; `pointer` says where
│   ├── SpecError         the description of a learner
│   ├── InstanceError     features or items
│   ├── TruthError        label, labels, relevance, clicks
│   └── OptionError       an option of a prediction
└── SnapshotError         bytes that are not a learner: damaged, foreign or too new
"""

SHARED = "another thread is teaching this learner: use it in one thread at a time, or each its own load(dump(learner))"


class FeedrankError(Exception):
    """Root of everything the core raises on purpose."""


class InputError(FeedrankError):
    """Wrong input: nothing was changed. `pointer` is a JSON pointer (RFC 6901) into what was handed in."""

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(f"{pointer}: {detail}" if pointer else detail)
        self.detail = detail
        self.pointer = pointer


class SpecError(InputError):
    """A spec that cannot be built."""


class InstanceError(InputError):
    """An instance that cannot be read."""


class TruthError(InputError):
    """A truth that does not fit the task or the instance."""


class OptionError(InputError):
    """An option of `predict` that this learner cannot serve."""


class SnapshotError(FeedrankError):
    """Bytes that cannot be loaded; the message gives the reason."""


class OutdatedSnapshotError(SnapshotError):
    """A sound snapshot of an older release, whose sums ran in another order."""


def lacks(piece: object, what: str) -> ValueError:
    """A piece is asked for what only others of its kind have; the registrations see to it that this does not happen."""
    return ValueError(f"{type(piece).__name__} has no {what}")


def already_registered(name: object) -> ValueError:
    """A name is registered once."""
    return ValueError(f"{name} is registered already")


def damaged_snapshot() -> SnapshotError:
    """What is read is not what was written."""
    return SnapshotError("the snapshot is damaged: its checksum does not match")


def unreadable_snapshot(why: object) -> SnapshotError:
    """The bytes are sound, and make no sense."""
    return SnapshotError(f"the snapshot cannot be read: {why}")


def pointer(*parts: str | int) -> str:
    """A JSON pointer to the place that `parts` lead to."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
