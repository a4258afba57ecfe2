"""The image under the files that ship with it: Compose and the manifest of Kubernetes, with their own words and limits."""

import copy
import json
import secrets

import httpx
import pytest
import yaml
from containers import IMAGE, ROOT
from ports import free_port
from waiting import until

from feedrank.service.http.keyring import add_key

pytestmark = [pytest.mark.artefact, pytest.mark.xdist_group("artefacts")]

SPEC = {"task": "multiclass"}
EVENT = {"features": ["a"], "label": "x", "feedback_id": "1"}


def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def options(service, secret):
    """What Compose would hand to the engine, but for networks and ports."""
    words = [f"--cap-drop={name}" for name in service["cap_drop"]]
    words += [f"--cap-add={name}" for name in service.get("cap_add", [])]
    words += [f"--security-opt={name}" for name in service["security_opt"]]
    words += [f"--tmpfs={path}" for path in service.get("tmpfs", [])]
    words += [f"--env={name}={value}" for name, value in service.get("environment", {}).items()]
    words += ["--read-only"] if service.get("read_only") else []
    words += [f"--volume={secret}:/run/secrets/redis-password:ro"] if service.get("secrets") else []
    for volume in service.get("volumes", []):
        source, *rest = volume.split(":")
        place = (ROOT / source).resolve() if source.startswith(".") else f"{source}-{secrets.token_hex(4)}"
        words.append(f"--volume={':'.join([str(place), *rest])}")
    return words


def learns(client):
    """Make a learner and teach it once."""
    assert client.put("/v1/learners/one", json=SPEC).status_code in (200, 201)
    reply = client.post("/v1/learners/one/feedback", json=EVENT)
    assert (reply.status_code, reply.json()["version"]) == (200, 1), reply.text


def calls(port, key):
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=600,
        trust_env=False,
    )


def is_ready(client):
    return client.get("/readyz").status_code == 200


def test_compose_serves_keeps_and_stops_as_written(engine, tmp_path):
    services, port = compose(), free_port()
    password = tmp_path / "redis-password"
    password.write_text(secrets.token_hex(32))
    password.chmod(0o644)
    redis = services["redis"]
    with engine.container(
        *options(redis, password), f"localhost/{redis['image']}", *redis["command"]
    ) as store:
        words = options(services["service"], password)
        words += [f"--add-host=redis:{engine.address(store)}", f"--publish=127.0.0.1:{port}:8000"]
        with engine.container(*words, IMAGE) as service:
            key = until(lambda: engine.run("exec", service, "cat", "/data/first-key", check=False).strip())
            with calls(port, key) as client:
                until(lambda: is_ready(client), not_yet=httpx.HTTPError)
                learns(client)
            health = json.loads(engine.run("image", "inspect", IMAGE))[0]["Healthcheck"]["Test"][1:]
            engine.run("exec", service, *health)
            engine.run("stop", "--time", "600", service)
            state = json.loads(engine.run("inspect", service))[0]["State"]
            assert state["ExitCode"] == 0, engine.run("logs", service)
            engine.run("start", service)
            with calls(port, key) as client:
                until(lambda: is_ready(client), not_yet=httpx.HTTPError)
                assert client.get("/v1/learners/one").json()["version"] == 1


def manifest():
    return list(yaml.safe_load_all((ROOT / "docker" / "kubernetes" / "feedrank.yaml").read_text()))


def pod(kind, name, port, aliases, *more):
    """A pod as the controller of that kind makes it, reached at a port of loopback."""
    template = next(copy.deepcopy(one) for one in manifest() if one["kind"] == kind)["spec"]["template"]
    spec = template["spec"]
    container = spec["containers"][0]
    container["ports"][0].update(hostPort=port, hostIP="127.0.0.1")
    container["image"] = IMAGE if kind == "StatefulSet" else f"localhost/{container['image']}"
    spec["hostAliases"] = [{"ip": address, "hostnames": [host]} for host, address in aliases.items()]
    spec["containers"] += more
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **template["metadata"]},
        "spec": spec,
    }


