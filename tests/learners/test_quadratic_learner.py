"""The streaming learner against the batch estimator of Eq. (9), by brute force over all decisions, on the same events."""

import itertools

import numpy as np
import pytest

from feedrank.learners import InputError, build, dump, load
from feedrank.learners.algorithms.quadratic import AnyLoss, labels
from feedrank.learners.errors import OptionError

LABELS = "abcd"
QUADRATIC = {"algorithm": "quadratic-surrogate", "regularization": 0.4}


def words(rng, reach):
    names = rng.choice(reach, size=3, replace=False)
    return {f"w{name}": float(value) for name, value in zip(names, rng.normal(size=3), strict=True)}


def alphas(xs, x, r, bandwidth):
    """Eq. (8) from its definition."""
    names = sorted({name for one in [*xs, x] for name in one})
    rows = np.array([[one.get(name, 0.0) for name in names] for one in [*xs, x]])
    if bandwidth is None:
        K = rows @ rows.T
    else:
        K = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=-1) / 2 / bandwidth**2)
    n = len(xs)
    return np.linalg.solve(K[:n, :n] + r * np.sqrt(n) * np.eye(n), K[:n, n])


def f(z, y):
    return 1 - (2 * len(z & y) / (len(z) + len(y)) if z or y else 1.0)


def ndcg(order, grades):
    gain = {name: 2.0 ** grades.get(name, 0) - 1 for name in order}
    discounts = [1 / np.log2(p + 2) for p in range(len(order))]
    ideal = sum(g * d for g, d in zip(sorted(gain.values(), reverse=True), discounts, strict=True))
    return 1 - sum(gain[name] * d for name, d in zip(order, discounts, strict=True)) / ideal if ideal else 0.0


def average_precision(order, grades):
    hits = [p + 1 for p, name in enumerate(order) if grades.get(name, 0) > 0]
    return 1 - sum((i + 1) / p for i, p in enumerate(hits)) / len(hits) if hits else 0.0


def disagreement(order, grades):
    pairs = [(a, b) for a in order for b in order if grades.get(a, 0) > grades.get(b, 0)]
    return sum(order.index(a) > order.index(b) for a, b in pairs) / len(pairs) if pairs else 0.0


SUBSETS = [frozenset(c) for size in range(5) for c in itertools.combinations(LABELS, size)]
ORDERS = list(itertools.permutations(LABELS))
BATCH = {
    ("multiclass", "zero-one"): (LABELS, lambda z, y: z != y),
    ("multilabel", "subset-zero-one"): (SUBSETS, lambda z, y: z != y),
    ("multilabel", "hamming"): (SUBSETS, lambda z, y: len(z ^ y) / len(LABELS)),
    ("multilabel", "f-score"): (SUBSETS, f),
    ("label-ranking", "ndcg"): (ORDERS, ndcg),
    ("label-ranking", "ap"): (ORDERS, average_precision),
    ("label-ranking", "pairwise-disagreement"): (ORDERS, disagreement),
}


def truth_of(task, rng, known):
    if task == "multiclass":
        name = LABELS[rng.integers(known)]
        return {"label": name}, name
    if task == "multilabel":
        chosen = frozenset(name for name in LABELS[:known] if rng.random() < 0.4)
        return {"labels": sorted(chosen)}, chosen
    grades = {name: int(rng.integers(3)) for name in LABELS[:known]}
    return {"relevance": grades}, grades


