"""Messages to features: what is found where, and that nothing a message can hold makes it fail."""

import random
import re
import time
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.clients.mail import features, read
from feedrank.clients.mail import words as texts
from feedrank.clients.mail.extract import excerpt
from feedrank.clients.mail.message import is_whole
from feedrank.clients.mail.mime import content, encoded_words, people, without_prefixes


def message(**headers):
    made = EmailMessage()
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    return made


def test_places_are_marked():
    made = message(
        From="Anna Berg <Anna.Berg@Example.org>",
        To="bob@example.com, Team <team@example.com>",
        Cc="eve@example.net",
        Subject="Re: AW: Budget plan 2024",
        Message_ID="<m2@example.org>",
        References="<m0@example.org> <m1@example.org>",
        In_Reply_To="<m1@example.org>",
        List_Id="Finance people <finance.example.org>",
        Date="Mon, 05 Feb 2024 10:00:00 +0100",
    )
    made.set_content("The numbers are final.\n\nOn Monday Bob wrote:\n> are they ready\n")
    made.add_attachment(b"x", maintype="application", subtype="pdf", filename="Über Zahlen.pdf")
    result = features(bytes(made))
    assert set(result) >= {"subject:budget", "subject:2024", "budget", "numbers", "ready", "bob"}
    assert set(result) >= {
        "from:anna.berg@example.org",
        "from:anna",
        "to:bob@example.com",
        "to:team",
        "to:eve@example.net",
    }
    assert set(result) >= {
        "list:finance.example.org",
        "thread:m0@example.org",
        "thread:m2@example.org",
        "file:zahlen",
    }
    assert set(result) >= {"time:2024-02", "time:anna.berg@example.org 2024-02"}
    assert "subject:re" not in result
    assert len(set(result)) == len(result)


def test_names_that_a_gateway_moved_count_too():
    result = features(b"From: a@b.c\nX-From: Anna Berg\nTo: d@e.f\nX-To: Team Blue, Bob\nX-cc: Eve\n\nhello")
    assert set(result) >= {"from:anna", "from:berg", "to:team", "to:blue", "to:bob", "to:eve"}


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "cp850", "utf-7"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_charsets_and_encodings(charset, encoding):
    made = message(Subject="Grüße aus Köln", From="Jörg Müller <j@example.org>")
    made.set_content("Schöne Grüße\n", charset=charset, cte=encoding)
    result = features(bytes(made))
    assert {"subject:grüße", "subject:köln", "schöne", "from:jörg"} <= set(result)


def test_html_is_read_as_its_reader_sees_it():
    made = message(Subject="s")
    made.set_content(
        "<head><title>hidden</title><style>p {color: red}</style></head><p>Fish&amp;chips<br>caf&eacute;</p>"
        "<!-- secret --><script>var code</script><blockquote>earlier</blockquote>",
        subtype="html",
    )
    result = features(bytes(made))
    assert {"fish", "chips", "café", "earlier"} <= set(result)
    assert not {"hidden", "color", "secret", "code", "p", "br"} & set(result)
    assert excerpt(read(bytes(made))).startswith("Fish&chips café")


def test_of_two_versions_the_plain_one_is_read_and_attached_messages_too():
    made = message(Subject="s")
    made.set_content("plain words")
    made.add_alternative("<p>markup words</p>", subtype="html")
    inner = message(Subject="inside")
    inner.set_content("carried along")
    made.make_mixed()
    made.add_attachment(inner)
    result = features(bytes(made))
    assert {"plain", "carried"} <= set(result)
    assert "markup" not in result


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("aB9'_ -.\n\x00\x7f"), max_size=60))
def test_words_of_ascii_are_those_of_the_pattern(text):
    assert list(texts.words(text)) == list(dict.fromkeys(texts._WORD.findall(text.lower())))


def test_an_excerpt_begins_where_the_text_does():
    layout = b"<table>\n" + b" " * 80 + b"<tr><td></td></tr>\n"
    html = (
        b"Content-Type: text/html\n\n<html><style>p {}</style>"
        + layout * 500
        + b"<p>Dear <b>reader</b>,<p>news"
    )
    assert excerpt(read(html)) == "Dear reader , news"
    assert len(excerpt(read(b"\n\n" + b"word " * 1000))) == 160