def play(engine, request, folder, *documents):
    """`podman kube play`, taken back at the end of the test."""
    file = folder / f"{documents[-1]['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    request.addfinalizer(lambda: engine.run("kube", "down", str(file), check=False))
    engine.run("kube", "play", str(file))


@pytest.fixture
def replica(engine, request, tmp_path):
    """A pod of the StatefulSet with a Redis in it; its port, its key and its name."""
    password, port = secrets.token_hex(16), free_port()
    folder = tmp_path / "secrets"
    folder.mkdir()
    keys = folder / "keys"
    key = add_key(keys, ["admin"])
    (folder / "redis-password").write_text(password)
    keys.chmod(0o644)
    redis = {
        "name": "redis",
        "image": f"localhost/{compose()['redis']['image']}",
        "command": ["redis-server", "--requirepass", password, "--dir", "/tmp", "--appendonly", "yes"],
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
    }
    name = f"feedrank-{secrets.token_hex(4)}"
    made = pod("StatefulSet", name, port, {"redis": "127.0.0.1"}, redis)
    # The files of the secret: as a volume of its own kind, Debian's podman hands them on still encoded.
    volumes = made["spec"]["volumes"]
    assert volumes[0]["secret"]["secretName"] == "feedrank"
    volumes[0] = {"name": "secrets", "hostPath": {"path": str(folder), "type": "Directory"}}
    play(engine, request, tmp_path, made)
    return port, key, name


def test_the_manifest_starts_learns_and_stops(engine, replica):
    port, key, name = replica
    with calls(port, key) as client:
        until(
            lambda: is_ready(client),
            engine.run("logs", f"{name}-feedrank", check=False),
            not_yet=httpx.HTTPError,
        )
        learns(client)
        assert client.get("/v1/learners", headers={"Authorization": ""}).status_code == 401
    state = json.loads(engine.run("inspect", f"{name}-feedrank"))[0]
    assert state["HostConfig"]["ReadonlyRootfs"]
    assert state["HostConfig"]["Memory"] == 3 * 2**30
    engine.run("stop", "--time", "600", f"{name}-feedrank")
    assert json.loads(engine.run("inspect", f"{name}-feedrank"))[0]["State"]["ExitCode"] == 0
    assert "Traceback" not in engine.run("logs", f"{name}-feedrank")


def test_the_proxy_of_the_manifest_sends_calls_to_the_replicas(engine, request, replica, tmp_path):
    _, key, name = replica
    outer = free_port()
    config = next(one for one in manifest() if one["kind"] == "ConfigMap")
    # The name server of the cluster runs beside nginx, and names the pod of the replica.
    address = engine.address(f"{name}-feedrank") or engine.address(
        json.loads(engine.run("pod", "inspect", name))["InfraContainerID"]
    )
    script = (
        (ROOT / "tests/parts/name_server.py")
        .read_text()
        .replace("from ports import free_port", "free_port = None")
    )
    hosts = {f"feedrank-{i}.feedrank.default.svc.cluster.local": address for i in range(3)}
    script += f"\nimport time\nNameServer({hosts!r}, port=53)\ntime.sleep(1e6)\n"
    dns = {
        "name": "dns",
        "image": f"localhost/{compose()['redis']['image']}",
        "command": ["python3", "-c", script],
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
    }
    aliases = {"kube-dns.kube-system.svc.cluster.local": "127.0.0.1"}
    proxy = f"{name}-proxy"
    play(engine, request, tmp_path, config, pod("Deployment", proxy, outer, aliases, dns))
    with calls(outer, key) as client:
        until(lambda: is_ready(client), lambda: engine.run("logs", f"{proxy}-nginx"), not_yet=httpx.HTTPError)
        learns(client)
