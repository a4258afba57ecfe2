"""PostgreSQL that is gone, frozen, full, locked or read only; and what is refused at the start.

Of store/sql: postgres.py, postgres_connection.py, postgres_writer.py, postgres_listen.py, postgres_open.py,
postgres_schema.py and postgres_text.py; the laws of a store are in test_store_*.py.
"""

import asyncio
import os
import signal
import time

import psycopg
import pytest
import trustme
from postgres_server import PostgresServer, ask
from rude_proxy import RudeProxy
from store_logs import draft, opened, run
from waiting import eventually, until

from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.store import Closed, Record, Snapshot
from feedrank.service.store.sql import postgres_connection, postgres_listen, postgres_writer
from feedrank.service.store.sql.postgres_text import AnyText, AnyTextLoader

SPEC = {"task": "multiclass", "algorithm": "predtron"}
BACKENDS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'feedrank'"


@pytest.fixture
def emptied_url(postgres_server):
    postgres_server.clear()
    return postgres_server.url


def event(i):
    return {"features": {f"w{i % 7}": 1.0, "x": 2.0}, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


async def recovered(call):
    """The reply once the store answers again."""
    return await eventually(call, "it does not recover", not_yet=errors.StoreUnavailable)


async def refused(call, match=None):
    with pytest.raises(errors.StoreUnavailable, match=match) as caught:
        await call
    assert caught.value.headers["Retry-After"]


def test_while_postgres_is_gone_nothing_is_acknowledged_and_then_all_goes_on(own_postgres, caplog):
    async def main():
        async with (
            Host.open(own_postgres.url, Settings(snapshot_every=5)) as one,
            Host.open(own_postgres.url, Settings(snapshot_every=5)) as two,
        ):
            await one.create("a", SPEC)
            replies = [await one.feedback("a", event(i)) for i in range(12)]
            asked = await one.predict("a", {"features": {"x": 1.0}})
            await two.info("a")
            own_postgres.kill()
            for host in (one, two):
                await refused(host.feedback("a", event(99)))
                await refused(host.predict("a", {"features": ["x"]}))
                await refused(host.create("b", SPEC))
                await refused(host.ready())
                assert (await host.predict("a", {"features": ["x"], "remember": False}))["version"] == 12
            assert one.stats()["store_errors"] >= 2
            own_postgres.start()
            reply = await recovered(
                lambda: one.feedback("a", {"prediction_id": asked["prediction_id"], "label": "b"})
            )
            assert (reply["version"], reply["duplicate"]) == (13, False)
            for i in range(12):
                assert await two.feedback("a", event(i)) == {**replies[i], "duplicate": True}
            await one.feedback("a", event(50))

            async def followed():
                return (await two.predict("a", {"features": ["x"], "remember": False}))["version"] == 14

            await eventually(followed)  # listening was taken up again by itself
            assert await one.export("a") == await two.export("a")

    asyncio.run(main())
    begun = [one for one in caplog.records if one.message.startswith("PostgreSQL did not take a write")]
    assert len(begun) == 2  # a line for each process


def test_connections_that_ended_between_two_calls_cost_nothing(emptied_url):
    async def body(store):
        for i in range(5):
            await store.append("a", [draft(f"e{i}", f"id{i}")])
            assert len(await store.read("a", 0, 9)) == i + 1
            assert (await store.head("a")).version == i + 1
            ask(emptied_url, BACKENDS)
        assert store.failures == 0

    run(emptied_url, body)


def test_what_was_on_its_way_when_a_connection_ended_counts_once(emptied_url):
    """Backends are ended over and over: what is sent again under its id is there once, in one order."""

    async def body(store):
        going = True

        async def end():
            while going:
                await asyncio.to_thread(ask, emptied_url, BACKENDS)
                await asyncio.sleep(0.01)

        async def send(worker):
            for i in range(40):
                while True:
                    try:
                        await store.append("a", [draft(f"{worker} {i}", f"{worker} {i}")])
                        break
                    except errors.StoreUnavailable:
                        await asyncio.sleep(0.01)

        ending = asyncio.create_task(end())
        await asyncio.gather(*(send(worker) for worker in range(4)))
        going = False
        await ending
        entries = await recovered(lambda: store.read("a", 0, 1000))
        assert sorted(entry.body for entry in entries) == sorted(
            f"{worker} {i}".encode() for worker in range(4) for i in range(40)
        )
        assert await store.examine("a") == []

    run(emptied_url, body)


def test_two_processes_write_one_log_in_one_order(emptied_url):
    async def main():
        async with opened(emptied_url) as one, opened(emptied_url) as two:

            async def send(store, name):
                for i in range(60):
                    await store.append(
                        "a", [draft(f"{name} {i}", f"{name} {i}"), draft(f"both {i}", f"both {i}")]
                    )

            await asyncio.gather(send(one, "one"), send(two, "two"), send(one, "one"), send(two, "two"))
            entries = await one.read("a", 0, 1000)
            assert [entry.chain for entry in entries] == [
                entry.chain for entry in await two.read("a", 0, 1000)
            ]
            assert len({entry.body for entry in entries}) == len(entries) == 180
            assert await two.examine("a") == []
            racing = [store.put("kind", "name", b"value", 0) for store in (one, two) for _ in range(4)]
            raced = await asyncio.gather(*racing, return_exceptions=True)
            assert sum(isinstance(result, int) for result in raced) == 1
            await one.remember("a", {"p": Record(b"first", "d", rank=1.0)}, 60)
            leased = await asyncio.gather(*(store.lease("a", ["p"], 60) for store in (one, two)))
            assert sorted(leased) == [[], ["p"]]
            assert await two.remember("a", {"p": Record(b"second", "d")}, 60) == {"p": b"first"}
            await two.drop("a")
            with pytest.raises(Closed):
                await one.append("a", [draft("late")])

    asyncio.run(main())


def test_a_server_that_only_reads_refuses_and_is_tried_again(own_postgres, caplog):
    async def body(store):
        await store.append("a", [draft("one")])
        own_postgres.ask("ALTER SYSTEM SET default_transaction_read_only = on")
        own_postgres.ask("SELECT pg_reload_conf()")

        async def said():
            try:
                await store.append("b", [draft("more")])
            except errors.StoreUnavailable as error:
                return error.detail
            return ""

        assert "read-only" in await eventually(said)
        await refused(store.check(), "read-only")
        assert len(await store.read("a", 0, 9)) == 1
        with psycopg.connect(own_postgres.url, autocommit=True) as connection:
            connection.execute("SET transaction_read_only = off")
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
        await recovered(lambda: store.append("a", [draft("two")]))
        assert store.failures >= 2

    run(own_postgres.url, body)
    said = [record.message.partition(":")[0] for record in caplog.records]
    assert said == ["PostgreSQL did not take a write", "PostgreSQL takes writes again"]


def test_a_frozen_server_is_given_up_in_time(own_postgres, monkeypatch):
    async def main():
        async with Host.open(own_postgres.url.replace("/postgres", "/postgres?connect_timeout=2")) as host:
            await host.create("a", SPEC)
            first = await host.feedback("a", event(0))
            monkeypatch.setattr(postgres_writer, "PATIENCE", 1.0)
            own_postgres.each(signal.SIGSTOP)
            try:
                await asyncio.wait_for(refused(host.feedback("a", event(1))), 600)  # as long as it is frozen
            finally:
                own_postgres.each(signal.SIGCONT)
            again = await recovered(lambda: host.feedback("a", event(1)))
            assert again["version"] == 2
            assert await host.feedback("a", event(0)) == {**first, "duplicate": True}

    asyncio.run(main())


def test_a_failover_to_a_synchronous_standby_loses_nothing(own_postgres):
    standby = PostgresServer(primary=own_postgres)
    try:
        own_postgres.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        own_postgres.ask("SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication"
        until(lambda: own_postgres.ask(state) == [("sync",)], "the standby is not synchronous")
        assert "can only be read" in refusal(standby.url)
        place = f"127.0.0.1:{own_postgres.port}"
        url = own_postgres.url.replace(place, f"{place},127.0.0.1:{standby.port}")

        async def main():
            async with Host.open(url) as one, Host.open(url) as two:
                await one.create("a", SPEC)
                replies = [await one.feedback("a", event(i)) for i in range(20)]
                await two.info("a")
                own_postgres.kill()
                await refused(one.feedback("a", event(20)))
                await asyncio.to_thread(standby.ask, "SELECT pg_promote()")
                # The standby had begun as one, and must not wait for one of its own.
                await asyncio.to_thread(standby.ask, "ALTER SYSTEM RESET synchronous_standby_names")
                await asyncio.to_thread(standby.ask, "SELECT pg_reload_conf()")
                reply = await recovered(lambda: one.feedback("a", event(20)))
                assert reply["version"] == 21
                for i in range(20):
                    assert await two.feedback("a", event(i)) == {**replies[i], "duplicate": True}

                async def followed():
                    return (await two.predict("a", {"features": ["x"], "remember": False}))["version"] == 21

                await eventually(followed)
                assert await one.export("a") == await two.export("a")
                assert one._counts.divergences == two._counts.divergences == 0

        asyncio.run(main())
    finally:
        standby.close()


def test_who_waits_too_long_for_another_writer_says_so(emptied_url, monkeypatch):
    monkeypatch.setattr(postgres_connection, "LOCKED", 200)

    async def body(store):
        await store.append("a", [draft("one")])
        with psycopg.connect(emptied_url) as other:
            other.execute("SELECT 1 FROM feedrank.store FOR UPDATE")
            await refused(store.append("a", [draft("two")]), "lock timeout")
            other.rollback()
        assert (await store.append("a", [draft("two")]))[0].version == 2

    run(emptied_url, body)


def test_a_process_that_stops_in_the_midst_of_a_write_does_not_stop_the_others(emptied_url, monkeypatch):
    monkeypatch.setattr(postgres_connection, "FROZEN", 300)

    async def main():
        async with opened(emptied_url) as frozen, opened(emptied_url) as other:
            await frozen.append("a", [draft("one")])
            frozen._writer._begin()  # and goes no further
            assert (await recovered(lambda: other.append("a", [draft("two")])))[0].version == 2
            assert (await recovered(lambda: frozen.append("a", [draft("three")])))[0].version == 3
            assert await frozen.examine("a") == []

    asyncio.run(main())


def test_parts_of_a_snapshot_that_is_being_saved_are_not_taken_for_left_behind(emptied_url, monkeypatch):
    async def main():
        async with opened(emptied_url) as one:
            await one.append("a", [draft("x")])
            number = await one._write(lambda db: snapshots.begin(db, "a", Snapshot(1, "d", b"")))
            await one._write(lambda db: snapshots.write_part(db, number[0], 0, b"data"))
            async with opened(emptied_url):  # looks for what was left behind
                pass
            assert ask(emptied_url, "SELECT count(*) FROM feedrank.parts") == [(1,)]
            ask(emptied_url, BACKENDS)  # as a kill of its process
            await eventually(lambda: ask(emptied_url, BACKENDS) == [])
            async with opened(emptied_url):
                pass
            assert ask(emptied_url, "SELECT count(*) FROM feedrank.parts") == [(0,)]
            retention = snapshots.Retention(1, 1, 0)
            with pytest.raises(errors.StoreUnavailable, match="lost on their way"):
                await one._write(
                    lambda db: snapshots.save(db, "a", Snapshot(1, "d", b""), {}, (number[0], 1), retention)
                )
            assert await one.save("a", Snapshot(1, "d", b"data"), {}, keep=1, floor=1) == "d"

    from feedrank.service.store.sql import snapshots

    asyncio.run(main())


def test_what_another_session_still_sees_is_not_said_to_be_gone(emptied_url, monkeypatch):
    monkeypatch.setattr(postgres_writer, "ATTEMPTS", 2)

    async def body(store):
        await store.append("a", [draft("secret", "s"), draft("other", "o")])
        await store.append("a", [draft("", retracts=1)])
        with psycopg.connect(emptied_url) as other:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT 1")
            await refused(store.erase("a", [1]), "another session")
            async with opened(emptied_url) as another:
                assert "another session" in another.notices[-1]
        sums = await store.erase("a", [1])
        assert len(sums) == 1
        assert ask(emptied_url, "SELECT value FROM feedrank.counters WHERE name = 'erased'") == [(0,)]

    run(emptied_url, body)


@pytest.mark.parametrize("mode", ["close", "reset"])
def test_a_replica_goes_on_following_after_a_network_that_accepts_and_closes(own_postgres, mode):
    async def main(proxy):
        url = own_postgres.url.replace(str(own_postgres.port), str(proxy.port))
        async with Host.open(own_postgres.url, Settings()) as one, Host.open(url, Settings()) as two:
            await one.create("a", SPEC)
            await one.feedback("a", event(0))
            await two.info("a")
            proxy.rude(mode)
            for i in range(1, 30):
                await one.feedback("a", event(i))
            proxy.mode = "pass"

            async def followed():
                await two.predict("a", {"features": ["w1"], "remember": False})
                return two.stats()["log_lag"] == 0 and (await two.info("a"))["version"] == 30

            await eventually(followed)
            await one.feedback("a", event(30))

            async def heard():
                return (await two.info("a"))["version"] == 31

            await eventually(heard)

    with RudeProxy(own_postgres.port) as proxy:
        asyncio.run(main(proxy))


def test_a_listener_that_hears_nothing_is_silent(own_postgres, monkeypatch):
    monkeypatch.setattr(postgres_listen, "IDLE", 0.2)

    async def main(proxy):
        heard = []
        url = own_postgres.url.replace(str(own_postgres.port), str(proxy.port))
        async with opened(own_postgres.url) as writer, opened(url) as store:

            async def listen():
                async for change in store.changes():
                    heard.append(change)

            listening = asyncio.create_task(listen())
            await eventually(lambda: ("lost", "", 0) in heard)
            store.watch("a")
            await eventually(lambda: ("watched", "a", 0) in heard)
            await writer.append("b", [draft("x")])
            await writer.append("a", [draft("x")])
            await writer.put("kind", "name", b"", 0)
            await eventually(lambda: {("log", "a", 1), ("document", "kind/name", 0)} <= set(heard))
            assert ("log", "b", 1) not in heard
            proxy.frozen = True
            proxy.mode = "silent"
            await eventually(lambda: store.silence() > 1.0)
            proxy.frozen = False
            proxy.rude("pass")
            heard.clear()
            await eventually(lambda: ("lost", "", 0) in heard and store.silence() < 1.0)
            store.unwatch("a")
            await writer.drop("a")
            listening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listening

    with RudeProxy(own_postgres.port) as proxy:
        asyncio.run(main(proxy))


def refusal(url):
    async def main():
        async with opened(url):
            pass

    with pytest.raises(errors.StoreRefused) as caught:
        asyncio.run(main())
    assert "\n" not in caught.value.detail
    assert "hunter2" not in caught.value.detail
    return caught.value.detail


def test_what_cannot_be_used_is_refused_in_one_line(postgres_server):
    postgres_server.clear()
    url = postgres_server.url
    assert "failed" in refusal(url.replace(str(postgres_server.port), "1"))
    assert "does not exist" in refusal(url.replace("feedrank@", "nobody-known:hunter2@"))
    assert "does not exist" in refusal(url.replace("/postgres", "/nothing"))
    assert "cannot use" in refusal(f"{url}?no_such_option=1")
    assert "%23" in refusal(url.replace("feedrank@", "feedrank:hunter2#2@"))
    postgres_server.ask("DROP DATABASE IF EXISTS latin")
    postgres_server.ask(
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    assert "UTF-8" in refusal(url.replace("/postgres", "/latin"))
    assert "can only be read" in refusal(f"{url}?options=-cdefault_transaction_read_only%3Don")

    async def nothing(store):
        await store.append("a", [draft("x")])

    run(url, nothing)
    postgres_server.ask("UPDATE feedrank.store SET layout = 99")
    assert "newer feedrank" in refusal(url)


def test_with_tls_and_a_password_from_a_file(own_postgres, tmp_path):
    authority, stranger = trustme.CA(), trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(own_postgres.data / "server.crt")
    issued.private_key_pem.write_to_path(own_postgres.data / "server.key")
    owner = own_postgres.data.stat()
    for name in ("server.crt", "server.key"):
        os.chown(own_postgres.data / name, owner.st_uid, owner.st_gid)
        (own_postgres.data / name).chmod(0o600)
    for name, one in (("ca.pem", authority), ("other.pem", stranger)):
        one.cert_pem.write_to_path(tmp_path / name)
    own_postgres.ask("SET password_encryption = 'scram-sha-256'; ALTER ROLE feedrank PASSWORD 'hunter2 /@#'")
    own_postgres.ask("ALTER SYSTEM SET ssl = on")
    (own_postgres.data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    own_postgres.ask("SELECT pg_reload_conf()")
    url = f"{own_postgres.url}?sslmode=verify-full&sslrootcert={tmp_path / 'ca.pem'}"
    (tmp_path / "password").write_text("hunter2 /@#\n")
    place = Settings.from_env(
        {"FEEDRANK_STORE": url, "FEEDRANK_STORE_PASSWORD_FILE": str(tmp_path / "password")}
    ).store

    async def nothing(store):
        await store.append("a", [draft("x")])

    until(lambda: "password" in refusal(url), "the new rules do not hold")
    run(place, nothing)
    assert "certificate verify failed" in refusal(place.replace("ca.pem", "other.pem"))
    assert "no encryption" in refusal(place.replace("verify-full", "disable"))
    assert "authentication failed" in refusal(place.replace("hunter2", "hunter3"))


def test_several_stores_share_a_database_by_their_schemas(emptied_url):
    async def first(store):
        await store.append("a", [draft("x")])

    async def empty(store):
        assert (await store.head("a")).version == 0
        await store.append("b", [draft("y")])

    other = f"{emptied_url}?schema=My%20other&application_name=mine"
    run(emptied_url, first)
    run(other, empty)
    assert ask(emptied_url, 'SELECT name FROM "My other".logs') == [("b",)]
    assert ask(emptied_url, "SELECT name FROM feedrank.logs") == [("a",)]
    ask(emptied_url, 'DROP SCHEMA "My other" CASCADE')


def test_all_who_start_at_once_find_one_store(emptied_url):
    async def one(number):
        async with opened(emptied_url, arithmetic=3) as store:
            await store.append("a", [draft(f"{number}")])

    async def main():
        await asyncio.gather(*map(one, range(6)))
        async with opened(emptied_url) as store:
            assert len(await store.read("a", 0, 9)) == 6

    asyncio.run(main())


@pytest.mark.parametrize(
    "text", ["", "a", "\0", "\1", "\1\1", "\1\2", "\0\1\0", "a\0\1\2b\1", "\1\1\2\2\0\0"]
)
def test_any_text_comes_back(text):
    written = AnyText(str).dump(text)
    assert b"\0" not in written
    assert AnyTextLoader(25).load(written) == text


def test_the_order_of_texts_stays():
    texts = sorted(["", "\0", "\0\0", "\0\1", "\1", "\1\0", "\2", "a\0", "a\0b", "a\1", "a\2", "ab"])
    assert sorted(texts, key=lambda text: bytes(AnyText(str).dump(text))) == texts


def test_a_call_waits_for_postgres_no_longer_than_it_should():
    def answering():
        ready = 0
        while not ready:
            ready = yield 1
        return "answer"

    def drive(waiting, readies):
        try:
            next(waiting)
            for ready in readies:
                waiting.send(ready)
        except StopIteration as end:
            return end.value
        return None

    assert drive(postgres_connection.bounded(answering(), 600), [0, 0, 1]) == "answer"
    with pytest.raises(psycopg.OperationalError, match="no answer"):
        drive(postgres_connection.bounded(answering(), -time.monotonic()), [0, 0, 1])
