"""A real Dovecot, started without root rights, and what tests do with a user on it."""

import getpass
import grp
import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import trustme
from mail_rounds import WORDS, raw
from ports import free_port
from waiting import until

from feedrank.clients.mail.account import connect
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.training import train

PROGRAM = shutil.which("dovecot") or "/usr/sbin/dovecot"
INSTALLED = Path(PROGRAM).exists() and Path("/usr/lib/dovecot/imap").exists()
SIEVE = Path("/usr/lib/dovecot/modules/lib90_sieve_plugin.so")
LAYOUTS = {
    "prefix": ("maildir:{mail}/%u", "INBOX.", ".", "INBOX.{}"),
    "fs": ("maildir:{mail}/%u:LAYOUT=fs", "", "/", "{}"),
    "plus": ("maildir:{mail}/%u", "", "/", "{}"),
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
  prefix = {prefix}
  separator = {separator}
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
namespace {{
  type = public
  prefix = {public}
  separator = {separator}
  location = maildir:{root}/public
  subscriptions = no
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
        location, prefix, self.separator, self.pattern = LAYOUTS[layout]
        self.root = root
        self.user = "nobody" if os.getuid() == 0 else getpass.getuser()
        account = pwd.getpwnam(self.user)
        self.port, self.tls, self.lmtp = free_port(), free_port(), free_port()
        self.authority = trustme.CA()
        certificate = self.authority.issue_cert("127.0.0.1", "localhost")
        for name in ("run", "state", "home", "mail", "programs", "public"):
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
            prefix=prefix,
            separator=self.separator,
            public=f"Public{self.separator}",
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
        return self.pattern.format(folder.replace("/", self.separator))

    def public(self, folder):
        """What a folder of the public namespace is called on this server."""
        return f"Public{self.separator}{folder}"


one_layout = pytest.mark.parametrize("dovecot", ["prefix"], indirect=True)


def taught(mail, count=6):
    for number in range(count):
        topic = list(WORDS)[number % 2]
        mail.person.append(mail.server.name(topic), raw(number, topic))
    with connect(mail.account) as imap:
        curve = train(mail.client, mail.state, ImapSource(imap, mail.state).find())
    mail.look()
    return curve
