"""The wrappers pass the checks of the libraries they fit into, and what they learn goes to the service by its snapshot."""

import importlib
import pickle
from datetime import datetime

import numpy as np
import pytest

from feedrank import learners

# These libraries take seconds to import, and every process of a run collects every file: the one that runs them loads them.


@pytest.fixture(scope="module")
def for_sklearn():
    pytest.importorskip("sklearn")
    from feedrank.compat import sklearn

    return sklearn


@pytest.fixture(scope="module")
def for_river():
    pytest.importorskip("river")
    from feedrank.compat import river

    return river


@pytest.mark.filterwarnings("ignore")
def test_the_classifier_passes_every_check_of_scikit_learn(for_sklearn):
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(for_sklearn.FeedrankClassifier(), on_fail=None, on_skip=None)
    failed = {row["check_name"]: repr(row["exception"]) for row in results if row["status"] == "failed"}
    assert failed == {}
    assert sum(row["status"] == "passed" for row in results) > 50


def blobs(seed, count=300):
    chance = np.random.default_rng(seed)
    y = chance.integers(0, 3, count)
    return chance.normal(size=(count, 4)) + 2 * np.eye(3, 4)[y], np.array(["red", "green", "blue"])[y]


def test_partial_fit_goes_on_and_a_pickle_is_exact(for_sklearn):
    X, y = blobs(1)
    model = for_sklearn.FeedrankClassifier().partial_fit(X[:100], y[:100], classes=["red", "green", "blue"])
    copy = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[100:], y[100:])
    copy.partial_fit(X[100:], y[100:])
    assert model.snapshot() == copy.snapshot()
    assert model.score(*blobs(2)) > 0.8
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert learners.load(model.snapshot()).version == 300


def test_a_matrix_of_bits_is_a_set_of_labels(for_sklearn):
    chance = np.random.default_rng(0)
    X = chance.normal(size=(400, 3))
    Y = (X[:, :2] > 0).astype(int)
    model = for_sklearn.FeedrankClassifier().fit(X, Y)
    assert (model.predict(X[300:]) == Y[300:]).mean() > 0.9


def test_the_ranker_ranks_lists(for_sklearn):
    chance = np.random.default_rng(0)
    X = chance.normal(size=(300, 4))
    y = np.maximum(0, np.round(X[:, 1] + 1))
    model = for_sklearn.FeedrankRanker().fit(X, y, group=[10] * 30)
    scores = model.predict(X[:10])
    assert np.corrcoef(scores, X[:10, 1])[0, 1] > 0.8
    with pytest.raises(ValueError, match="add up"):
        model.predict(X[:10], group=[4, 4])


def music(take):
    chance = np.random.default_rng(0)
    for _ in range(take):
        x = {f"f{i}": float(chance.normal()) for i in range(4)}
        yield x, {f"l{i}": bool(x[f"f{i}"] > 0) for i in range(3)}


@pytest.fixture
def offline(monkeypatch):
    """River takes its label sets from the network; its checks do as well with any other."""
    from river import datasets

    class Music:
        def take(self, count):
            return list(music(count))

    monkeypatch.setattr(datasets, "Music", Music)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["FeedrankClassifier", "FeedrankMultilabel"])
def test_the_models_pass_every_check_of_river(for_river, kind, offline):
    from river.checks import yield_checks

    model = getattr(for_river, kind)()
    ran = 0
    for check in yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            check(model.clone())
            ran += 1
    assert ran > 5


def test_words_numbers_and_labels_of_any_kind_in_river(for_river):
    model = for_river.FeedrankClassifier()
    for i in range(60):
        model.learn_one({"colour": "red" if i % 2 else "blue", "size": i, 7: None}, i % 2)
    assert model.predict_one({"colour": "red"}) == 1
    assert model.predict_one({"colour": "blue"}) == 0
    assert set(model.predict_proba_one({"colour": "blue"})) == {0, 1}


def test_rows_of_a_frame_and_of_a_table_teach_the_same():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    from feedrank.compat.frames import learn_frame

    rows = {"colour": ["red", "blue"] * 20, "size": [1.0, 2.0] * 20, "folder": ["x", "y"] * 20}
    one, two = (learners.build({"task": "multiclass"}) for _ in range(2))
    learn_frame(one, pandas.DataFrame(rows), truth="folder")
    learn_frame(two, pyarrow.table(rows), truth="folder")
    assert learners.dump(one) == learners.dump(two)
    words = learners.build({"task": "multiclass"})
    learn_frame(
        words,
        pandas.DataFrame({"body": ["cheap pills", "board meeting"] * 9, "folder": ["x", "y"] * 9}),
        "folder",
        ["body"],
    )
    assert words.predict({"text": {"body": "cheap"}}).label == "x"


