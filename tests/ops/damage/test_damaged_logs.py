"""Every kind of damage, done to a real log: repair rebuilds the table exactly, or names file and line."""

from __future__ import annotations

import gzip
import json
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from indextables.errors import RepairError
from support.logs import same_state
from indextables.ops.repair import state as rebuild, plan_repair, repair
from indextables.ops.repair.unpack import read_chunks
from support.damage import RealTable, edit_lines, make_table, remove_one

COMMITS, CHECKPOINTS = 6, (2, 4)


@pytest.fixture
def table(tmp_path: Path) -> RealTable:
    """Versions 0 to 6 with two splits each from 1 on, checkpoints at 2 and 4."""
    return make_table(tmp_path / "my table", commits=COMMITS, checkpoints=CHECKPOINTS, length=1500)


@dataclass(frozen=True)
class Case:
    """A damage and what must come of it: `error` holds texts of the ERROR row, () means it survives."""

    why: str
    damage: Callable[[RealTable], None]
    error: tuple[str, ...] = ()
    note: str | None = None
    """A text that the plan's notes or its list of unreadable places must hold."""


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def cut(path: Path, keep: float | int) -> None:
    data = path.read_bytes()
    write(path, data[: int(len(data) * keep) if isinstance(keep, float) else keep])


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to("/no such disk/commit.json")


def insert_line(path: Path, line: bytes, at: int = 1) -> None:
    edit_lines(path, lambda lines: [*lines[:at], line, *lines[at:]])


