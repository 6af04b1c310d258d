"""Bytes of a real log flipped, cut and shuffled: an exact repair or a clear error, and nothing else."""

from __future__ import annotations

import os
import random
from pathlib import Path
from uuid import uuid4

import pytest

from indextables.log.transaction_log import TransactionLog
from indextables.ops.repair import RepairResult, plan_repair, repair
from indextables.storage import LogStore, open_store
from support.damage import RealTable, foreign_add, foreign_log, foreign_metadata, make_table, remove_one

LOG, TARGET = "_transaction_log", "_transaction_log_repaired"
LONG_RUN = int(os.environ.get("FUZZ_ROUNDS", "5000"))
rounds = pytest.mark.parametrize(
    "rounds",
    [80, pytest.param(LONG_RUN, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)


def flip(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random_.randrange(8))]) + data[at + 1 :]


def cut_tail(data: bytes, random_: random.Random) -> bytes:
    return data[: random_.randrange(len(data))]


def cut_middle(data: bytes, random_: random.Random) -> bytes:
    low, high = sorted(random_.choices(range(len(data) + 1), k=2))
    return data[:low] + data[high:]


def cut_lines(data: bytes, random_: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    low, high = sorted(random_.choices(range(len(lines) + 1), k=2))
    return b"".join(lines[:low] + lines[high:])


def shuffle(data: bytes, random_: random.Random) -> bytes:
    low = random_.randrange(len(data))
    part = list(data[low : low + random_.randrange(2, 64)])
    random_.shuffle(part)
    return data[:low] + bytes(part) + data[low + len(part) :]


def shuffle_lines(data: bytes, random_: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    random_.shuffle(lines)
    return b"".join(lines)


def repeat(data: bytes, random_: random.Random) -> bytes:
    low, high = sorted(random_.choices(range(len(data) + 1), k=2))
    return data[:high] + data[low:high] + data[high:]


def overwrite(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data))
    return data[:at] + random_.randbytes(random_.randrange(1, 32)) + data[at:]


def zeros(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data))
    return data[:at] + b"\0" * (len(data) - at)


DAMAGES = (flip, cut_tail, cut_middle, cut_lines, shuffle, shuffle_lines, repeat, overwrite, zeros)


def damage(store: LogStore, keys: list[str], random_: random.Random) -> None:
    """One to three damages, often to one file, sometimes to several, sometimes one file in place of another."""
    for _ in range(random_.choice([1, 1, 1, 2, 3])):
        key = random_.choice(keys)
        data = store.get(key)
        if random_.random() < 0.05:
            data = store.get(random_.choice(keys))
        elif data:
            data = random_.choice(DAMAGES)(data, random_)
        store.put(key, data)


def load_into_memory(table: RealTable) -> tuple[LogStore, list[str]]:
    store = open_store(f"memory://{uuid4().hex}")
    for path in sorted(table.root.rglob("*")):
        if path.is_file():
            store.put(str(path.relative_to(table.root)), path.read_bytes())
    return store, [meta.key for meta in store.list(f"{LOG}/")]


def run(store: LogStore, seed: int) -> RepairResult:
    before = {meta.key: store.get(meta.key) for meta in store.list(f"{LOG}/")}
    result = repair(f"{store.uri}/{LOG}", f"{store.uri}/{TARGET}")
    assert {meta.key: store.get(meta.key) for meta in store.list(f"{LOG}/")} == before
    if seed % 8 == 0:
        assert (plan_repair(f"{store.uri}/{LOG}").error is None) == result.ok
    if not result.ok:
        assert result.row()[2:6] == (-1, 0, 0, 0)
        assert len(result.status) > len("ERROR: ") + 10
        assert not [*store.list(f"{TARGET}/")]
    return result


@rounds
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_fuzz_a_damaged_log_is_repaired_exactly_or_refused(tmp_path: Path, rounds: int, form: str):
    """No traceback of a foreign kind, no hang, and never a split more or less than before."""
    table = make_table(
        tmp_path / "t", commits=5, splits=2, checkpoints=(2, 4), length=1100, checkpoint_format=form
    )
    remove_one(table)
    if form == "parquet":
        for version in range(2):  # as after a cleanup: the checkpoints are needed
            table.commit(version).unlink()
    expected = table.snapshot()
    originals = {path.name: path.read_bytes() for path in table.log.iterdir()}
    store, keys = load_into_memory(table)
    outcomes = {"SUCCESS": 0, "ERROR": 0}
    for seed in range(rounds):
        damage(store, keys, random.Random(seed))
        result = run(store, seed)
        outcomes[result.status.partition(":")[0]] += 1
        if result.ok:
            repaired = TransactionLog(store, directory=TARGET).snapshot()
            assert result.source_version == expected.version, seed
            assert (result.total_splits, result.missing_splits) == (expected.num_files, 0), seed
            for name in ("key", "size", "seq", "modification_time", "partition_values"):
                assert repaired.column(name).equals(expected.column(name)), seed
            assert repaired.metadata == expected.metadata, seed
            assert dict(repaired.txns) == dict(expected.txns), seed
        for meta in [*store.list(f"{TARGET}/")]:
            store.delete(meta.key)
        for key in keys:
            store.put(key, originals[key.rpartition("/")[2]])
    assert min(outcomes.values()) > rounds // 20, "both outcomes are exercised"


@rounds
def test_fuzz_a_damaged_log_of_another_writer_is_read_or_refused(tmp_path: Path, rounds: int):
    """Without checksums a changed name cannot be seen, but nothing crashes and every split is accounted for."""
    stats = {"numRecords": 3, "minValues": {"id": 1, "text": "a"}, "maxValues": {"id": 9, "text": "é"}}
    adds = [
        foreign_add(tmp_path / "t", f"p {n}.parquet", stats=stats, tags={"n": str(n)}) for n in range(6)
    ]
    commits = [
        [foreign_metadata()],
        adds[:2],
        [*adds[2:4], {"remove": {"path": "p%200.parquet"}}],
        adds[4:],
    ]
    table = foreign_log(tmp_path / "t", commits)
    originals = {path.name: path.read_bytes() for path in table.log.iterdir()}
    store, keys = load_into_memory(table)
    for seed in range(rounds):
        damage(store, keys, random.Random(seed))
        result = run(store, seed)
        if result.ok:
            repaired = TransactionLog(store, directory=TARGET).snapshot()
            assert repaired.num_files == result.valid_splits, seed
            assert result.valid_splits + result.missing_splits == result.total_splits, seed
        for meta in [*store.list(f"{TARGET}/")]:
            store.delete(meta.key)
        for key in keys:
            store.put(key, originals[key.rpartition("/")[2]])