def test_a_column_of_arrays_is_the_vector_of_each_row():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    from feedrank.compat.frames import learn_frame

    rows = {"e": [[0.5, 1.0], [1.0, -2.0]] * 5, "body": ["red", "blue"] * 5, "folder": ["x", "y"] * 5}
    arrays = {**rows, "e": [np.array(row, dtype=np.float32) for row in rows["e"]]}
    for text, rest in (["body"], {"text": {"body": "red"}}), ([], {"features": {"body=red": 1.0}}):
        built = [learners.build({"task": "multiclass"}) for _ in range(3)]
        for learner, frame in zip(
            built, (pandas.DataFrame(rows), pandas.DataFrame(arrays), pyarrow.table(rows)), strict=True
        ):
            learn_frame(learner, frame, "folder", text)
        assert len({learners.dump(learner) for learner in built}) == 1
        assert built[0].predict({"vector": [0.5, 1.0], **rest}).unknown == 0
    with pytest.raises(ValueError, match="both vectors"):
        learn_frame(built[0], pandas.DataFrame({**rows, "more": rows["e"]}), "folder")


TICKETS = {
    "subject": [
        "refund please",
        "cannot sign in",
        "charged twice",
        "password reset",
        None,
        "invoice is wrong",
    ],
    "days": [1.5, 2.0, float("nan"), 4.0, 5.0, 6.0],
    "seen": [datetime(2026, 11, day, 13) for day in range(1, 7)],
    "queue": ["billing", "login", "billing", "login", "", None],
}
INPUT = {"subject": "text", "days": "number", "seen": "time", "queue": "truth"}


def frames():
    pandas, pyarrow, polars = map(pytest.importorskip, ("pandas", "pyarrow", "polars"))
    return {
        "pandas": pandas.DataFrame(TICKETS, index=list("abcdef")),
        "arrow": pyarrow.table(TICKETS),
        "polars": polars.DataFrame(TICKETS),
    }


def test_frames_of_every_kind_go_in_and_come_out_with_equal_weights_and_predictions():
    dumps, answers = set(), []
    for kind, frame in frames().items():
        adapter = importlib.import_module(f"feedrank.compat.{kind}")
        learner = learners.build({"task": "multiclass", "input": INPUT})
        assert len(adapter.learn(learner, frame, truth="queue")) == 4  # two rows have no label
        dumps.add(learners.dump(learner))
        out = adapter.predict(learner, frame, truth="queue", each=True)
        assert type(out) is type(frame)
        answers.append(
            out.to_dict("list")
            if kind == "pandas"
            else (out.to_pydict() if kind == "arrow" else out.to_dict(as_series=False))
        )
        if kind == "pandas":
            assert list(out.index) == list("abcdef")
    assert len(dumps) == 1
    assert answers[0] == answers[1] == answers[2]
    one = answers[0]
    assert one["prediction"][:4] == ["billing", "login", "billing", "login"]
    assert [
        a + b for a, b in zip(one["probability:billing"], one["probability:login"], strict=True)
    ] == pytest.approx([1.0] * 6)
    assert one["probability"] == [
        max(a, b) for a, b in zip(one["probability:billing"], one["probability:login"], strict=True)
    ]
    assert one["known"][0] > 0
    assert one["abstained"] == [False] * 6


def test_a_learner_of_a_service_takes_frames_as_one_of_ones_own(tmp_path):
    from feedrank.clients import Client, Refused
    from feedrank.compat.frames import Remote, columns_of, learn_frame, predict_frame
    from feedrank.embedded import Embedded

    spec = {"task": "multiclass", "input": INPUT}
    own = learners.build(spec)
    with Client(transport=Embedded(f"sqlite:{tmp_path}/s.db")) as client:
        client.create("t", spec)
        client.create("sets", {"task": "multilabel"})
        remote = Remote(client, "t")
        for frame in frames().values():
            assert learn_frame(remote, frame, "queue") == learn_frame(own, frame, "queue")
            assert columns_of(remote, frame, truth="queue") == columns_of(own, frame, truth="queue")
        sets = (
            frames()["polars"].select("days").with_columns(tags=[["a"], ["a", "b"], [], ["b"], ["a"], ["b"]])
        )
        learn_frame(Remote(client, "sets"), sets, "tags")
        assert isinstance(
            predict_frame(Remote(client, "sets"), sets, truth="tags")["prediction"][0],
            (list, type(sets["tags"])),
        )
        with pytest.raises(Refused, match="did you mean 'subject'"):
            columns_of(remote, frames()["arrow"].rename_columns(["subjct", "days", "seen", "queue"]))
        with pytest.raises(ValueError, match="leave `text` out"):
            learn_frame(remote, frame, "queue", ["subject"])


def test_a_table_that_is_sorted_by_class_is_learned_as_well_as_any(for_sklearn):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    assert for_sklearn.FeedrankClassifier().fit(X, y).score(X, y) > 0.9
    assert (
        for_sklearn.FeedrankClassifier(shuffle=False).fit(X, y).score(X, y) < 0.9
    )  # what came last counts most
    first, second = (for_sklearn.FeedrankClassifier().fit(X, y).snapshot() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("classes", "names"), [(["no", "yes"], ["no", "yes"]), ([3, 5], ["3", "5"])])
def test_a_snapshot_has_the_labels_by_their_names(for_sklearn, classes, names):
    X, y = blobs(1)
    model = for_sklearn.FeedrankClassifier().fit(X, np.array(classes)[(y == "red").astype(int)])
    assert list(learners.load(model.snapshot()).labels) == names
    assert set(model.predict(X)) == set(classes)
