"""What reading a body takes: at most 64 KB and 32 times its bytes, accepted or refused, whatever its shape."""

import os
import random
import sys
from pathlib import Path

import orjson
import pytest

from feedrank.learners import InputError, kernel
from feedrank.learners.kernel import body_cost as specification

SIZE = 2**20
SLACK = 2**20  # the allocator's own, which keeps some pages back
SHAPES = {
    "empty features": b'{"features":{}},',
    "empty features with blanks": b'{"features": { } } ,',
    "no names": b'{"features":[]},',
    "one name": b'{"features":["a"]},',
    "one number": b'{"features":[1]},',
    "one pair": b'{"features":{"a":1}},',
    "escaped names": b'{"features":{"\\u0061b":1}},',
    "quotes in names": b'{"features":["\\"\\"\\"\\"\\""]},',
    "commas in names": b'{"features":[",,,,,,,,,,,,,,,,,,"]},',
    "empty objects": b"{},",
    "empty lists": b"[],",
    "nested lists": b"[[[[[[]]]]]],",
    "open lists": b"[",
    "deep lists": b"[" * 3_000 + b"]" * 3_000 + b",",
    "open objects": b'{"":',
    "tiny objects": b'{"":0},',
    "tiny objects with names": b'{"ab":0},',
    "tiny lists": b"[0],",
    "numbers": b"1,",
    "large numbers": b"1234,",
    "fractions": b"1.5,",
    "odd numbers": b"1e400,",
    "texts": b'"ab",',
    "shortest texts": b'"",',
    "texts beyond ASCII": '"\N{GRINNING FACE}",'.encode(),
    "words": b"null,",
    "quotes": b'"',
    "backslashes": b'"\\',
    "commas": b",",
    "twice the same name": b'{"a":1,"a":1},',
}


def bodies(shape):
    """The shape repeated: in a batch, in the features of one instance, and bare."""
    many = SHAPES[shape] * (SIZE // len(SHAPES[shape]))
    yield b'{"instances":[' + many.rstrip(b",") + b"]}"
    yield b'{"features":[' + many.rstrip(b",") + b"]}"
    yield b'{"features":{' + many.rstrip(b",") + b"}}"


def read(data):
    """As the service reads: the kernel where it can, else orjson."""
    try:
        if kernel.loads(data) is None:
            kernel.check_body(data)
            orjson.loads(data)
    except (InputError, orjson.JSONDecodeError):
        pass


def peak(data):
    """Bytes by which a process grew while it read the body: of its own, so that nothing is there to be used again."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            before = status("VmRSS")
            read(data)
            os.write(writing, b"%d" % (status("VmHWM") - before))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return int(pipe.read())


def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_body_takes_more_than_its_length_allows(shape):
    read(b'{"features":{"a":1}}')  # what is loaded once is no part of it
    for data in bodies(shape):
        assert peak(data) <= 2**16 + 32 * len(data) + SLACK


@pytest.mark.parametrize(
    "one",
    [
        b'{"features":{"a":1},"label":"b"},',
        b'{"features":{},"label":"b"},',
        b'{"id":"d1","features":[1,2]},',
        b'{"text":"a"},',
    ],
)
def test_useful_bodies_are_read(one):
    data = b'{"instances":[' + (one * 20_000)[:-1] + b"]}"
    kernel.check_body(data)
    kernel.loads(data)
    numbers = b'{"features":[' + (b"1," * 100_000)[:-1] + b"]}"
    kernel.check_body(numbers)
    assert kernel.NAME == "numpy" or len(kernel.loads(numbers)["features"]) == 100_000


def test_both_kernels_count_the_same():
    draw = random.Random(7)
    parts = [*SHAPES.values(), b" ", b"}", b"]", b"E", "ü".encode(), b"\\"]
    for _ in range(2_000):
        data = b"".join(draw.choices(parts, k=draw.randrange(12)))
        assert kernel.body_bytes(data) == specification.body_bytes(data), data


def test_what_is_refused_says_so():
    with pytest.raises(InputError, match="32 times its bytes"):
        kernel.loads(b'{"a":[' + b"[[[]]]," * 5_000)