def test_scripts_without_spaces_give_pairs():
    assert list(texts.words("東京都 report")) == ["東京", "京都", "report"]
    assert list(texts.words("abc漢字")) == ["abc", "漢字"]
    assert list(texts.words("x" * 500)) == []


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("> earlier", True),
        ("-----Original Message-----", True),
        ("Am 3. Mai schrieb Anna:", False),
        ("Bob wrote:", True),
    ],
)
def test_quotations_begin_at_their_signs(line, quoted):
    new, old = texts.parts(f"new\n{line}\nold\n")
    assert (old.startswith(line)) is quoted
    assert new.startswith("new")


def test_names_of_attachments_in_pieces():
    raw = (
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhello\n--b\nContent-Type: application/x\n"
        b"Content-Disposition: attachment; filename*0*=utf-8''%C3%84rger;\n filename*1*=liste%2Epdf\n\ndata\n--b--\n"
    )
    assert read(raw).attachments == ["Ärgerliste.pdf"]
    assert read(raw).plain.strip() == "hello"


def test_a_message_without_an_id_is_known_by_its_headers():
    one, other = read(b"Subject: a\n\nx"), read(b"Subject: b\n\nx")
    assert one.id != other.id
    assert read(b"Subject: a\r\n\r\nx").id == one.id


def test_the_clock_is_the_senders_but_time_is_one():
    assert (
        read(b"Date: Mon, 05 Feb 2024 10:00:00 +0100\n\n").date
        == read(b"Date: Mon, 5 Feb 2024 09:00:00 GMT\n\n").date
    )
    for date in [b"", b"yesterday", b"Mon, 99 Feb 2024 10:00:00 +0100", b"Mon, 05 Feb 99999 10:00:00 +9999"]:
        assert read(b"Date: " + date + b"\n\n").date is None


FRAGMENTS = [
    b"Content-Type: multipart/mixed; boundary=b\n",
    b"Content-Type: text/html; charset=utf-7\n",
    b"\n",
    b"\r\n\r\n",
    b"--b\n",
    b"--b--",
    b"Content-Transfer-Encoding: base64\n",
    b"Content-Transfer-Encoding: quoted-printable\n",
    b"=?utf-8?b?//8=?=",
    b"Subject: ",
    b"From: ",
    b"Date: ",
    b"=?x?q?=zz?=",
    b"charset=\x00",
    b"Content-Type: message/rfc822\n\n",
    b"=3",
    b"%zz",
    b"filename*=utf-99''%ff",
    b"Content-Disposition: attachment;",
    b"<blockquote",
    b"<!--",
    b"References: <<>",
    b"\xff\xfe",
    b"From ",
    b"Content-Type: text/plain; charset=idna\n",
    b"Content-Type: text/plain; charset=hex\n",
    b"Content-Type: text/plain; charset=unicode_escape\n",
    b"\\ud800",
    b"charset=utf-16\n",
    b"Content-Type: text/plain; charset=punycode\n",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=30), max_size=30).map(b"".join))
def test_no_bytes_fail(raw):
    result = features(raw)
    assert result
    assert all(result)
    assert len(set(result)) == len(result)
    assert "".join(result).encode()  # no lone surrogate: it could not be sent


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1200), st.integers(0, 255))
def test_a_cut_or_damaged_message_gives_fewer_features(cut, byte):
    made = message(Subject="Grüße", From="a@example.org")
    made.set_content("hello")
    made.add_alternative("<p>hello</p>", subtype="html")
    made.add_attachment(b"data" * 50, maintype="application", subtype="pdf", filename="f.pdf")
    raw = bytes(made)
    assert features(raw[:cut])
    damaged = bytearray(raw)
    damaged[cut % len(raw)] = byte
    assert features(bytes(damaged))


