"""Histories in and out: every format gives the same events, each line is learned once, refusals name their line."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from feedrank.clients.connection import service
from feedrank.clients.history.formats import READERS, Source, format_of
from feedrank.clients.history.tables import Columns, FormatError
from feedrank.clients.history_cli import export_app, import_app


def lines_of(tmp_path, name, text, columns=None):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(READERS[format_of(path)](Source(path, columns or Columns())))


def test_a_csv_row_is_numbers_by_column_and_text_as_column_and_value(tmp_path):
    (line,) = lines_of(tmp_path, "a.csv", "colour,price,size,label\nred,3.5,,x\n")
    assert line.body == {"features": {"colour=red": 1.0, "price": 3.5}, "label": "x"}
    assert line.number == 2


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_of_a_table_is_told_by_its_header(tmp_path, separator):
    (line,) = lines_of(tmp_path, "a.csv", separator.join(["p", "q", "label"]) + "\n" + separator.join("12z"))
    assert line.body == {"features": {"p": 1.0, "q": 2.0}, "label": "z"}


def test_a_cell_with_a_line_break_is_one_cell(tmp_path):
    lines = lines_of(tmp_path, "a.csv", 'body,label\n"one\ntwo",x\nthree,y\n', Columns(text=("body",)))
    assert [line.body for line in lines] == [
        {"text": {"body": "one\ntwo"}, "label": "x"},
        {"text": {"body": "three"}, "label": "y"},
    ]


def test_a_set_of_labels_is_split_and_an_id_column_is_no_feature(tmp_path):
    columns = Columns(truth="tags", id="key", several="|")
    (line,) = lines_of(tmp_path, "a.csv", "key,w,tags\nk1,2,a| b\n", columns)
    assert line.body == {"features": {"w": 2.0}, "labels": ["a", "b"]}
    assert line.id == "k1"


@pytest.mark.parametrize(
    ("row", "reason"),
    [("1", "has 1 cells where the header has 2"), ("inf,x", "not a finite number")],
)
def test_a_bad_row_is_a_line_with_its_problem_and_the_next_goes_on(tmp_path, row, reason):
    bad, good = lines_of(tmp_path, "a.csv", f"w,label\n{row}\n2,y\n")
    assert bad.body is None
    assert reason in bad.problem
    assert good.body == {"features": {"w": 2.0}, "label": "y"}


def test_a_truth_column_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(FormatError, match="there are w, folder: name another with --truth"):
        lines_of(tmp_path, "a.csv", "w,folder\n1,x\n")


def test_jsonl_bodies_are_identified_by_the_column_that_was_named(tmp_path):
    text = '{"id": 7, "text": "a b", "label": "x"}\n'
    (tmp_path / "a.jsonl").write_text(text)
    (line,) = READERS["jsonl"](Source(tmp_path / "a.jsonl", Columns(id="id")))
    assert (line.id, line.body) == ("7", {"text": "a b", "label": "x"})


def test_jsonl_takes_feedback_bodies_and_rows_and_says_what_is_neither(tmp_path):
    text = '{"features": ["a"], "label": "x", "feedback_id": "i"}\n{"c": 3, "label": "y"}\nnope\n[1]\n'
    body, row, broken, wrong = lines_of(tmp_path, "a.jsonl.gz", gzip.compress(text.encode()))
    assert (body.body, body.id) == ({"features": ["a"], "label": "x"}, "i")
    assert row.body == {"features": {"c": 3.0}, "label": "y"}
    assert "is not JSON" in broken.problem
    assert "must be an object" in wrong.problem


def test_columns_named_like_those_of_a_log_do_not_make_a_row_an_event(tmp_path):
    text = (
        '{"kind": "bug", "version": 3, "label": "x"}\n'
        '{"kind": "feedback", "version": "1.2", "at": 5, "label": "y"}\n'
        '{"kind": "bug", "version": 3, "features": ["a"], "label": "z"}\n'
    )
    assert [line.body["label"] for line in lines_of(tmp_path, "a.jsonl", text)] == ["x", "y", "z"]


def test_an_event_without_a_truth_is_a_row_to_predict_and_the_next_goes_on(tmp_path):
    text = '{"kind": "feedback", "version": 3, "at": 5.0}\n{"c": 3, "label": "y"}\n'
    cut, row = lines_of(tmp_path, "a.jsonl", text)
    assert cut.unlabelled
    assert row.body == {"features": {"c": 3.0}, "label": "y"}


def test_libsvm_gives_labels_and_letor_gives_lists(tmp_path):
    one, several = lines_of(tmp_path, "a.libsvm", "1 1:2 3:4.5\n2,5 2:1 # note\n")
    assert one.body == {"features": {"1": 2.0, "3": 4.5}, "label": "1"}
    assert several.body == {"features": {"2": 1.0}, "labels": ["2", "5"]}
    first, second = lines_of(tmp_path, "a.letor", "2 qid:7 1:0.5\n0 qid:7 1:0.1\n1 qid:8 1:1\n")
    assert [item["id"] for item in first.body["items"]] == ["1", "2"]
    assert first.body["relevance"] == {"1": 2.0}
    assert second.body["relevance"] == {"1": 1.0}


def test_vowpal_wabbit_text_keeps_namespaces_weights_and_values(tmp_path):
    plain, weighted, unlabelled = lines_of(tmp_path, "a.vw", "1 |a x y:2 |b:0.5 z\n2 2.5 'tag| q q\n| no\n")
    assert plain.body == {"label": "1", "features": {"a^x": 1.0, "a^y": 2.0, "b^z": 0.5}}
    assert weighted.body == {"label": "2", "weight": 2.5, "features": {"q": 2.0}}
    assert "cannot teach" in unlabelled.problem


def test_parquet_is_read_by_column(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"w": [1.0, None], "tags": [["a"], ["a", "b"]]}), path)
    lines = list(READERS["parquet"](Source(path, Columns(truth="tags"))))
    assert [line.body for line in lines] == [
        {"features": {"w": 1.0}, "labels": ["a"]},
        {"features": {}, "labels": ["a", "b"]},
    ]


def run(app, *arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_an_import_that_is_repeated_learns_nothing_twice_and_an_export_gives_it_back(tmp_path):
    store = f"sqlite:{tmp_path}/store.db"
    path = tmp_path / "mail.csv"
    path.write_text("w,label\n1,x\n2,y\nbad\n3,x\n")
    code, output = run(import_app, path, "--learner", "l", "--task", "multiclass", "--store", store)
    assert code == 0
    assert "3 learned, 0 known already, 1 refused" in output
    assert "line 4: has 1 cells" in output
    path.write_text(path.read_text() + "4,y\n")
    assert (
        "1 learned, 3 known already, 1 refused"
        in run(import_app, path, "--learner", "l", "--store", store)[1]
    )
    out = tmp_path / "out.jsonl"
    assert run(export_app, out, "--learner", "l", "--what", "training", "--store", store)[0] == 0
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert [row["label"] for row in rows] == ["x", "y", "x", "y"]
    copied, output = run(import_app, out, "--learner", "copy", "--task", "multiclass", "--store", store)
    assert copied == 0
    assert "4 learned" in output


def test_a_new_learner_needs_a_task_and_the_refusal_says_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("w,label\n1,x\n")
    code, output = run(import_app, path, "--learner", "l", "--store", f"sqlite:{tmp_path}/s.db")
    assert code == 1
    assert "name the --task of a new one" in output


def test_the_log_is_exported_as_a_table_too(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store = f"sqlite:{tmp_path}/store.db"
    path = tmp_path / "a.csv"
    path.write_text("w,label\n1,x\n2,y\n")
    run(import_app, path, "--learner", "l", "--task", "multiclass", "--store", store)
    assert run(export_app, tmp_path / "e.parquet", "--learner", "l", "--store", store)[0] == 0
    table = parquet.read_table(tmp_path / "e.parquet").to_pylist()
    assert [row["version"] for row in table] == [1, 2]
    assert json.loads(table[1]["truth"]) == {"label": "y"}
    assert table[0]["feedback_id"] == "a.csv:2"


def asked_and_answered(client, name, spec, rounds, truth_of):
    client.create(name, spec)
    for i in range(rounds):
        items = [{"id": f"p{k}", "features": {"a": (i * k) % 5, "b": k}} for k in range(4)]
        asked = client.predict(name, {"items": items})
        client.feedback(name, {"prediction_id": asked.prediction_id, **truth_of(asked)})


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("what", ["events", "training"])
def test_vectors_are_exported_and_learned_again(tmp_path, ending, what):
    store = f"sqlite:{tmp_path}/store.db"
    with service(None, store, None) as client:
        client.create("l", {"task": "multiclass"})
        for i in range(8):
            client.feedback("l", {"vector": [i, 0.1, -1.5], "text": f"word{i % 3}", "label": "ab"[i % 2]})
    file = tmp_path / f"log.{ending}"
    assert run(export_app, file, "--learner", "l", "--what", what, "--store", store)[0] == 0
    code, output = run(import_app, file, "--learner", "m", "--task", "multiclass", "--store", store)
    assert code == 0, output
    with service(None, store, None) as client:
        asked = {"vector": [1, 2, 3], "text": "word1"}
        one, other = (client.predict(name, asked, remember=False) for name in "lm")
        assert (one.ranking, one.known) == (other.ranking, other.known)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("what", ["events", "training"])
@pytest.mark.parametrize(
    ("spec", "truth_of"),
    [
        ({"task": "subset-ranking"}, lambda asked: {"clicks": [asked.ranking[1].id]}),
        ({"task": "choice"}, lambda asked: {"reward": 0.5}),
    ],
    ids=["clicks", "rewards"],
)
def test_an_exported_log_gives_the_same_learner_again(tmp_path, ending, what, spec, truth_of):
    store = f"sqlite:{tmp_path}/store.db"
    with service(None, store, None) as client:
        asked_and_answered(client, "l", spec, 12, truth_of)
        client.feedback(
            "l", {"items": [{"id": "p", "features": {"z": 1}}], **odd(spec), "feedback_id": "odd"}
        )
        client.retract("l", feedback_id="odd")
    file = tmp_path / f"log.{ending}"
    assert run(export_app, file, "--learner", "l", "--what", what, "--store", store)[0] == 0
    code, output = run(import_app, file, "--learner", "m", "--task", spec["task"], "--store", store)
    assert code == 0
    assert "12 learned, 0 known already, 0 refused" in output
    with service(None, store, None) as client:
        assert client.learner("m").progress == client.learner("l").progress
        if spec["task"] == "subset-ranking":
            assert client.weights("m").features == client.weights("l").features


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("what", ["events", "training"])
def test_an_exported_log_has_its_renames(tmp_path, ending, what):
    store = f"sqlite:{tmp_path}/store.db"
    with service(None, store, None) as client:
        client.create("l", {"task": "label-ranking"})
        for i in range(9):
            truth = [{"label": "a"}, {"labels": ["a", "b"]}, {"relevance": {"a": 2, "b": 1, "c": 0.5}}][i % 3]
            client.feedback("l", {"features": {f"w{i % 4}": 1}, **truth})
        client.rename_label("l", "a", "b")
        client.feedback("l", {"features": ["late"], "label": "a"})
        client.rename_label("l", "b", "z")
    file = tmp_path / f"log.{ending}"
    assert run(export_app, file, "--learner", "l", "--what", what, "--store", store)[0] == 0
    code, output = run(import_app, file, "--learner", "m", "--task", "label-ranking", "--store", store)
    assert code == 0
    assert "10 learned, 0 known already, 0 refused" in output
    with service(None, store, None) as client:
        assert client.learner("m").labels == ["z", "c"]
        assert client.learner("m").progress == client.learner("l").progress
        assert client.weights("m", "z").features == client.weights("l", "z").features


def odd(spec):
    return (
        {"reward": 1.0, "served": {"id": "p", "probability": 1.0}}
        if spec["task"] == "choice"
        else {"clicks": ["p"]}
    )


@pytest.mark.parametrize(
    "text", ["plain", '{"looks": "like JSON"}', '"quoted"', {"subject": "s", "body": "b"}]
)
def test_a_text_is_the_same_after_a_table(tmp_path, text):
    store, log = f"sqlite:{tmp_path}/store.db", tmp_path / "log.parquet"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text, "label": "x"}))
    run(import_app, tmp_path / "a.jsonl", "--learner", "l", "--task", "multiclass", "--store", store)
    for what in ("training", "events"):
        assert run(export_app, log, "--learner", "l", "--what", what, "--store", store)[0] == 0
        (line,) = READERS["parquet"](Source(log))
        assert line.body == {"text": text, "label": "x"}


def test_a_file_that_cannot_be_read_makes_no_learner(tmp_path):
    store = f"sqlite:{tmp_path}/store.db"
    (tmp_path / "a.csv").write_text("w,label\n1,x\n")
    arguments = ["--learner", "l", "--task", "multiclass", "--truth", "no", "--store", store]
    code, output = run(import_app, tmp_path / "a.csv", *arguments)
    assert code == 1
    assert "name another with --truth" in output
    with service(None, store, None) as client:
        assert client.learners().learners == []


def test_a_refused_spec_is_said_with_its_field(tmp_path):
    (tmp_path / "a.csv").write_text("w,label\n1,x\n")
    arguments = ["--learner", "l", "--task", "multiclas", "--store", f"sqlite:{tmp_path}/s.db"]
    assert "422 /task: must be one of" in run(import_app, tmp_path / "a.csv", *arguments)[1]


@pytest.mark.parametrize(
    ("codec", "mark", "said"),
    [
        ("utf-8", b"", ""),
        ("utf-8", b"\xef\xbb\xbf", "mark of UTF-8"),
        ("utf-16-le", b"\xff\xfe", "mark of UTF-16"),
        ("utf-16-be", b"\xfe\xff", "mark of UTF-16"),
        ("utf-16-le", b"", "UTF-16-LE, without"),
        ("cp1252", b"", "cp1252"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_encoding_of_a_file_is_recognized_and_said(tmp_path, codec, mark, said, packed):
    data = mark + "größe,label\n1,x €\n2,Straße\n".encode(codec)
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    source = Source(path)
    lines = list(READERS["csv"](source))
    assert [line.body["features"] for line in lines] == [{"größe": 1.0}, {"größe": 2.0}]
    assert [line.body["label"] for line in lines] == ["x €", "Straße"]
    assert said in "".join(source.notes)
    assert bool(source.notes) == bool(said)


def test_a_letter_at_the_end_of_a_long_file_shows_that_it_is_not_utf8(tmp_path):
    text = "w,label\n" + "1,x\n" * 50_000 + "2,größe\n"
    assert lines_of(tmp_path, "a.csv", text.encode("cp1252"))[-1].body["label"] == "größe"


def test_blanks_around_labels_and_names_are_dropped_unless_they_are_to_be_kept(tmp_path):
    text = " w , label\n1, Billing \n"
    (line,) = lines_of(tmp_path, "a.csv", text)
    assert line.body == {"features": {"w": 1.0}, "label": "Billing"}
    (line,) = lines_of(tmp_path, "a.csv", text.replace(" label", "label"), Columns(exact=True))
    assert line.body == {"features": {" w ": 1.0}, "label": " Billing "}


def test_text_and_columns_go_together_and_an_array_is_a_vector(tmp_path):
    row = {"subject": "a b", "plan": "gold", "embedding": [0.5, 1], "tags": ["x", "y"], "label": "l"}
    (line,) = lines_of(
        tmp_path,
        "a.jsonl",
        json.dumps(row),
        Columns(text=("subject",), features=("plan", "embedding", "tags")),
    )
    assert line.body == {
        "text": {"subject": "a b"},
        "features": {"plan=gold": 1.0, "tags=x": 1.0, "tags=y": 1.0},
        "vector": [0.5, 1.0],
        "label": "l",
    }


def test_missing_columns_are_named_together_with_what_may_be_meant(tmp_path):
    with pytest.raises(FormatError) as caught:
        lines_of(tmp_path, "a.csv", "Subject,Body,Queue\na,b,c\n", Columns("quue", text=("subjct", "body")))
    assert "'subjct' (did you mean 'Subject'?), 'quue' (did you mean 'Queue'?)" in str(caught.value)


def test_rows_without_a_label_are_counted_and_the_guesses_beside_the_loss_are_those_by_hand(tmp_path):
    store = f"sqlite:{tmp_path}/store.db"
    (tmp_path / "a.csv").write_text("w,label\n1,a\n1,a\n1,b\n1,\n1,a\n")
    code, output = run(
        import_app, tmp_path / "a.csv", "--learner", "l", "--task", "multiclass", "--store", store
    )
    assert code == 0
    assert "4 learned, 0 known already, 0 refused\n1 without a label" in output
    # Commonest: none, a, a, a. Last: none, a, a, b.
    assert '"always the commonest" 0.5000, "as last time" 0.7500' in output