@pytest.mark.parametrize("bandwidth", [None, 2.0])
@pytest.mark.parametrize(("task", "loss"), BATCH)
def test_equals_the_batch_estimator_on_the_events_so_far(task, loss, bandwidth):
    """Features and labels join on the way: what joins late was 0 before, in both."""
    kernel = {} if bandwidth is None else {"kernel": "gaussian", "bandwidth": bandwidth}
    # A pair with a label that is not known yet is not judged, so there disagreement knows its labels from the start.
    start = list(LABELS) if loss == "pairwise-disagreement" else []
    learner = build({"task": task, "loss": loss, "labels": start, **QUADRATIC, **kernel})
    rng, xs, ys = np.random.default_rng(3), [], []
    for n in range(40):
        x = words(rng, 4 + n // 5)
        answer, y = truth_of(task, rng, 4 if start else min(4, 2 + n // 6))
        learner.learn({"features": x}, answer)
        xs.append(x)
        ys.append(y)
        if n % 9 == 5:
            learner = load(dump(learner))
        if n < 13 or n % 3:
            continue
        probe = words(rng, 4 + n // 5)
        decisions, L = BATCH[task, loss]
        if task == "multiclass":
            decisions = list(learner.labels)
        weights = alphas(xs, probe, 0.4, bandwidth)
        risks = {z: sum(a * L(z, y) for a, y in zip(weights, ys, strict=True)) for z in decisions}
        prediction = learner.predict({"features": probe})
        if task == "multiclass":
            ours = prediction.label
        elif task == "multilabel":
            ours = frozenset(prediction.labels)
        else:
            ours = tuple(name for name, _ in prediction.ranking)
        assert risks[ours] == pytest.approx(min(risks.values()), abs=1e-8)
        rest = min(value for z, value in risks.items() if z != ours)
        assert prediction.margin == pytest.approx(rest - risks[ours], abs=1e-8)
        if prediction.objective is not None:
            assert prediction.objective == pytest.approx(risks[ours], abs=1e-8)
    assert learner.certificate["exact"]


def test_items_are_rows_of_one_regression():
    learner = build({"task": "subset-ranking", "cutoff": 2, **QUADRATIC})
    rng, X, targets = np.random.default_rng(0), np.zeros((0, 5)), np.zeros(0)
    for n in range(30):
        items, grades = rng.normal(size=(6, 5)), rng.integers(0, 3, size=6)
        item_list = {"items": [{"id": str(i), "features": row.tolist()} for i, row in enumerate(items)]}
        if n:
            w = np.linalg.solve(X.T @ X + 0.4 * np.sqrt(n) * np.eye(5), X.T @ targets)
            scores = dict(learner.predict(item_list).ranking)
            assert [scores[str(i)] for i in range(6)] == pytest.approx((items @ w).tolist(), abs=1e-10)
        learner.learn(item_list, {"relevance": {str(i): int(grade) for i, grade in enumerate(grades)}})
        gains = 2.0**grades - 1
        ideal = np.sort(gains)[::-1][:2] @ (1 / np.log2([2, 3]))
        X, targets = np.vstack((X, items)), np.concatenate((targets, gains / ideal if ideal else gains))


def test_one_learner_serves_many_losses_without_learning_again():
    """Asked for another loss, a learner decides as one that was made for it."""
    for task, losses in (
        ("multilabel", ("subset-zero-one", "hamming", "f-score", "precision")),
        ("label-ranking", ("ndcg", "precision", "ap", "pairwise-disagreement")),
    ):
        learners = {
            loss: build(
                {"task": task, "loss": loss, **QUADRATIC, **({"cutoff": 2} if loss == "precision" else {})}
            )
            for loss in losses
        }
        rng = np.random.default_rng(1)
        for _ in range(25):
            instance, (answer, _) = {"features": words(rng, 6)}, truth_of(task, rng, 4)
            for learner in learners.values():
                learner.learn(instance, answer)
        for _ in range(10):
            instance = {"features": words(rng, 6)}
            for loss, made in learners.items():
                before = dump(learners["precision"])
                asked = learners["precision"].predict(instance, loss=loss)
                assert dump(learners["precision"]) == before
                if loss != "ndcg":  # its own learner has no cutoff
                    assert asked == made.predict(instance)


def test_a_loss_that_is_not_served_is_refused():
    learner = build({"task": "multilabel", "loss": "hamming", **QUADRATIC})
    learner.learn({"features": ["x"]}, {"labels": ["a"]})
    for loss in ("ndcg", "block-zero-one", "nonsense"):
        with pytest.raises(OptionError, match="losses of this learner"):
            learner.predict({"features": ["x"]}, loss=loss)
    with pytest.raises(OptionError, match="cutoff"):
        learner.predict({"features": ["x"]}, loss="precision")
    with pytest.raises(InputError):
        build({"task": "multilabel", "loss": "ndcg", **QUADRATIC})


def test_pairs_of_labels_are_kept_while_there_are_few_or_if_the_loss_needs_them():
    many = {f"label{i}": 1 + i % 2 for i in range(labels.PAIRED + 1)}
    own = build({"task": "label-ranking", "loss": "ap", **QUADRATIC})
    other = build({"task": "label-ranking", **QUADRATIC})
    for learner in (own, other):
        learner.learn({"features": ["x"]}, {"relevance": {"a": 1, "b": 0}})
        assert learner.predict({"features": ["x"]}, loss="pairwise-disagreement").ranking[0][0] == "a"
        learner.learn({"features": ["x"]}, {"relevance": many})
    assert own.predict({"features": ["x"]}, loss="pairwise-disagreement").objective is not None
    with pytest.raises(OptionError, match="labels"):
        other.predict({"features": ["x"]}, loss="ap")
    assert other.predict({"features": ["x"]}, loss="precision").ranking


def test_an_event_before_the_first_label_counts():
    one, two = (build({"task": "multilabel", "loss": "hamming", **QUADRATIC}) for _ in range(2))
    one.learn({"features": ["x"]}, {"labels": []})
    for learner in (one, two):
        learner.learn({"features": ["x", "y"]}, {"labels": ["a"]})
    assert one.predict({"features": ["x"]}).ranking[0][1] < two.predict({"features": ["x"]}).ranking[0][1]


def test_clicks_with_propensities_weigh_as_often_as_they_say():
    spec = {"task": "subset-ranking", **QUADRATIC}
    clicked = build({**spec, "examination": [0.5]})
    plain = build(spec)
    items = {"items": [{"id": "a", "features": [1.0, 0.0]}, {"id": "b", "features": [0.0, 1.0]}]}
    clicked.learn(items, {"clicks": ["a"]})
    plain.learn(items, {"relevance": {"a": 1}})
    assert dict(clicked.predict(items).ranking)["a"] == pytest.approx(
        2 * dict(plain.predict(items).ranking)["a"]
    )


def test_any_loss_from_python():
    """Eq. (9) with a loss made up here, against its definition; ties and no events go to the first decision."""
    rng, decisions = np.random.default_rng(0), [0, 1, 5, 9]

    def loss(z, y):
        return abs(z - y[0]) * (1 + y[1])

    for bandwidth in (None, 1.0):
        ours, xs, ys = AnyLoss(decisions, loss, 0.5, bandwidth), [], []
        assert ours.predict(np.ones(3)).decision == 0
        for _ in range(40):
            x, y = rng.normal(size=3), (int(rng.integers(10)), int(rng.integers(3)))
            ours.learn(x, y)
            xs.append(dict(enumerate(x)))
            ys.append(y)
            probe = rng.normal(size=3)
            weights = alphas(xs, dict(enumerate(probe)), 0.5, bandwidth)
            risks = [sum(a * loss(z, y) for a, y in zip(weights, ys, strict=True)) for z in decisions]
            answer = ours.predict(probe)
            assert answer.risks == pytest.approx(risks, abs=1e-8)
            assert answer.decision == decisions[int(np.argmin(risks))]
            assert answer.margin == pytest.approx(np.partition(risks, 1)[1] - min(risks), abs=1e-8)
    with pytest.raises(ValueError, match="decision"):
        AnyLoss([], loss)


@pytest.mark.parametrize("seed", range(12))
def test_any_scale_of_features_gives_finite_answers(seed):
    rng = np.random.default_rng(seed)
    spec = {
        "task": "multilabel",
        "algorithm": "quadratic-surrogate",
        "regularization": 10.0 ** rng.integers(-12, 8),
    }
    learner = build(spec | ({"budget": 6} if seed % 2 else {}))
    scales = 10.0 ** rng.integers(-99, 99, size=3)
    for _ in range(20):
        x = {f"w{rng.integers(9)}": float(rng.normal() * rng.choice(scales)) for _ in range(4)}
        learner.learn({"features": x}, {"labels": [name for name in LABELS if rng.random() < 0.4]})
        prediction = learner.predict({"features": x}, explain=True)
        assert np.isfinite([score for _, score in prediction.ranking]).all()
