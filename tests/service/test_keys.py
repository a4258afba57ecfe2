"""Keys: only hashes on disk, scopes and prefixes, live revocation, and closed when in doubt."""

import json
import os
import stat

import pytest

from feedrank.service.http.keyring import Keyring, KeysError, add_key, read_keys, revoke_key


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keys"


def test_the_file_keeps_only_hashes_and_is_private(file):
    secret = add_key(file, ["predict"])
    text = file.read_text()
    assert secret not in text
    _, _, chance = secret.split("_", 2)  # which may hold more of them
    assert len(chance) == 43
    assert chance not in text
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_a_key_is_found_and_every_other_text_is_not(file):
    secret = add_key(file, ["predict", "feedback"], ["mail-"])
    ring = Keyring(file)
    key = ring.find(secret)
    assert key is not None
    assert key.scopes == ("predict", "feedback")
    assert key.prefixes == ("mail-",)
    flipped = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for wrong in ("", "fr_", secret[:-1], secret + "x", flipped, secret.upper(), "ä" * 60, " " + secret):
        assert ring.find(wrong) is None


def test_scopes_and_prefixes(file):
    ring = Keyring(file)
    reader = ring.find(add_key(file, ["predict"], ["a-", "b-"]))
    admin = ring.find(add_key(file, ["admin"]))
    assert reader.may("predict")
    assert reader.may("any")
    assert not reader.may("feedback")
    assert not reader.may("admin")
    assert reader.reaches("a-1")
    assert not reader.reaches("c-1")
    assert all(admin.may(scope) for scope in ("predict", "feedback", "admin", "any"))
    assert admin.reaches("c-1")


def test_revoked_and_added_keys_count_at_once(file):
    first, ring = add_key(file, ["predict"]), Keyring(file)
    key = ring.find(first)
    second = add_key(file, ["admin"])
    assert ring.find(second) is not None
    assert ring.holds(key)
    revoke_key(file, key.id)
    assert not ring.holds(key)
    assert ring.find(first) is None
    assert ring.find(second) is not None
    assert [kept.id for kept in read_keys(file)] == [ring.find(second).id]


@pytest.mark.parametrize("damage", [b"{", b'{"id": 1}\n', b"[]\n", b"\xff\xfe", None])
def test_a_damaged_or_missing_file_opens_nothing(file, damage):
    secret, ring = add_key(file, ["admin"]), Keyring(file)
    assert ring.find(secret) is not None
    sound = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(sound + damage)
        with pytest.raises(KeysError):
            read_keys(file)
        with pytest.raises(KeysError):
            add_key(file, ["admin"])
    assert ring.find(secret) is None
    file.write_bytes(sound)
    assert ring.find(secret) is not None


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_opens_nothing_until_its_rights_are_right(file, mode):
    secret = add_key(file, ["admin"])
    ring = Keyring(file)
    assert ring.find(secret)
    file.chmod(mode)
    assert ring.find(secret) is None
    with pytest.raises(KeysError, match="chmod go-w"):
        read_keys(file)
    file.chmod(0o640)
    assert ring.find(secret)


@pytest.mark.parametrize("scopes", [[], ["root"], ["predict", "root"]])
def test_unknown_scopes_are_refused_and_nothing_is_written(file, scopes):
    with pytest.raises(KeysError, match="scopes"):
        add_key(file, scopes)
    assert not file.exists()


def test_revoking_what_is_not_there(file):
    add_key(file, ["admin"])
    with pytest.raises(KeysError, match="no key"):
        revoke_key(file, "beef")
    assert len(read_keys(file)) == 1


def test_unwritable_place_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(KeysError, match="cannot write"):
        add_key(tmp_path / "file" / "keys", ["admin"])


def test_lines_are_plain_json(file):
    add_key(file, ["admin"], ["x"])
    assert sorted(json.loads(file.read_text())) == ["created", "hash", "id", "prefixes", "scopes"]
