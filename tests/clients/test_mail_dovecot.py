"""Mail against a real Dovecot, started here without root rights: namespaces, TLS, rename, crashes, delivery by Sieve."""

import getpass
import grp
import os
import pwd
import shutil
import smtplib
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from imap_server import move
from ports import free_port
from waiting import until

from feedrank.clients import Client
from feedrank.clients.mail.account import Account, AccountError, Secret, SecretError, Trust, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.folder_names import is_choice
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.loop import watch
from feedrank.clients.mail.mailboxes import boxes
from feedrank.clients.mail.promise import Judgement
from feedrank.clients.mail.rules import Rule, Rules
from feedrank.clients.mail.sources import find
from feedrank.clients.mail.training import train
from feedrank.clients.mail.undo import undo
from feedrank.clients.mail.watcher import Watcher
from feedrank.embedded import Embedded

PROGRAM = shutil.which("dovecot") or "/usr/sbin/dovecot"
pytestmark = pytest.mark.skipif(
    not Path(PROGRAM).exists() or not Path("/usr/lib/dovecot/imap").exists(),
    reason="no Dovecot: `apt-get install dovecot-imapd dovecot-lmtpd dovecot-sieve` to test against it",
)
SIEVE = Path("/usr/lib/dovecot/modules/lib90_sieve_plugin.so")
WORDS = {"Work": "budget meeting report deadline", "Travel": "flight hotel boarding passport"}
LAYOUTS = {
    "prefix": ("maildir:{mail}/%u", "prefix = INBOX.\n  separator = .", "INBOX.{}"),
    "fs": ("maildir:{mail}/%u:LAYOUT=fs", "prefix =\n  separator = /", "{}"),
    "plus": ("maildir:{mail}/%u", "prefix =\n  separator = /", "{}"),
}
CONFIG = """
protocols = imap lmtp
base_dir = {root}/run
state_dir = {root}/state
log_path = {root}/log
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = {location}
ssl = yes
ssl_cert = <{root}/chain.pem
ssl_key = <{root}/key.pem
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={root}/home/%u
}}
namespace inbox {{
  inbox = yes
  {namespace}
  mailbox Trash {{
    special_use = \\Trash
    auto = create
  }}
  mailbox Starred {{
    special_use = \\Flagged
    auto = create
  }}
  mailbox Old {{
    special_use = \\Archive
    auto = create
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
protocol lmtp {{
  mail_plugins = {plugins}
}}
plugin {{
  sieve_before = {root}/home/%u/before.sieve
  sieve_plugins = sieve_extprograms
  sieve_global_extensions = +vnd.dovecot.execute
  sieve_execute_bin_dir = {root}/programs
  sieve_execute_exec_timeout = 60s
}}
"""


