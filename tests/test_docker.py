"""The image without an engine: its files hold together, and its steps do what they say."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis
import yaml
from ports import free_port
from waiting import until

from feedrank.service.http.keyring import Keyring, read_keys

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def instructions():
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]


def test_dockerfile_passes_the_linter():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKER / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_image_is_multi_stage_without_root_and_with_a_healthcheck():
    names = [name for name, _ in instructions()]
    last = len(names) - 1 - names[::-1].index("FROM")
    final = dict(instructions()[last:])
    assert names.count("FROM") == 2
    assert final["USER"].split(":")[0].isdigit()
    assert int(final["USER"].split(":")[0]) > 0
    assert "health.py" in final["HEALTHCHECK"]
    assert "pip" not in " ".join(value for _, value in instructions()[last:])


def test_everything_copied_is_there_and_not_ignored():
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    for name, value in instructions():
        if name == "COPY" and "--from" not in value:
            for source in value.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignore


def test_compose_is_durable_healthy_and_closed(compose):
    services = compose["services"]
    assert "redis:/data" in services["redis"]["volumes"]
    assert "healthcheck" in services["redis"]
    assert services["service"]["depends_on"]["redis"]["condition"] == "service_healthy"
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (ROOT / source).exists()


def test_redis_has_a_password_and_a_network_without_a_way_out(compose):
    services = compose["services"]
    assert compose["networks"]["inside"] == {"internal": True}
    assert services["redis"]["networks"] == ["inside"]
    assert "ports" not in services["redis"]
    for name in ("redis", "service", "replica-a", "replica-b"):
        assert services[name]["secrets"] == ["redis-password"]
    for name in ("service", "replica-a", "replica-b"):
        assert services[name]["environment"]["FEEDRANK_STORE_PASSWORD_FILE"] == "/run/secrets/redis-password"
        assert "@" not in services[name]["environment"]["FEEDRANK_STORE"]
    assert compose["secrets"]["redis-password"] == {"file": "docker/secrets/redis-password"}
    assert "docker/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_image_is_pinned_to_a_version(compose):
    images = [service["image"] for service in compose["services"].values() if "build" not in service]
    images += [value.partition("=")[2] for name, value in instructions() if name == "ARG"]
    assert len(images) == 4
    for image in images:
        assert re.search(r":\d+\.\d+\.\d+[\w.-]*$|@sha256:", image), image


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")
def test_the_start_of_redis_asks_for_the_password_and_syncs_every_write(tmp_path):
    (tmp_path / "password").write_text("s3cret\n")
    entrypoint = tmp_path / "docker-entrypoint.sh"
    entrypoint.write_text('#!/bin/sh\nexec "$@"\n')
    entrypoint.chmod(0o755)
    socket_path = tmp_path / "redis.sock"
    environ = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PASSWORD_FILE": str(tmp_path / "password"),
        "CONFIG": str(tmp_path / "password.conf"),
    }
    command = ["sh", DOCKER / "redis.sh", "--port", "0", "--unixsocket", socket_path, "--dir", tmp_path]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert any(
            "Ready to accept connections" in line or "ready to accept" in line for line in server.stdout
        )
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(unix_socket_path=str(socket_path)).ping()
        client = redis.Redis(unix_socket_path=str(socket_path), password="s3cret", decode_responses=True)
        wanted = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
        client.close()
        assert "s3cret" not in Path(f"/proc/{server.pid}/cmdline").read_text()
    finally:
        server.terminate()
        server.communicate()


def test_two_replicas_behind_a_proxy_are_a_profile(compose):
    services = compose["services"]
    members = {name for name, service in services.items() if service.get("profiles") == ["replicas"]}
    assert members == {"replica-a", "replica-b", "proxy"}
    config = (DOCKER / "nginx.conf").read_text()
    assert all(f" {name}:8000;" in config for name in ("replica-a", "replica-b"))
    assert "proxy_request_buffering off" in config
    assert config.count("{") == config.count("}")


@pytest.fixture(scope="module")
def program():
    """The words that call Compose, and its version."""
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]):
            done = subprocess.run([*words, "version", "--short"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return words, done.stdout.strip()
    pytest.skip("no Compose: install the plugin of `docker compose`, or docker-compose")


@pytest.mark.parametrize("profile", [None, "replicas"])
def test_compose_itself_takes_the_file(compose, program, profile):
    words, version = program
    old = version.startswith("1.")
    # The Compose Specification has `name`, by which the volumes are found again wherever the file lies; the format
    # before it, which version 1 stayed with, has not.
    source = {key: value for key, value in compose.items() if not (old and key == "name")}
    options = ["--project-directory", ROOT, "--file", "-", *(["--profile", profile] if profile else [])]
    done = subprocess.run(
        [*words, *options, "config"],
        input=yaml.safe_dump(source),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    composed = yaml.safe_load(done.stdout)
    services = compose["services"]
    wanted = {name for name in services if old or services[name].get("profiles", [profile]) == [profile]}
    assert set(composed["services"]) == wanted
    assert set(composed["volumes"]) == set(compose["volumes"])
    assert composed["services"]["service"]["build"] == {
        "context": str(ROOT),
        "dockerfile": "docker/Dockerfile",
    }


def test_the_steps_of_the_image_build_and_serve(tmp_path, quick_cc):
    target, data = tmp_path / "env", tmp_path / "data"
    data.mkdir()
    here = Path(sys.executable).parent
    # The dependencies are those of this environment, so that the test needs no network for them.
    environ = {**os.environ, "LOCK": "", "PATH": f"{here}:{os.environ['PATH']}"}
    environ["CC"] = quick_cc
    environ.pop("PYTHONPATH", None)  # a checkout on the path would count as installed
    done = subprocess.run(
        ["sh", DOCKER / "build.sh", ROOT, target], capture_output=True, text=True, env=environ, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (target / "bin" / "pip3").exists()
    packages = next(here.parent.glob("lib/python*/site-packages"))
    environ = {
        **os.environ,
        "PATH": f"{target / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(packages),
        "FEEDRANK_HOST": "0.0.0.0",
        "FEEDRANK_PORT": str(free_port()),
        "FEEDRANK_STORE": f"sqlite:{data / 'feedrank.db'}",
        "FEEDRANK_KEYS_FILE": str(data / "keys"),
    }
    health = [target / "bin" / "python", DOCKER / "health.py"]
    assert subprocess.run(health, env=environ, capture_output=True, check=False).returncode == 1
    server = subprocess.Popen(
        ["sh", DOCKER / "start.sh"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        until(
            lambda: subprocess.run(health, env=environ, capture_output=True, check=False).returncode == 0,
            "never healthy",
            pause=0.2,
        )
        assert (data / "first-key").read_text().startswith("fr_")
        assert (data / "first-key").stat().st_mode & 0o077 == 0
    finally:
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate()
    assert server.returncode == 0, errors


def first_start(folder, feedrank, count=1):
    """Run start.sh so often at once, with `feedrank` a shell script; the exit statuses."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "feedrank").write_text(f"#!/bin/sh\n{feedrank}\n")
    (folder / "bin" / "feedrank").chmod(0o755)
    environ = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "FEEDRANK_KEYS_FILE": str(folder / "data" / "keys"),
    }
    (folder / "data").mkdir(exist_ok=True)
    started = [subprocess.Popen(["sh", DOCKER / "start.sh"], env=environ) for _ in range(count)]
    return [process.wait() for process in started]


KEYS = f'[ "$1" = serve ] || exec {Path(sys.executable).with_name("feedrank")} "$@"'


def test_replicas_that_start_at_once_make_one_key_and_tell_it(tmp_path):
    assert first_start(tmp_path, KEYS, count=3) == [0, 0, 0]
    keys = tmp_path / "data" / "keys"
    (key,) = read_keys(keys)
    assert Keyring(keys).find((tmp_path / "data" / "first-key").read_text().strip()) == key
    assert sorted(file.name for file in keys.parent.iterdir()) == ["first-key", "keys"]


def test_a_first_key_that_cannot_be_written_is_made_at_the_next_start(tmp_path):
    full = 'while [ "$1" != --file ]; do shift; done; : >"$2"; echo "no space" >&2; exit 1'
    assert first_start(tmp_path, full) == [1]
    assert list((tmp_path / "data").iterdir()) == []
    assert first_start(tmp_path, KEYS) == [0]
    assert len(read_keys(tmp_path / "data" / "keys")) == 1