ATTACKS = {
    "parameter names": lambda n: b"Content-Type: text/plain;" + b"1" * n + b"\n\nx",
    "parameters": lambda n: b"Content-Type: text/plain; " + b"a*1*=1;" * n + b"\n\nx",
    "open quotes": lambda n: b"Content-Type: text/plain; " + b'a="\\' * n,
    "no address": lambda n: b"From: " + b"a" * n + b"\n\nx",
    "at signs": lambda n: b"To: " + b"a@" * n + b"\n\nx",
    "blanks in a subject": lambda n: b"Subject: re" + b" " * n + b"x\n\nx",
    "prefixes": lambda n: b"Subject: " + b"re: " * n + b"x\n\nx",
    "open words": lambda n: b"Subject: " + b"=?a?q?" * n + b"x\n\nx",
    "words": lambda n: b"Subject: " + b"=?utf-8?b?YQ==?= " * n + b"x\n\nx",
    "folded header": lambda n: b"Subject: a\n" + b" x\n" * n + b"\n",
    "many headers": lambda n: b"".join(b"X%d: a\n" % i for i in range(n)) + b"\n",
    "references": lambda n: b"References: " + b"<a" * n + b"\n\n",
    "dates": lambda n: b"Date: " + b"1" * n + b"\n\n",
    "colons": lambda n: b"\n\n" + b":  " * n,
    "wrote": lambda n: b"\n\n" + b"wrote:\n" * n,
    "dashes": lambda n: b"\n\n" + b"-" * n,
    "scripts": lambda n: b"Content-Type: text/html\n\n" + b"<script></script " * n,
    "open tags": lambda n: b"Content-Type: text/html\n\n" + b"<blockquote" * n,
    "long number": lambda n: b"Content-Type: text/html\n\n&#" + b"9" * n,
    "boundaries": lambda n: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * n,
    "nested": lambda n: b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * n,
    "messages in messages": lambda n: b"Content-Type: message/rfc822\n\n" * n,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_message_costs_time_in_proportion_to_its_length(attack):
    """Eight times the input may cost sixteen times the processor time; what is quadratic costs sixty-four times."""
    least = []
    for size in (20_000, 160_000):
        message = ATTACKS[attack](size)
        costs = []
        for _ in range(3):
            begun = time.process_time()
            assert features(message)
            costs.append(time.process_time() - begun)
        least.append(min(costs))
    assert least[1] <= 16 * least[0] + 0.05


def test_headers_of_any_length_are_read_to_their_end():
    long = b"".join(b"X-Trace-%d: %s\n" % (i, b"a" * 900) for i in range(400))
    late = (
        long
        + b"Message-ID: <late@example.org>\nSubject: behind\nDate: Mon, 05 Feb 2024 10:00:00 +0000\n\nbody"
    )
    parsed = read(late)
    assert (parsed.id, parsed.subject, parsed.plain) == ("late@example.org", "behind", "body")


@pytest.mark.parametrize(
    ("value", "parameters"),
    [
        ('text/plain; charset="utf-8"', {"charset": "utf-8"}),
        ("text/plain; a=1; b = 2 ;c", {"a": "1", "b": "2"}),
        (r'x/y; name="a \"b\"; c"; d=e', {"name": 'a "b"; c', "d": "e"}),
        ("x/y; name*0*=utf-8''%C3%84; name*1=b", {"name": "Äb"}),
    ],
)
def test_parameters_of_a_header(value, parameters):
    assert content(value)[1] == parameters


def test_encoded_words_and_prefixes():
    assert encoded_words("=?utf-8?q?a_b?= =?utf-8?b?w6Q=?= c") == "a bä c"
    assert encoded_words("=?utf-8?x?no?= =?broken") == "=?utf-8?x?no?= =?broken"
    assert without_prefixes("RE: Fwd : re[2]: AW: plan") == "plan"
    assert without_prefixes("Recipe: cake") == "Recipe: cake"


def test_addresses_and_the_names_beside_them():
    value = "'Ann Lee' <Ann@B.example>, ann@b.example; Bob (home) <not@an@address>, team@x.example"
    assert people(value) == (["ann@b.example", "team@x.example"], "Ann Lee' Bob home not@an@address")


@given(st.lists(st.sampled_from([b"\r", b"\n", b"A: b", b"c"]), max_size=12).map(b"".join))
def test_headers_end_at_the_first_blank_line_of_any_kind(raw):
    blank = re.search(rb"\r?\n\r?\n|\r\r", raw)
    assert is_whole(raw) == (blank is not None)
    assert read(raw).plain.encode() == (raw[blank.end() :] if blank else b"")


def test_huge_messages_are_quick():
    noise = random.Random(1).randbytes(1 << 20)
    large = [
        b"Subject: big\n\n" + b"word " * (4 << 20),
        b"Content-Type: text/html\n\n" + b"<p>" * (7 << 20),
        b"Content-Type: text/html\n\n" + b"<" * (20 << 20),
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * (5 << 20),
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; filename=x\n\n"
        + noise * 20,
        b"Subject: " + b"=?utf-8?q?a?= " * (1 << 20) + b"\n\n",
        b"X: " * (7 << 20),
        b"To: " + b"a@b.c, " * (3 << 20) + b"\n\n",
        b"Content-Type: text/plain; " + b'a="\\' * (5 << 20),
        b"\n" * (20 << 20),
        noise * 20,
    ]
    begun = time.process_time()
    for raw in large:
        assert features(raw)
    assert time.process_time() - begun < 20