def reseal(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Changes a file and gives it a valid trailer again, as a writer with a bug would."""
    lines = path.read_bytes().splitlines(keepends=True)
    body, trailer = change(lines[:-1]), json.loads(lines[-1])
    trailer["commitInfo"] |= {"actions": len(body), "crc32": zlib.crc32(b"".join(body))}
    write(path, b"".join(body) + json.dumps(trailer, separators=(",", ":")).encode() + b"\n")


def drop_adds(path: Path) -> None:
    """Takes one add out of a file so that only its count of files betrays it."""

    def without_one(lines: list[bytes]) -> list[bytes]:
        at = next(i for i, line in enumerate(lines) if line.startswith(b'{"add"'))
        return lines[:at] + lines[at + 1 :]

    reseal(path, without_one)


def without_checkpoints(table: RealTable) -> None:
    for version in CHECKPOINTS:
        table.checkpoint(version).unlink()
    table.pointer.unlink()


def in_twenty_digits(table: RealTable) -> None:
    for path in [*table.log.glob("*.json")]:
        version, rest = path.name.split(".", 1)
        path.rename(table.log / f"{int(version):020d}.{rest}")


def also(*damages: Callable[[RealTable], None]) -> Callable[[RealTable], None]:
    def all_of_them(table: RealTable) -> None:
        for damage in damages:
            damage(table)

    return all_of_them


def pack(path: Path, prefix: bytes = b"") -> None:
    write(path, prefix + gzip.compress(path.read_bytes()))


HALF = "é".encode()[:1]
NAME = "{:018d}.json"

CASES = [
    Case("nothing is wrong", lambda t: None),
    # commits
    Case("a commit cut in the middle of a line", lambda t: cut(t.commit(5), 0.5), (NAME.format(5), "line")),
    Case("a commit without its last line", lambda t: edit_lines(t.commit(6), lambda x: x[:-1]),
         (NAME.format(6), "cut off")),
    Case("an empty commit", lambda t: write(t.commit(6), b""), (NAME.format(6), "empty")),
    Case("a commit of blanks", lambda t: write(t.commit(6), b" \n \n"), (NAME.format(6), "empty")),
    Case("garbage in the middle", lambda t: insert_line(t.commit(5), b"\x00\xff garbage\n", 2),
         (NAME.format(5), "line 3", "not JSON")),
    Case("a line twice", lambda t: edit_lines(t.commit(5), lambda x: [x[0], *x]), (NAME.format(5), "checksum")),
    Case("half a UTF-8 character in a path",
         lambda t: edit_lines(t.commit(5), lambda x: [l.replace(b"part-", HALF + b"part-") for l in x]),
         (NAME.format(5), "checksum")),
    Case("one flipped bit in a number", lambda t: edit_lines(t.commit(5), lambda x: [
         l.replace(b'"size":', b'"size":1') for l in x]), (NAME.format(5), "checksum")),
    Case("two lines change places", lambda t: edit_lines(t.commit(5), lambda x: [x[1], x[0], *x[2:]]),
         (NAME.format(5), "checksum")),
    Case("a gap", lambda t: t.commit(5).unlink(), (NAME.format(5), "version 5 is missing")),
    Case("the newest commits but one are gone", lambda t: [t.commit(v).unlink() for v in (3, 4, 5)],
         (NAME.format(5), "version 5 is missing")),
    Case("a commit from a future version", lambda t: shutil.copy(t.commit(6), t.commit(60)),
         (NAME.format(7), "version 7 is missing", "version 60")),
    Case("a version beyond 64 bits", lambda t: shutil.copy(t.commit(6), t.log / f"{'9' * 20}.json"),
         ("version 7 is missing",)),
    Case("a commit of another log", lambda t: reseal_parent(t.commit(5)), (NAME.format(5), "two different logs")),
    Case("a writer that lost a split, and counted it", lambda t: drop_adds(t.commit(5)),
         (NAME.format(5), "counted 10 files")),
    # commits that a checkpoint makes unnecessary
    Case("a torn commit below a checkpoint", lambda t: cut(t.commit(1), 0.5), note=NAME.format(1)),
    Case("no commits below a checkpoint", lambda t: [t.commit(v).unlink() for v in (0, 1)], note="checkpoint"),
    Case("only the newest checkpoint and what follows",
         lambda t: [t.commit(v).unlink() for v in range(5)] + [t.checkpoint(2).unlink()], note="checkpoint"),
    # two spellings of one version
    Case("one version in two widths, the same", lambda t: shutil.copy(t.commit(5), t.commit(5, 20)),
         note="18 and 20 digits"),
    Case("one version in two widths, different", lambda t: shutil.copy(t.commit(4), t.commit(5, 20)),
         ("version 5 exists twice", NAME.format(5))),
    Case("one version in two widths, one torn", also(
         lambda t: shutil.copy(t.commit(5), t.commit(5, 20)), lambda t: cut(t.commit(5, 20), 0.5)),
         note=f"{5:020d}.json"),
    Case("twenty digits everywhere", in_twenty_digits),
    Case("gzip", lambda t: [pack(t.commit(v)) for v in range(7)]),
    Case("gzip behind two marker bytes", lambda t: [pack(t.commit(v), b"\x01\x01") for v in range(7)]),
    Case("gzip cut short", lambda t: (pack(t.commit(5)), cut(t.commit(5), 0.7)), (NAME.format(5), "compressed")),
    # checkpoints
    Case("a torn checkpoint", lambda t: cut(t.checkpoint(4), 0.5), note="4.checkpoint.json"),
    Case("an empty checkpoint", lambda t: write(t.checkpoint(4), b""), note="4.checkpoint.json"),
    Case("all checkpoints torn", lambda t: [cut(t.checkpoint(v), 0.5) for v in CHECKPOINTS], note="2.checkpoint"),
    Case("all checkpoints torn, first commit gone",
         lambda t: [t.commit(0).unlink(), *(cut(t.checkpoint(v), 0.5) for v in CHECKPOINTS)],
         (NAME.format(0), "version 0 is missing", "4.checkpoint.json")),
    Case("newest checkpoint torn, older one intact, commits between",
         lambda t: [t.commit(0).unlink(), cut(t.checkpoint(4), 0.5)], note="2.checkpoint.json"),
    Case("a checkpoint for a version that does not exist", lambda t: shutil.copy(t.checkpoint(4), t.checkpoint(9)),
         (NAME.format(7), "version 7 is missing", "version 9")),
    Case("a checkpoint that disagrees with the log", lambda t: forge_checkpoint(t), ("disagree", "4.checkpoint.json")),
    Case("a checkpoint under another's name", lambda t: shutil.copy(t.checkpoint(2), t.checkpoint(4)),
         note="4.checkpoint.json: it is the state of version 2"),
    Case("a checkpoint under a future name, older commits gone", lambda t: [
         t.checkpoint(4).rename(t.checkpoint(9)), t.checkpoint(2).unlink(), *(t.commit(v).unlink() for v in range(5))],
         ("9.checkpoint.json", "it is the state of version 4")),
    Case("no checkpoint at all", without_checkpoints),
    # the pointer
    Case("pointer missing", lambda t: t.pointer.unlink(), note="_last_checkpoint is missing"),
    Case("pointer garbled", lambda t: write(t.pointer, b"\x00{"), note="_last_checkpoint is garbled"),
    Case("pointer without a version", lambda t: write(t.pointer, b'{"version":true}'), note="garbled"),
    Case("pointer pointing ahead", lambda t: write(t.pointer, b'{"version":9}'), ("version 7 is missing", "version 9")),
    Case("pointer to a version without checkpoint", lambda t: write(t.pointer, b'{"version":3}')),
    # metadata and protocol
    Case("metadata missing", also(without_checkpoints, lambda t: reseal(t.commit(0), lambda x: x[:1])),
         (NAME.format(0), "metaData")),
    Case("protocol too new", also(without_checkpoints, lambda t: reseal(t.commit(0), lambda x: [
         x[0].replace(b'"minReaderVersion":2', b'"minReaderVersion":99'), *x[1:]])), ("protocol version 99",)),
    Case("an unknown feature for writers", also(without_checkpoints, lambda t: reseal(t.commit(0), lambda x: [
         x[0].replace(b"commitTrailer", b'commitTrailer","columnCrypt'), *x[1:]])), ("columnCrypt",)),
    # names without a file behind them
    Case("the newest commit is a link to nowhere", lambda t: dangle(t.commit(6)), (NAME.format(6), "is missing")),
    Case("the newest commit is a directory", lambda t: (t.commit(6).unlink(), t.commit(6).mkdir()),
         (NAME.format(6), "is missing")),
    # other things in the directory
    Case("files that are no log files", lambda t: write(t.log / "notes.txt", b"hello"), note="notes.txt"),
]  # fmt: skip


def reseal_parent(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    trailer = json.loads(lines[-1])
    trailer["commitInfo"]["parent"] = "0" * 32
    write(path, b"".join(lines[:-1]) + json.dumps(trailer, separators=(",", ":")).encode() + b"\n")


def forge_checkpoint(table: RealTable) -> None:
    """An intact checkpoint that names a size no commit ever gave."""
    reseal(
        table.checkpoint(4),
        lambda lines: [line.replace(b'"size":', b'"size":9') for line in lines],
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why)
def test_damage_is_repaired_exactly_or_named(case: Case, table: RealTable):
    """Whatever happened to the log: the same table in a new log, or an ERROR that says where; the source stays."""
    expected = table.snapshot()
    case.damage(table)
    before = table.seal()
    plan = plan_repair(table.log)
    assert table.seal() == before, "a plan writes nothing"
    result = repair(table.log, table.target)
    after = table.seal()
    assert {key: value for key, value in after.items() if key in before} == before
    if case.error:
        assert result.status.startswith("ERROR: ")
        assert result.row()[2:6] == (-1, 0, 0, 0)
        for text in case.error:
            assert text in result.status
        assert after == before, "a failed repair leaves nothing behind"
        assert plan.error is not None
        with pytest.raises(type(plan.error)):
            plan.check()
        return
    assert result.row()[2:] == (COMMITS, 12, 12, 0, "SUCCESS")
    said = " ".join([*plan.notes, *map(str, plan.unreadable)])
    assert case.note is None or case.note in said
    assert not any(finding.needed for finding in plan.unreadable)
    repaired = table.snapshot("_transaction_log_repaired")
    assert plan.kept == tuple(repaired.column("key").to_pylist())
    for name in ("key", "size", "seq", "modification_time", "data_change", "schema_id", "extra"):
        assert repaired.column(name).equals(expected.column(name)), name
    assert repaired.metadata == expected.metadata
    assert repaired.protocol == expected.protocol
    assert dict(repaired.txns) == dict(expected.txns)


def test_a_readded_path_is_there_once_and_a_removed_one_is_not(table: RealTable):
    """Add, remove and add of one path again: the last action on it decides."""
    from indextables.log.commit.intent import Append, CommitPlan

    gone, back = remove_one(table, 0), remove_one(table, 0)
    split = next(s for s in table.transaction_log().snapshot(version=6).splits() if s.path == back)
    table.transaction_log().commit(lambda _: CommitPlan(Append(), "APPEND", (split.to_add(),)))
    before = table.seal()
    assert repair(table.log, table.target).row()[2:] == (9, 11, 11, 0, "SUCCESS")
    keys = table.snapshot("_transaction_log_repaired").column("key").to_pylist()
    assert keys.count(back) == 1
    assert gone not in keys
    assert table.seal().items() >= before.items()


def test_a_target_that_is_not_empty_raises_before_anything_is_read_or_written(table: RealTable):
    """Somebody's files are in the target: they stay, and so does everything else."""
    table.target.mkdir()
    (table.target / "precious.txt").write_text("mine")
    before = table.seal()
    with pytest.raises(RepairError, match="Target location already exists and is not empty"):
        repair(table.log, table.target)
    assert table.seal() == before


@pytest.mark.parametrize(
    "target", ["_transaction_log", "_transaction_log/new", "", "../my table/_transaction_log"]
)
def test_source_and_target_must_be_apart(table: RealTable, target: str):
    """A target that is, holds or lies in the source would have to write into it."""
    before = table.seal()
    with pytest.raises(RepairError, match=r"overlap|not empty"):
        repair(table.log, table.root / target)
    assert table.seal() == before


@pytest.mark.parametrize(
    ("line", "blanks", "reason"),
    [
        (b"", 20_000_000, "the file is empty"),
        (b'{"txn":{}}', 20_000_000, "most of them blank"),
        (b"", 100_000_000, "200 times"),
    ],
)
def test_a_huge_commit_of_nothing_is_named_at_once(
    table: RealTable, line: bytes, blanks: int, reason: str
):
    """Packed it is small; neither its size nor its many lines keep a plan waiting."""
    text = line.join([b"\n" * (blanks // 2)] * 2)
    write(table.commit(COMMITS), gzip.compress(text, 1))
    started = time.process_time()
    plan = plan_repair(table.log)
    assert time.process_time() - started < 5
    assert plan.error is not None
    assert [found.line for found in plan.unreadable if reason in found.reason] == [1]


def test_repair_judges_blank_lines_as_a_reader_does(table: RealTable):
    """A file is read in pieces, and one that ends in blank lines is whole or not by the same rule."""
    trailed = table.commit(COMMITS).read_bytes() + b"\n" * (20 << 10)
    write(table.commit(COMMITS), trailed)
    assert plan_repair(table.log).error is None
    write(table.commit(COMMITS), b"\n" + trailed)
    assert plan_repair(table.log).error is not None


def test_a_large_log_is_repaired_from_pieces_as_from_whole_files(table: RealTable, monkeypatch):
    """A piece may end in any line, and every line of it counts."""
    whole = plan_repair(table.log)
    for size in (1500, 4000, 9000):
        monkeypatch.setattr(rebuild, "_LARGE", 1000)
        monkeypatch.setattr(rebuild, "read_chunks", partial(read_chunks, at_once=size))
        plan = plan_repair(table.log)
        assert plan.error is None
        assert plan.snapshot is not None
        assert same_state(plan.snapshot, whole.snapshot)
