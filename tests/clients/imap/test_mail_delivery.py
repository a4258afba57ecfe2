"""Mail that Dovecot delivers by Sieve is filed at once, and known to be ours."""

import os
import smtplib
import subprocess
import sys
import threading

import pytest
from dovecot_server import SIEVE, one_layout, taught
from mail_rounds import raw, trusted, version

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
    record = trusted(mail.client)
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
    assert version(mail.client) == record
    assert [one.key for one in mail.state.actions("filed")] == ["m60@example.org"]
