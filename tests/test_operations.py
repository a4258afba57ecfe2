"""The operations kit: dashboards, alerts and the manifest are sound, and speak of metrics and calls that exist."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml
from nginx_proxy import SHIPPED, replaced

from feedrank.embedded import Embedded
from feedrank.service.contract.settings import Settings, variable
from feedrank.service.http.app import create_app

FOLDER = Path(__file__).parents[1] / "docker"
OPERATING = (FOLDER.parent / "docs" / "operating.md").read_text()
METRIC = re.compile(r"\bfeedrank_[a-z_]+")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The names of all metrics that a server shows, after one request."""
    store = f"sqlite:{tmp_path_factory.mktemp('kit') / 'kit.db'}"
    with httpx.Client(base_url="http://localhost", transport=Embedded(store)) as client:
        client.get("/livez")
        text = client.get("/metrics").text
    return {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line and line[0] != "#"}


def test_every_alert_watches_metrics_that_exist_and_says_what_to_do(exported):
    groups = yaml.safe_load((FOLDER / "monitoring" / "alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 7
    for rule in rules:
        assert set(METRIC.findall(rule["expr"])) <= exported, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        for sections in re.findall(
            r"docs/operating.md, ([A-Z][^.;]*?)(?:, for|[.;])", rule["annotations"]["description"]
        ):
            for section in sections.split(" and "):
                assert re.search(rf"^#+ {section}$", OPERATING, re.MULTILINE), (rule["alert"], section)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: `apt-get install prometheus`")
def test_prometheus_itself_takes_the_alerts_and_the_metrics(tmp_path):
    command = ["promtool", "check", "rules", FOLDER / "monitoring" / "alerts.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with httpx.Client(base_url="http://localhost", transport=Embedded(f"sqlite:{tmp_path}/m.db")) as client:
        client.put("/v1/learners/a", json={"task": "multiclass"})
        shown = client.get("/metrics").text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=shown, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr  # 3: names that could be better, judged below
    assert "error" not in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path):
    """On a machine that has nothing in /opt, with another program in its place."""
    unit = (FOLDER / "systemd" / "feedrank.service").read_text()
    program, command = re.search(r"^ExecStart=(\S+) (.*)$", unit, re.MULTILINE).groups()
    assert (program, command) == ("/opt/feedrank/bin/feedrank", "serve")
    place = tmp_path / "feedrank.service"
    place.write_text(unit.replace(program, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", place], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    known = {variable(name) for name in Settings.__dataclass_fields__}
    assert set(re.findall(r"^Environment=(\w+)=", unit, re.MULTILINE)) <= known
    limit = ["systemd-analyze", "security", "--offline=true", "--threshold=25", place]
    done = subprocess.run(limit, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_panel_draws_metrics_that_exist(exported):
    board = json.loads((FOLDER / "monitoring" / "grafana.json").read_text())
    drawn = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            drawn |= set(METRIC.findall(target["expr"]))
        assert panel["title"]
        assert panel["description"]
    assert drawn <= exported
    assert len({(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]}) == len(board["panels"])


def manifest():
    return list(yaml.safe_load_all((FOLDER / "kubernetes" / "feedrank.yaml").read_text()))


def test_the_manifest_fits_the_schemas_of_kubernetes():
    validate = pytest.importorskip("kubernetes_validate")
    for document in manifest():
        validate.validate(document, "1.31", strict=True)


def test_the_manifest_asks_for_settings_and_addresses_that_exist():
    known = {variable(name) for name in Settings.__dataclass_fields__}
    app = create_app(Settings(store="sqlite:unused.db"))
    paths = set(app.openapi()["paths"])
    for document in manifest():
        template = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in template.get("containers", []):
            assert {entry["name"] for entry in container.get("env", [])} <= known
            assert container["securityContext"]["readOnlyRootFilesystem"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if "httpGet" in container.get(probe, {}):
                    assert container[probe]["httpGet"]["path"] in paths


def test_the_proxy_of_the_manifest_is_ours_with_its_replicas():
    config = next(document for document in manifest() if document["kind"] == "ConfigMap")["data"][
        "nginx.conf"
    ]
    replicas = [f"feedrank-{i}.feedrank.default.svc.cluster.local:8000" for i in range(3)]
    resolver = "resolver kube-dns.kube-system.svc.cluster.local valid=2s ipv6=off;"
    assert config == replaced(SHIPPED.read_text(), replicas, [8101, 8102, 8103], resolver)


def test_passwords_are_files_and_no_upgrade_mixes_releases():
    for document in manifest():
        for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            assert not any("valueFrom" in entry for entry in container.get("env", []))
    replicas = next(document for document in manifest() if document["kind"] == "StatefulSet")["spec"]
    assert replicas["updateStrategy"] == {"type": "OnDelete"}
    kinds = [(document["kind"], document["metadata"]["name"]) for document in manifest()]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        assert {(kind, "feedrank"), (kind, "feedrank-proxy")} <= set(kinds)
