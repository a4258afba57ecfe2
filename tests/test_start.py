"""`feedrank start` and `feedrank predict`: tables as other programs write them, from the file to the first prediction."""

import csv
import gzip
import json
import random
import re
import shlex

import pytest
from typer.testing import CliRunner

from feedrank import cli
from feedrank.clients.history.tables import FormatError
from feedrank.table_roles import recognize

WORDS = {
    "Karten": ["karte", "gesperrt", "überweisung", "pin", "größe"],
    "Überweisungen": ["geld", "gesendet", "konto", "empfänger", "bank"],
}


def tickets(count=120, unlabelled=5):
    chance = random.Random(3)
    rows = []
    for i in range(count):
        queue = chance.choice(list(WORDS))
        subject = " ".join(
            [*chance.sample(WORDS[queue], 2), *chance.sample(["bitte", "die", "ist", "warum"], 2)]
        )
        label = queue if i < count - unlabelled else ""
        created = f"2026-11-{1 + i % 28:02} {i % 24:02}:15"
        rows.append([f"T{i}", subject, chance.choice(["gold", "basic"]), str(18 + i % 50), created, label])
    return ["Id", "Subject", "Plan", "Age", "Created", "Queue"], rows


def as_text(separator=",", queue=str):
    header, rows = tickets()
    lines = [separator.join([*row[:5], queue(row[5])]) for row in rows]
    return "\r\n".join([separator.join(header), *lines]) + "\r\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder; gives its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(command, *arguments):
        import importlib

        module, app, *_ = cli.COMMANDS[command]
        result = CliRunner().invoke(
            getattr(importlib.import_module(module), app), [str(one) for one in arguments]
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    return call


FILES = {
    "plain.csv": as_text().encode(),
    "marked.csv": as_text().encode("utf-8-sig"),
    "excel-unicode.tsv": as_text("\t").encode("utf-16"),
    "big-endian.csv": as_text().encode("utf-16-be"),
    "excel-western.csv": as_text(";").encode("cp1252"),
    "excel-sep.csv": ("sep=;\r\n" + as_text(";")).encode(),
    "pipes.csv": as_text("|").encode(),
    "packed.csv.gz": gzip.compress(as_text().encode()),
    "blanks.csv": as_text(queue=lambda label: f" {label} " if label else label).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_one_command_from_a_file_to_a_first_right_prediction(name, run, tmp_path):
    (tmp_path / name).write_bytes(FILES[name])
    code, output = run("start", name)
    assert code == 0, output
    roles = dict(reversed(line.split()) for line in re.findall(r"^  (?:\w+) +\w+$", output, re.M))
    assert roles == {
        "Id": "id", "Subject": "text", "Plan": "category", "Age": "number", "Created": "time", "Queue": "truth",
    }  # fmt: skip
    assert "115 learned, 0 known already, 0 refused" in output
    assert "5 without a label" in output
    assert 'beside it: "always the commonest"' in output
    (curl,) = re.findall(r"^  (curl .*)$", output, re.M)
    row = json.loads(shlex.split(curl)[-1])["row"]
    assert set(row) == {"Subject", "Plan", "Age", "Created"}
    (line,) = re.findall(r"^  (with Client.*)$", output, re.M)
    assert "Embedded" in line
    # The printed line, with words of one queue, says that queue: umlauts and all.
    learner = re.search(r"learners/([^/]+)/predict", curl)[1]
    (tmp_path / "next.csv").write_text("subject\nkarte gesperrt größe\ngeld empfänger\n")
    code, output = run("predict", learner, "next.csv", "-o", "out.csv", "--store", "sqlite:feedrank.db")
    assert code == 0, output
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == ["Karten", "Überweisungen"]


def test_what_was_recognized_is_said(run, tmp_path):
    for name, said in (("excel-western.csv", "cp1252"), ("marked.csv", "byte order mark of UTF-8")):
        (tmp_path / name).write_bytes(FILES[name])
        assert said in run("start", name)[1]


def test_blanks_that_are_dropped_are_said_and_kept_by_exact(run, tmp_path):
    (tmp_path / "blanks.csv").write_bytes(FILES["blanks.csv"].replace(b"Plan,", b" Plan ,", 1))
    code, output = run("start", "blanks.csv")
    assert code == 0, output
    assert "blanks.csv: blanks around labels (2) and columns (1) are dropped; --exact keeps them" in output
    code, output = run("start", "blanks.csv", "--exact", "--learner", "exact")
    assert code == 0, output
    assert "blanks" not in output.replace("blanks.csv", "")


def test_a_second_run_learns_nothing_twice_and_other_columns_need_another_name(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(FILES["plain.csv"])
    assert run("start", "t.csv")[0] == 0
    assert "0 learned, 115 known already" in run("start", "t.csv")[1]
    code, output = run("start", "t.csv", "--role", "Plan=text")
    assert code == 1
    assert "name a new one with --learner" in output
    assert run("start", "t.csv", "--role", "Plan=text", "--learner", "other")[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "x,y z\n1,2\n", "which column is the truth"),
        ("a.csv", "label\na\n", "no column to learn from"),
        (
            "a.csv",
            "w,label\n" + "".join(f"{i},{i * 7919 % 1000}\n" for i in range(100)),
            "holds numbers, not labels",
        ),
        ("a.vw", "1 |a x\n", "`feedrank import`"),
        ("a.csv", "From bob@example.org Mon Jan  1 00:00:00 2026\nSubject: x\n\n", "feedrank mail"),
        ("a.xlsx", "PK", "does not tell its format"),
    ],
)
def test_what_cannot_be_started_is_one_sentence(name, content, said, run, tmp_path):
    (tmp_path / name).write_text(content)
    code, output = run("start", name)
    assert code == 1
    assert said in output
    assert output.count("\n") == 1
    assert not (tmp_path / "feedrank.db").exists()


def test_a_wrong_truth_gets_the_nearest_name(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(FILES["plain.csv"])
    code, output = run("start", "t.csv", "--truth", "Quueue")
    assert code == 1
    assert "did you mean 'Queue'?" in output


def test_jsonl_rows_predicted_into_every_format(run, tmp_path):
    pytest.importorskip("pyarrow")
    header, rows = tickets()
    lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    assert run("start", "t.jsonl")[0] == 0
    for name in ("o.csv", "o.tsv", "o.jsonl", "o.parquet"):
        code, output = run("predict", "t", "t.jsonl", "-o", name, "--store", "sqlite:feedrank.db")
        assert (code, "120 rows" in output) == (0, True), output
    first = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert first["prediction"] == first["Queue"]
    assert first["probability"] > 0.5
    assert list(first)[:6] == header


def test_a_file_without_a_label_is_predicted_and_a_missing_column_is_named(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(FILES["plain.csv"])
    run("start", "t.csv")
    (tmp_path / "n.csv").write_text("Subjekt\nkarte\n")
    code, output = run("predict", "t", "n.csv", "-o", "o.csv", "--store", "sqlite:feedrank.db")
    assert code == 1
    assert "'Subject' (did you mean 'Subjekt'?)" in output


def rows_of(**columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def test_roles_of_odd_columns():
    n = 60
    table = recognize(
        rows_of(
            embedding=["[0.1, 0.2, 3]"] * n,
            second=[[1.0, 2.0]] * n,
            ragged=[[1.0] * (1 + i % 2) for i in range(n)],
            tags=[["a", "b"]] * n,
            email=[f"user{i}@example.org" for i in range(n)],
            day=["11/12/2026"] * n,
            empty=[""] * n,
            code=["007"] * n,
            __class__=["x"] * n,
            label=["a", "b"] * (n // 2),
        )
    )
    assert table.input == {
        "embedding": "vector", "second": "ignore", "ragged": "ignore", "tags": "category", "email": "id",
        "day": "category", "empty": "ignore", "code": "number", "__class__": "category", "label": "truth",
    }  # fmt: skip
    assert table.task == "multiclass"
    assert len(table.notes) == 4


def test_a_set_of_labels_and_a_truth_that_is_named():
    rows = rows_of(text=["a b c d"] * 4, topics=["x|y", "y", "x", ""], label=[1, 2, 3, 4])
    assert recognize(rows, "topics", "|").task == "multilabel"
    with pytest.raises(FormatError, match="no column 'topcs'"):
        recognize(rows, "topcs")