class Dovecot:
    """A server of its own, under the tests' user, or under nobody where that is root."""

    def __init__(self, root, layout):
        location, namespace, self.pattern = LAYOUTS[layout]
        self.root = root
        self.user = "nobody" if os.getuid() == 0 else getpass.getuser()
        account = pwd.getpwnam(self.user)
        self.port, self.tls, self.lmtp = free_port(), free_port(), free_port()
        self.authority = trustme.CA()
        certificate = self.authority.issue_cert("127.0.0.1", "localhost")
        for name in ("run", "state", "home", "mail", "programs"):
            (root / name).mkdir()
        for blob in certificate.cert_chain_pems:
            with (root / "chain.pem").open("ab") as file:
                file.write(blob.bytes())
        (root / "key.pem").write_bytes(certificate.private_key_pem.bytes())
        (root / "authority.pem").write_bytes(self.authority.cert_pem.bytes())
        text = CONFIG.format(
            root=root,
            user=self.user,
            group=grp.getgrgid(account.pw_gid).gr_name,
            location=location.format(mail=root / "mail"),
            namespace=namespace,
            port=self.port,
            tls=self.tls,
            lmtp=self.lmtp,
            plugins="sieve" if SIEVE.exists() else "",
        )
        (root / "dovecot.conf").write_text(text)
        if os.getuid() == 0:
            for place in [root, *root.rglob("*")]:
                os.chown(place, account.pw_uid, account.pw_gid)
        self.as_user = {"user": account.pw_uid, "group": account.pw_gid} if os.getuid() == 0 else {}
        self.process = subprocess.Popen(
            [PROGRAM, "-F", "-c", str(root / "dovecot.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            extra_groups=[] if self.as_user else None,
            **self.as_user,
        )
        until(self.answers, f"dovecot does not answer; see {root / 'log'}", not_yet=OSError)

    def answers(self):
        assert self.process.poll() is None, self.process.stderr.read()
        socket.create_connection(("127.0.0.1", self.port)).close()
        return True

    def stop(self):
        self.process.terminate()
        self.process.wait(600)
        self.process.stderr.close()

    def name(self, folder):
        """What a folder is called on this server."""
        return self.pattern.format(folder.replace("/", "." if "." in self.pattern else "/"))


@pytest.fixture(scope="module", params=LAYOUTS)
def server(request):
    # Not below pytest's directory, which is root's alone where the tests are root's.
    with tempfile.TemporaryDirectory(prefix="dovecot-", ignore_cleanup_errors=True) as root:
        running = Dovecot(Path(root), request.param)
        yield running
        running.stop()


one_layout = pytest.mark.parametrize("server", ["prefix"], indirect=True)


@pytest.fixture
def mail(server, tmp_path, monkeypatch, request):
    """A fresh user of the server with two folders, a service, a state, and what looks at them."""
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    user = f"u{abs(hash(request.node.name)) % 10**9}"
    account = Account.of(
        f"imap://{user}@127.0.0.1:{server.port}", Secret(), Trust(server.root / "authority.pem")
    )
    store = f"sqlite:{tmp_path / 'service.db'}"
    service = Embedded(store, tmp_path / "service.db.socket")
    with (
        connect(account) as person,
        Client("http://embedded", transport=service) as client,
        MailState(tmp_path / "mail.db", account.name, service=store) as state,
    ):
        for folder in WORDS:
            person.create_folder(server.name(folder))

        def look(**settings):
            lines = []
            with connect(account) as imap:
                Watcher(imap, client, state, WatchSettings(**settings), lines.append).look()
            return lines

        yield SimpleNamespace(
            account=account, person=person, client=client, state=state, look=look, server=server, user=user
        )


def raw(number, topic):
    return (
        f"Message-ID: <m{number}@example.org>\r\nFrom: {topic.lower()}@example.org\r\nTo: me@example.org\r\n"
        f"Subject: {WORDS[topic]} {number}\r\nDate: Mon, 05 Feb 2024 10:{number % 60:02}:00 +0000\r\n\r\n{WORDS[topic]}\r\n"
    ).encode()


def taught(mail, count=6):
    for number in range(count):
        topic = list(WORDS)[number % 2]
        mail.person.append(mail.server.name(topic), raw(number, topic))
    with connect(mail.account) as imap:
        curve = train(mail.client, mail.state, ImapSource(imap, mail.state).find())
    mail.look()
    return curve


def trusted(state):
    """A record in which whatever was certain was right, and nothing else."""
    for right in (True, False):
        state.add_judgements([Judgement(folder, 0.2 * right, right) for folder in WORDS for _ in range(200)])


def version(mail):
    return mail.client.learner("mail").version


def test_folders_have_one_name_from_the_server_and_from_its_disk(mail):
    mail.person.create_folder(mail.server.name("Work/Größe"))
    assert len(taught(mail).mistakes) == 6
    mail.person.append(mail.server.name("Work/Größe"), raw(50, "Work"))
    listed = {box.label for box in boxes(mail.person, "INBOX")}
    assert listed == {"Work", "Travel", "Work/Größe"}
    assert {box.label for box in boxes(mail.person, "INBOX", archive=True)} == listed | {"Old"}
    disk = mail.server.root / "mail" / mail.user
    messages = [one for one in find(disk) if is_choice(one.folder)]
    assert {one.folder for one in messages} == listed
    assert (
        len(train(mail.client, mail.state, messages).mistakes) == 1
    )  # the new one: the others are known by their label
    with connect(mail.account) as imap:
        assert ImapSource(imap, mail.state).find() == []


def test_moves_are_learned_once_and_renames_followed_by_all_commands(mail):
    taught(mail)
    work, travel, trips = map(mail.server.name, ("Work", "Travel", "Trips"))
    mail.person.append("INBOX", raw(10, "Work"))
    assert mail.look() == [f"{work}: suggested for <m10@example.org>"]
    move(mail.person, "INBOX", travel, 10)
    assert mail.look() == [f"{travel}: learned <m10@example.org>"]
    assert mail.look() == []
    mail.person.unselect_folder()
    mail.person.rename_folder(travel, trips)
    assert mail.look() == [f"{travel}: is now {trips}"]
    mail.person.append("INBOX", raw(11, "Travel"))
    assert mail.look() == [f"{trips}: suggested for <m11@example.org>"]
    before = version(mail)
    disk = [one for one in find(mail.server.root / "mail" / mail.user) if is_choice(one.folder)]
    assert {one.folder for one in disk} == {"Work", "Trips"}
    assert train(mail.client, mail.state, disk).mistakes == []
    with connect(mail.account) as imap:
        assert train(mail.client, mail.state, ImapSource(imap, mail.state).find()).mistakes == []
    assert version(mail) == before
    assert mail.state.folder_of("Travel") == "Trips"


@one_layout
def test_a_copy_says_where_its_twin_is_and_a_moved_message_has_none(mail):
    taught(mail)
    mail.person.append("INBOX", raw(2, "Work").replace(b"<m2@", b"<twin@"))
    mail.look()
    mail.person.select_folder("INBOX")
    mail.person.move(mail.person.search(), mail.server.name("Travel"))
    mail.look()
    move(mail.person, mail.server.name("Work"), mail.server.name("Travel"), 4)
    mail.look()
    events = [event["instance"]["features"] for event in mail.client.events("mail", after=6).events]
    copies = [[name for name in features if name.startswith("copy:")] for features in events]
    assert copies == [["copy:Work"], []]


def test_sure_mail_is_filed_put_back_and_undone(mail):
    taught(mail)
    trusted(mail.state)
    travel = mail.server.name("Travel")
    for number in (20, 21):
        mail.person.append("INBOX", raw(number, "Travel"))
    assert sorted(mail.look(mode="file")) == [
        f"{travel}: filed <m{number}@example.org>" for number in (20, 21)
    ]
    assert mail.look(mode="file") == []
    assert version(mail) == 6
    move(mail.person, travel, "INBOX", 20)
    assert mail.look(mode="file") == [
        f"{travel}: <m20@example.org> was put back",
        "INBOX: learned <m20@example.org>",
    ]
    assert mail.client.learner("mail").labels == [*WORDS, "INBOX"]
    with connect(mail.account) as imap:
        assert undo(imap, mail.state, 5) == 1
    assert mail.look(mode="file") == ["INBOX: learned <m21@example.org>"]


@one_layout
def test_a_move_by_copying_and_marking_is_a_move(mail):
    """Programs without MOVE copy a message and mark the first as deleted; some never expunge it."""
    work, travel = mail.server.name("Work"), mail.server.name("Travel")

    def move_slowly(origin, folder, number):
        mail.person.select_folder(origin)
        uids = mail.person.search(["UNDELETED", "HEADER", "Message-ID", f"m{number}@example.org"])
        mail.person.copy(uids, folder)
        mail.person.delete_messages(uids)

    mail.person.append(work, raw(90, "Travel"))
    move_slowly(work, travel, 90)
    taught(mail)
    truths = [event["truth"]["label"] for event in mail.client.events("mail").events]
    assert truths.count("Travel") == 4  # the one marked in Work is not there
    assert truths.count("Work") == 3
    mail.person.append("INBOX", raw(30, "Work"))
    mail.look()
    mail.person.select_folder("INBOX")
    mail.person.add_flags(mail.person.search(), [rb"\Seen"])
    move_slowly("INBOX", mail.server.name("Trash"), 30)
    assert mail.look(keep=0.0) == []  # deleted, not kept
    trusted(mail.state)
    mail.person.append("INBOX", raw(31, "Travel"))
    assert mail.look(mode="file") == [f"{travel}: filed <m31@example.org>"]
    mail.look()
    move_slowly(travel, "INBOX", 31)
    assert f"{travel}: <m31@example.org> was put back" in mail.look(mode="file")


@one_layout
def test_rules_name_folders_as_the_commands_do_also_when_they_were_renamed(mail):
    taught(mail)
    work, travel = mail.server.name("Work"), mail.server.name("Travel")
    rules = Rules(
        [
            Rule.of({"from": "boss@*", "folder": "Work"}, always=True),
            Rule.of({"from": "other@*", "folder": "Nowhere"}, always=True),
        ],
        [Rule.of({"folder": "Trav*"}, always=False)],
    )
    trusted(mail.state)
    mail.person.append("INBOX", raw(20, "Travel"))
    mail.person.append("INBOX", raw(21, "Travel").replace(b"travel@", b"boss@"))
    lines = mail.look(mode="file", rules=rules)
    assert sorted(lines) == [
        f"{work}: filed <m21@example.org>",
        f"{work}: suggested for <m20@example.org>",
        "always: from other@* → Nowhere: there is no such folder",
    ]
    mail.person.rename_folder(work, mail.server.name("Office"))
    mail.person.rename_folder(travel, mail.server.name("Trips"))
    later = Rules(
        [Rule.of({"from": "boss@*", "folder": "Office"}, always=True)],
        [Rule.of({"folder": "Trips"}, always=False)],
    )
    mail.person.append("INBOX", raw(22, "Travel").replace(b"travel@", b"boss@"))
    mail.person.append("INBOX", raw(23, "Travel"))
    office = mail.server.name("Office")
    assert mail.look(mode="file", rules=later)[-2:] == [
        f"{office}: filed <m22@example.org>",
        f"{office}: suggested for <m23@example.org>",
    ]


@one_layout
@pytest.mark.parametrize("flag", [rb"\Answered", rb"\Seen"])
def test_what_is_answered_from_the_inbox_or_left_there_belongs_there(mail, flag):
    taught(mail)
    mail.person.append("INBOX", raw(30, "Work"))
    mail.look()
    assert mail.look(keep=0.0) == []  # neither answered nor read
    mail.person.select_folder("INBOX")
    mail.person.add_flags(mail.person.search(), [flag])
    assert mail.look(keep=1e6) == (["INBOX: learned <m30@example.org>"] if flag == rb"\Answered" else [])
    if flag == rb"\Seen":
        assert mail.look(keep=0.0) == ["INBOX: learned <m30@example.org>"]
    assert mail.look(keep=0.0) == []
    assert mail.client.events("mail", after=6).events[0]["truth"] == {"label": "INBOX"}
    move(mail.person, "INBOX", mail.server.name("Travel"), 30)  # a later change of mind is learned too
    assert mail.look() == [f"{mail.server.name('Travel')}: learned <m30@example.org>"]


@one_layout
def test_certificates_are_checked_and_can_be_pinned(mail):
    import hashlib
    import ssl

    url = f"imaps://{mail.user}@127.0.0.1:{mail.server.tls}"
    pem = ssl.get_server_certificate(("127.0.0.1", mail.server.tls))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    pinned = ":".join(digest[at : at + 2] for at in range(0, 64, 2)).upper()
    for trust in (
        Trust(mail.server.root / "authority.pem"),
        Trust(fingerprint=pinned),
        Trust(fingerprint=f"sha256:{digest}"),
    ):
        with connect(Account.of(url, Secret(), trust)) as imap:
            assert imap.folder_exists("INBOX")
    lines = []
    for trust, reason in ((Trust(), "is not trusted"), (Trust(fingerprint="00" * 32), "another fingerprint")):
        with pytest.raises(
            AccountError, match=reason
        ):  # at once, also in `watch`, which tries again otherwise
            watch(Account.of(url, Secret(), trust), mail.client, mail.state, WatchSettings(), lines.append)
    assert lines == []


@one_layout
def test_a_failing_password_command_is_fatal_at_first_and_tried_again_later(mail, tmp_path):
    flag = tmp_path / "fail"
    command = f"sh -c 'test ! -e {flag} && echo secret || {{ echo locked >&2; exit 1; }}'"
    trust = mail.account.trust
    account = Account.of(f"imap://{mail.user}@127.0.0.1:{mail.server.port}", Secret(command), trust)
    taught(mail)
    flag.touch()
    with pytest.raises(SecretError, match="locked"):
        watch(account, mail.client, mail.state, WatchSettings(), print)
    flag.unlink()
    lines, stop = [], threading.Event()

    def report(line):
        lines.append(line)
        if "locked" in line:
            flag.unlink()

    def run():
        with MailState(tmp_path / "mail.db", account.name, service=mail.state.service) as own:
            watch(account, mail.client, own, WatchSettings(), report, poll=1.0, stop=stop)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        mail.person.append("INBOX", raw(40, "Work"))
        until(lambda: any("m40" in line for line in lines), lines)
        flag.touch()
        pids = subprocess.run(["doveadm", "-c", str(mail.server.root / "dovecot.conf"), "kick", mail.user],
                              capture_output=True, text=True, check=False, **mail.server.as_user)  # fmt: skip
        assert pids.returncode == 0, pids.stderr
        until(lambda: any("locked" in line and "again in" in line for line in lines), lines)
        with connect(mail.account) as imap:
            imap.append("INBOX", raw(41, "Work"))
        until(lambda: any("m41" in line for line in lines), lines)
    finally:
        stop.set()
        thread.join(600)


@one_layout
def test_training_that_is_killed_goes_on_and_leaves_nothing_behind(mail, tmp_path):
    for number in range(60):
        topic = list(WORDS)[number % 2]
        mail.person.append(mail.server.name(topic), raw(number, topic))
    place = tmp_path / "run"
    place.mkdir()
    (place / "tmp").mkdir()
    code = (
        "import os, feedrank.clients.mail.training as t; t.BATCH_FEATURES = 300; mark = t._Batch.mark\n"
        "def cut(*a):\n    mark(*a); cut.n = getattr(cut, 'n', 0) + 1\n    cut.n < 3 or os.kill(os.getpid(), 9)\n"
        "t._Batch.mark = cut\nfrom feedrank.clients.mail_cli import main; main()"
    )
    words = ["train", f"imap://{mail.user}@127.0.0.1:{mail.server.port}", "--state", str(place / "mail.db")]
    words += ["--store", f"sqlite:{place / 's.db'}", "--ca-file", str(mail.server.root / "authority.pem")]
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    killed = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    assert list((place / "tmp").iterdir()) == []
    again = subprocess.run(
        [sys.executable, "-m", "feedrank.cli", "mail", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    learned = int(again.stdout.split()[0])
    assert 0 < learned < 60
    with Client("http://embedded", transport=Embedded(f"sqlite:{place / 's.db'}")) as client:
        assert client.learner("mail").version == 60


SCRIPT = """
require ["vnd.dovecot.execute", "variables", "fileinto"];
if execute :pipe :output "folder" "feedrank-deliver" {
  if not string :is "${folder}" "" {
    fileinto "${folder}";
  }
}
"""


@one_layout
@pytest.mark.skipif(
    not SIEVE.exists(), reason="no Pigeonhole: `apt-get install dovecot-sieve dovecot-lmtpd` to test it"
)
def test_mail_is_filed_at_delivery_by_sieve_and_known_to_be_ours(mail, tmp_path):
    taught(mail)
    trusted(mail.state)
    server, home = mail.server, mail.server.root / "home" / mail.user
    # The recipe of docs/mail.md; but where the tests are root's, Dovecot is nobody's: the hook hands over by files.
    hook = server.root / "programs" / "feedrank-deliver"
    spool = server.root / "spool"
    spool.mkdir(exist_ok=True)
    spool.chmod(0o777)
    hook.write_text(f"""#!/bin/sh
name=$(mktemp -u {spool}/XXXXXXXX)
cat > $name.part && mv $name.part $name.in
while [ ! -e $name.out ]; do sleep 0.05; done
cat $name.out
""")
    hook.chmod(0o755)
    home.mkdir(exist_ok=True)
    (home / "before.sieve").write_text(SCRIPT)
    if server.as_user:
        for place in (home, home / "before.sieve", hook):
            os.chown(place, server.as_user["user"], server.as_user["group"])
    stop = threading.Event()
    words = ["deliver", f"imap://{mail.user}@127.0.0.1:{server.port}", "--state", str(tmp_path / "mail.db")]
    words += ["--store", f"sqlite:{tmp_path / 'service.db'}"]
    errors = []

    def answer():
        while not stop.wait(0.05):
            for message in spool.glob("*.in"):
                done = subprocess.run([sys.executable, "-m", "feedrank.cli", "mail", *words],
                                      input=message.read_bytes(), capture_output=True, check=False)  # fmt: skip
                errors.append(done.stderr.decode())
                message.rename(message.with_suffix(".seen"))
                early = message.with_suffix(".early")
                early.write_bytes(done.stdout)
                early.rename(message.with_suffix(".out"))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with smtplib.LMTP("127.0.0.1", server.lmtp) as lmtp:
            lmtp.sendmail("a@example.org", [mail.user], raw(60, "Travel"))
            lmtp.sendmail(
                "a@example.org",
                [mail.user],
                b"Message-ID: <m61@example.org>\r\nSubject: who knows\r\n\r\nx\r\n",
            )
    finally:
        stop.set()
        thread.join(600)
    log = (server.root / "log").read_text()[-2000:]
    for number, folder in ((60, server.name("Travel")), (61, "INBOX")):
        mail.person.select_folder(folder, readonly=True)
        assert len(mail.person.search(["HEADER", "Message-ID", f"m{number}@example.org"])) == 1, (errors, log)
    lines = mail.look()
    assert not any("m60" in line for line in lines)  # ours: not taken for the person's choice
    assert [line.partition(": ")[2] for line in lines] == ["suggested for <m61@example.org>"]
    assert mail.look() == []
    assert version(mail) == 6
    assert [one.key for one in mail.state.actions("filed")] == ["m60@example.org"]
