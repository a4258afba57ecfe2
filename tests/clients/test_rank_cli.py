"""`feedrank rank` on LETOR files: trained in one pass, measured, and what goes wrong told in one line."""

import gzip
import json
import random

import pytest
from typer.testing import CliRunner

from feedrank.clients.rank_cli import app

RUN = CliRunner()


@pytest.fixture
def letor(tmp_path):
    """Lists whose first feature is the grade and whose second is noise; one has nothing relevant."""
    rng = random.Random(1)
    lines = []
    for qid in range(60):
        for _ in range(8):
            grade = 0 if qid == 7 else rng.randint(0, 2)
            lines.append(f"{grade} qid:{qid} 1:{grade + rng.random() / 2:.3f} 2:{rng.random():.3f}")
    path = tmp_path / "letor.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def run(*arguments):
    return RUN.invoke(app, [str(argument) for argument in arguments])


def test_train_then_evaluate(letor, tmp_path):
    store = f"sqlite:{tmp_path / 'rank.db'}"
    trained = run("train", letor, "--store", store, "--format", "json")
    assert trained.exit_code == 0, trained.output
    learned = json.loads(trained.stdout)
    assert (learned["lists"], learned["judged"], learned["version"]) == (60, 59, 60)
    measured = json.loads(run("evaluate", letor, "--store", store, "--format", "json").stdout)
    assert measured["version"] == 60  # evaluating changes nothing
    assert measured["over_judged"]["NDCG@10"] > learned["over_judged"]["NDCG@10"] > 0.9
    assert measured["all"]["NDCG@10"] == pytest.approx(measured["over_judged"]["NDCG@10"] * 59 / 60)
    table = run("evaluate", letor, "--store", store, "--cutoff", 3)
    assert "NDCG@3" in table.stdout
    assert "all 60 lists" in table.stdout


def test_training_goes_on_with_the_learner_that_is_there(letor, tmp_path):
    store = f"sqlite:{tmp_path / 'rank.db'}"
    options = ("--store", store, "--spec", '{"algorithm": "slam"}', "--format", "json")
    assert json.loads(run("train", letor, *options).stdout)["version"] == 60
    assert json.loads(run("train", letor, letor, *options).stdout)["version"] == 180


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "LETOR", "--store", "STORE"), "no learner"),
        (("train", "LETOR", "--store", "STORE", "--spec", "{"), "not JSON"),
        (("train", "LETOR", "--store", "STORE", "--spec", "[]"), "no JSON object"),
        (("train", "LETOR", "--store", "STORE", "--spec", '{"algorithm": "lambdamart"}'), "must be one of"),
        (("train", "BROKEN", "--store", "STORE"), "line 2"),
        (("train", "no/such/file", "--store", "STORE"), "does not exist"),
        (("train", "LETOR", "--store", "STORE", "--server", "http://x"), "not both"),
        (("evaluate", "LETOR", "--store", "STORE", "--format", "xml"), "text or json"),
    ],
)
def test_wrong_use_is_told(letor, tmp_path, arguments, message):
    broken = tmp_path / "broken.txt"
    broken.write_text("1 qid:1 1:1\nrubbish\n")
    places = {"LETOR": letor, "BROKEN": broken, "STORE": f"sqlite:{tmp_path / 'rank.db'}"}
    done = run(*(places.get(argument, argument) for argument in arguments))
    assert done.exit_code != 0
    assert not done.exception or isinstance(done.exception, SystemExit)
    assert message in " ".join(done.output.replace("│", " ").split())
