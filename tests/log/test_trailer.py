"""The last line of a commit: whole, torn, or another writer's."""

import gzip
import time
import zlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.log.wire.actions import CommitInfo, Protocol
from indextables.log.wire.files import body_of
from indextables.log.wire.files import LogFile
from indextables.log.wire.files import Torn, Unverified, Whole, seal, unpack, verify
from support.logs import METADATA, SCHEMA, add_of, foreign_add, text_of

COMMIT = seal(
    [Protocol(), METADATA, add_of(1), add_of(2)],
    CommitInfo("WRITE", 5, "c1", "c0", num_files=2),
    seq=3,
    schema=SCHEMA,
)
FILE = LogFile("commit", 3, 18, "_transaction_log/000000000000000003.json")


def test_the_trailer_is_the_last_line_and_counts_and_checks_everything_before_it():
    """Nothing else has to be read to know that a commit is whole."""
    *body, last = COMMIT.splitlines(keepends=True)
    info = orjson.loads(last)["commitInfo"]
    assert info["actions"] == len(body) == 4
    assert info["crc32"] == zlib.crc32(b"".join(body))
    assert info["numFiles"] == 2
    assert isinstance(verify(COMMIT), Whole)


def test_a_commit_cut_at_any_byte_is_not_whole():
    """Only the newline at the very end may be missing."""
    assert isinstance(verify(COMMIT[:-1]), Whole)
    for size in range(len(COMMIT) - 1):
        assert not isinstance(verify(COMMIT[:size]), Whole), size


@given(st.integers(0, len(COMMIT) - 2), st.integers(1, 255))
def test_a_changed_byte_never_passes_as_the_same_commit(position, change):
    """A flip inside the actions is found by the checksum; one in the trailer changes what it says."""
    damaged = bytearray(COMMIT)
    damaged[position] ^= change
    verdict = verify(bytes(damaged))
    start_of_trailer = COMMIT.rfind(b"\n", 0, -1) + 1
    if position < start_of_trailer - 1:
        assert isinstance(verdict, Torn)
    else:
        assert not (isinstance(verdict, Whole) and verdict.info == verify(COMMIT).info)


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n\r\n"])
def test_an_empty_file_is_torn(data):
    """Somebody created it and never wrote it."""
    assert verify(data) == Torn("the file is empty", 1)


def test_a_line_left_out_or_doubled_is_torn_and_says_where():
    """The line named is the trailer's: it is the one that does not fit."""
    lines = COMMIT.splitlines(keepends=True)
    assert verify(b"".join(lines[:2] + lines[3:])).line == 4
    assert verify(b"".join([*lines[:3], lines[2], *lines[3:]])).line == 6


@pytest.mark.parametrize(
    "lines",
    [
        [foreign_add(1)],
        [{"commitInfo": {"timestamp": 1, "operation": "WRITE"}}, foreign_add(1)],
        [foreign_add(1), {"commitInfo": {"timestamp": 1}}],
    ],
)
def test_a_commit_without_our_trailer_is_unverified(lines):
    """Other writers know nothing of it."""
    assert verify(text_of(lines)) == Unverified()


@pytest.mark.parametrize("prefix", [b"", b"\x01\x01"])
def test_compressed_commits_are_read_like_plain_ones(prefix):
    """Plain gzip, and gzip behind the two marker bytes other writers put in front."""
    packed = prefix + gzip.compress(COMMIT)
    assert unpack(packed) == COMMIT
    assert isinstance(body_of(FILE, packed).verdict, Whole)


@pytest.mark.parametrize("cut", [3, 12, 40, -1, -9])
def test_a_compressed_commit_that_is_cut_is_torn(cut):
    """Never an exception from the decompressor, never half of the lines."""
    body = body_of(FILE, gzip.compress(COMMIT)[:cut])
    assert isinstance(body.verdict, Torn)
    assert body.data == b""


GARBAGE = {
    "newlines": lambda: b"\n" * 20_000_000,
    "spaces": lambda: b" \r\n" * 5_000_000,
    "one letter a line": lambda: b"x\n" * 10_000_000,
    "a commit among newlines": lambda: COMMIT.join([b"\n" * 10_000_000] * 2),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", GARBAGE)
def test_a_huge_file_of_nothing_is_torn_at_once(name, packed):
    """Its lines are never looked at one by one."""
    text = GARBAGE[name]()
    raw = gzip.compress(text, 1) if packed else text
    started = time.process_time()
    body = body_of(FILE, raw)
    assert time.process_time() - started < 2
    assert isinstance(body.verdict, Torn)
    assert body.data == b"" or body.data.isspace()


def test_a_file_that_unpacks_to_far_more_than_a_log_is_torn_before_it_fills_the_memory():
    """Each of its members is harmless; together they are a bomb."""
    bomb = gzip.compress(b"\n" * (8 << 20), 9) * 20
    started = time.process_time()
    verdict = body_of(FILE, bomb).verdict
    assert time.process_time() - started < 2
    assert isinstance(verdict, Torn)
    assert "200 times" in verdict.reason


def test_blank_lines_are_no_reason_to_refuse_a_commit():
    """Other writers may leave some, and a checksum counts them."""
    foreign = b"\n\r\n" * 1000 + text_of([foreign_add(1)]) + b"\n" * 1000
    assert body_of(FILE, gzip.compress(foreign)).verdict == Unverified()
    assert isinstance(verify(COMMIT + b"\r\n" * 1000), Whole)
