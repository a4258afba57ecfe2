"""A noisy teacher labels tickets; the learner takes over where it is proved to agree with it 95 times in 100."""

import random
import tempfile

from feedrank.clients import Client
from feedrank.clients.teacher import Teacher
from feedrank.embedded import Embedded

WORDS = {
    "billing": "invoice refund charged twice card payment price receipt subscription cancel",
    "login": "password reset locked account email code sign factor forgot",
    "shipping": "parcel late tracking courier address delivery lost broken box where",
    "bugs": "crash error screen app button freezes update version stack",
}
FILLER = [
    "hello",
    "please",
    "help",
    "me",
    "with",
    "my",
    "since",
    "yesterday",
    "thanks",
    "team",
    "again",
    "still",
]
NOISE = 0.01  # of the teacher's labels are wrong


def ticket(queue: str, chance: random.Random) -> str:
    """A made-up ticket: some words of its queue among many that say nothing."""
    words = chance.sample(WORDS[queue].split(), 3) + chance.choices(FILLER, k=6)
    chance.shuffle(words)
    return " ".join(words)


def main() -> None:
    chance = random.Random(7)
    truths: dict[str, str] = {}

    def function(instance: dict[str, str]) -> str:
        """The teacher: right but for some noise."""
        return chance.choice(list(WORDS)) if chance.random() < NOISE else truths[instance["text"]]

    with (
        tempfile.TemporaryDirectory() as folder,
        Client("http://local", transport=Embedded(f"sqlite:{folder}/tickets.db")) as client,
    ):
        client.create("tickets", {"task": "multiclass"})
        teacher = Teacher(client, "tickets", function, min_precision=0.95)
        right = decided = 0
        for step in range(1, 16):
            before = teacher.savings()
            for _ in range(10):
                batch = []
                for _ in range(10):
                    queue = chance.choice(list(WORDS))
                    text = ticket(queue, chance)
                    truths[text] = queue
                    batch.append({"text": text})
                for answer in teacher.ask_many(batch):
                    if answer.by == "learner":
                        decided += 1
                        right += answer.label == truths[str(answer.instance["text"])]
            now = teacher.savings()
            if step % 3 == 0:
                print(f"tickets {100 * (step - 1) + 1} to {100 * step}: {now.calls - before.calls} calls")
        print(
            f"saved {now.saved:.0%} of {now.asked} calls; proved {now.proved:.1%}, was right {right / decided:.1%}"
        )
        assert now.saved > 0.3
        assert right >= 0.95 * decided


if __name__ == "__main__":
    main()
