"""Settings: read from the environment, refused in one line when wrong."""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from feedrank.service.contract.settings import Settings, SettingsError, is_loopback, variable


def test_every_field_is_a_variable_with_a_help_text():
    for item in fields(Settings):
        assert variable(item.name).startswith("FEEDRANK_")
        assert item.metadata["help"]


def test_environment_is_read_and_overrides_win():
    environ = {
        "FEEDRANK_PORT": "9000",
        "FEEDRANK_STORE": "redis://localhost:6379/3",
        "FEEDRANK_MAX_BODY": "2m",
    }
    settings = Settings.from_env(environ, port=7000, host=None)
    assert (settings.port, settings.store, settings.max_body) == (7000, "redis://localhost:6379/3", 2 * 2**20)
    assert settings.host == "127.0.0.1"


def test_foreign_variables_are_left_alone():
    assert Settings.from_env({"FEEDRANK_URL": "http://elsewhere", "HOME": "/"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "eighty", "whole number"),
        ("PORT", "70000", "at most 65535"),
        ("PORT", "", "whole number"),
        ("REQUEST_TIMEOUT", "soon", "must be a number"),
        ("REQUEST_TIMEOUT", "nan", "at least"),
        ("REQUEST_TIMEOUT", "0", "at least"),
        ("MAX_BODY", "-1", "at least"),
        ("STORE", "mysql://x", "sqlite:PATH, redis://HOST:PORT/DB or postgresql://"),
        ("STORE", "sqlite:", "sqlite:PATH, redis://HOST:PORT/DB or postgresql://"),
        ("LOG_LEVEL", "loud", "one of debug"),
        ("CORS_ORIGINS", "example.com", "not an origin"),
        ("KEYS_FILE", "no/such/file", "feedrank keys add"),
    ],
)
def test_wrong_values_are_refused_in_one_line_that_names_the_variable(name, value, message):
    with pytest.raises(SettingsError, match=message) as refusal:
        Settings.from_env({f"FEEDRANK_{name}": value})
    assert f"FEEDRANK_{name}" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", ""])
def test_without_keys_only_loopback(host):
    with pytest.raises(SettingsError, match="loopback only"):
        Settings(host=host)


def test_with_keys_any_address(tmp_path):
    file = tmp_path / "keys"
    file.touch()
    assert Settings(host="0.0.0.0", keys_file=str(file)).host == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_addresses(host):
    assert is_loopback(host)
    assert Settings(host=host).host == host


def test_operating_guide_lists_every_setting():
    guide = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    missing = [item.name for item in fields(Settings) if f"`{variable(item.name)}`" not in guide]
    assert missing == []


def test_a_refused_store_is_named_without_its_password():
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"FEEDRANK_STORE": "redi://me:hush@host:1/0?password=hush"})
    assert "redi://host:1/0" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_password_that_this_user_may_not_read_is_said_with_what_to_do(tmp_path, monkeypatch):
    file = tmp_path / "password"
    file.write_text("secret")
    file.chmod(0o600)

    def refuse(*_, **__):  # the tests may run as root, who may read everything
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "read_text", refuse)
    environ = {"FEEDRANK_STORE": "redis://redis:6379/0", "FEEDRANK_STORE_PASSWORD_FILE": str(file)}
    with pytest.raises(SettingsError, match=f"user {os.getuid()} may not read .*chmod 644"):
        Settings.from_env(environ)


def test_the_password_of_redis_may_come_from_a_file(tmp_path):
    file = tmp_path / "password"
    file.write_text("p@ss/word\n")
    environ = {"FEEDRANK_STORE": "redis://redis:6379/0", "FEEDRANK_STORE_PASSWORD_FILE": str(file)}
    assert Settings.from_env(environ).store == "redis://:p%40ss%2Fword@redis:6379/0"
    for wrong in (
        {**environ, "FEEDRANK_STORE": "sqlite:x.db"},
        {**environ, "FEEDRANK_STORE": "redis://:a@redis/0"},
        {**environ, "FEEDRANK_STORE_PASSWORD_FILE": str(tmp_path / "none")},
    ):
        with pytest.raises(SettingsError, match="FEEDRANK_STORE_PASSWORD_FILE"):
            Settings.from_env(wrong)
