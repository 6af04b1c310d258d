"""Replacing a log by its repaired copy: one of the two is there at every moment, and a dead run can go either way."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from indextables.config import Config
from indextables.errors import LogReplacedError, RepairError
from indextables.log.commit.attempt import Publisher
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.files import LogNames
from indextables.ops.repair import repair
from indextables.ops.repair.log_location import LogLocation, location_of
from indextables.ops.repair.swap import (
    Moves,
    backup_of,
    by_hand,
    exchange_durably,
    rename_durably,
    replace_log,
    undo_replace,
)
from indextables.storage import open_store
from support import damage
from support.damage import RealTable, make_table, new_split
from support.faults import SimulatedCrash
from support.interleave import InterleavedStore


needs_held_directories = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="only Linux exchanges directories, and holds them"
)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> RealTable:
    """A table of version 3 and its repaired log."""
    table = make_table(tmp_path_factory.mktemp("swap") / "t", commits=3, length=1100)
    assert repair(table.log, table.target).status == "SUCCESS"
    return table


@pytest.fixture
def table(original: RealTable, tmp_path: Path) -> RealTable:
    return fresh_repair(original, tmp_path / "t")


def seal(path: Path) -> dict:
    """A log as its writers left it: the fence that keeps them out is no part of it."""
    found = damage.seal(path)
    return {name: what for name, what in found.items() if not is_fence(path / name)}


def is_fence(file: Path) -> bool:
    return b'"operation":"REPLACE LOG"' in file.read_bytes()


def append(table: RealTable, number: int) -> None:
    split = new_split(table.root, number)
    table.transaction_log().commit(lambda _: CommitPlan(Append(), "APPEND", (split,)))


def moved(original: RealTable, to: Path) -> RealTable:
    shutil.copytree(original.root, to)
    return RealTable(to)


def places(table: RealTable) -> tuple[LogLocation, LogLocation]:
    return location_of(table.log, open_store), location_of(table.target, open_store)


def backup(table: RealTable) -> Path:
    return table.root / "_transaction_log_backup"


def no_exchange(_one: Path, _two: Path) -> bool:
    return False


def test_after_the_swap_the_table_has_the_repaired_log_and_the_old_one_is_beside_it(table: RealTable):
    """Every split is still there, the old log is whole in the backup, and undo puts everything back."""
    old, new, keys = seal(table.log), seal(table.target), table.snapshot().column("key")
    swap = replace_log(*places(table))
    assert (swap.done, swap.backup) == ("replaced", str(backup(table)))
    assert (seal(table.log), seal(backup(table))) == (new, old)
    assert not table.target.exists()
    assert table.snapshot().column("key").equals(keys)
    assert replace_log(*places(table)).done == "already replaced"
    assert undo_replace(places(table)[0]).done == "undone"
    assert (seal(table.log), seal(table.target)) == (old, new)
    assert not backup(table).exists()
    assert undo_replace(places(table)[0]).done == "nothing to undo"


class CrashAt:
    """Moves that kill the process before or after the n-th one."""

    def __init__(self, at: int, when: str, *, exchange=exchange_durably) -> None:
        self.at, self.when, self.count = at, when, 0
        self._exchange = exchange
        self.moves = Moves(self._rename, self._do_exchange)

    def _rename(self, one: Path, two: Path) -> None:
        self._step(lambda: rename_durably(one, two))

    def _do_exchange(self, one: Path, two: Path) -> bool:
        return self._step(lambda: self._exchange(one, two))

    def _step(self, move):
        number, self.count = self.count, self.count + 1
        if (number, "before") == (self.at, self.when):
            raise SimulatedCrash
        done = move()
        if (number, "after") == (self.at, self.when):
            raise SimulatedCrash
        return done


def is_whole(table: RealTable, old: dict, new: dict) -> bool:
    """The old log is somewhere, byte for byte, and what is in the log's place is one of the two."""
    found = [seal(path) for path in (table.log, backup(table), table.target) if path.exists()]
    return old in found and new in found and (not table.log.exists() or seal(table.log) in (old, new))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("exchange", [exchange_durably, no_exchange], ids=["exchange", "gap"])
@pytest.mark.parametrize("way_out", ["again", "undo"])
def test_a_swap_that_dies_at_any_step_can_be_finished_or_undone(
    original: RealTable, tmp_path: Path, when: str, exchange, way_out: str
):
    """Source or backup is whole at every moment; with an exchange, so is the log in its location."""
    steps = 2 if exchange is exchange_durably else 5
    for at in range(steps):
        table = fresh_repair(original, tmp_path / f"{at}")
        old, new = seal(table.log), seal(table.target)
        crash = CrashAt(at, when, exchange=exchange)
        with pytest.raises(SimulatedCrash):
            replace_log(*places(table), allow_gap=True, moves=crash.moves)
        assert is_whole(table, old, new)
        assert exchange is no_exchange or table.log.exists()
        moves = Moves(rename_durably, exchange)
        if way_out == "again":
            replace_log(*places(table), allow_gap=True, moves=moves)
            assert (seal(table.log), seal(backup(table))) == (new, old)
        else:
            undo_replace(places(table)[0], allow_gap=True, moves=moves)
            assert seal(table.log) == old
            assert seal(table.target) == new
            assert not backup(table).exists()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("exchange", [exchange_durably, no_exchange], ids=["exchange", "gap"])
def test_an_undo_that_dies_at_any_step_can_be_finished(
    original: RealTable, tmp_path: Path, when: str, exchange
):
    """Run it again: the old log is in its place, the repaired one where it was written."""
    steps = 2 if exchange is exchange_durably else 3
    for at in range(steps):
        table = fresh_repair(original, tmp_path / f"{at}")
        old, new = seal(table.log), seal(table.target)
        moves = Moves(rename_durably, exchange)
        replace_log(*places(table), allow_gap=True, moves=moves)
        with pytest.raises(SimulatedCrash):
            undo_replace(
                places(table)[0], allow_gap=True, moves=CrashAt(at, when, exchange=exchange).moves
            )
        assert is_whole(table, old, new)
        undo_replace(places(table)[0], allow_gap=True, moves=moves)
        assert (seal(table.log), seal(table.target)) == (old, new)
        assert not backup(table).exists()


def fresh_repair(original: RealTable, to: Path) -> RealTable:
    """A copy of the table, repaired where it is now."""
    table = moved(original, to)
    shutil.rmtree(table.target)
    assert repair(table.log, table.target).status == "SUCCESS"
    return table


def test_without_an_exchange_the_gap_must_be_allowed(table: RealTable):
    """Nothing has moved when the answer is no."""
    before = table.seal()
    with pytest.raises(RepairError, match="no log for a moment"):
        replace_log(*places(table), moves=Moves(rename_durably, no_exchange))
    assert table.seal() == before


def test_readers_see_the_old_or_the_new_log_at_every_moment(original: RealTable, tmp_path: Path):
    """A thread that opens the table again and again during fifty swaps always finds all its splits."""
    table = fresh_repair(original, tmp_path / "t")
    expected = table.snapshot().column("key").to_pylist()
    stop, problems, reads = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                found = table.snapshot()
                reads.append(found.version)
                if found.column("key").to_pylist() != expected:
                    problems.append(found)
            except Exception as error:
                problems.append(error)

    def wait_for_a_read(already: int) -> None:
        # else many swaps would fall into one opening of the table, which gives up after a few
        while len(reads) == already and not problems:
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(50):
            for swap in (lambda: replace_log(*places(table)), lambda: undo_replace(places(table)[0])):
                swap()
                wait_for_a_read(len(reads))
    finally:
        stop.set()
        reader.join()
    assert not problems
    assert {1, 3} <= set(reads)


def test_a_writer_that_was_live_during_the_swap_is_told(original: RealTable, tmp_path: Path):
    """LogReplacedError, and neither log has its commit."""
    table = fresh_repair(original, tmp_path / "t")
    old, new = seal(table.log), seal(table.target)
    log = table.transaction_log()

    def planner(_snapshot) -> CommitPlan:
        replace_log(*places(table))
        return CommitPlan(Append(), "APPEND", (new_split(table.root, 700),))

    with pytest.raises(LogReplacedError, match="replaced"):
        log.commit(planner)
    assert (seal(table.log), seal(backup(table))) == (new, old)
    assert log.snapshot().version == 1, "the same handle goes on with the new log"
    log.commit(lambda _: CommitPlan(Append(), "APPEND", (new_split(table.root, 701),)))


def test_no_commit_slips_in_before_the_exchange(original: RealTable, tmp_path: Path):
    """It is made before the fence, and stops the swap, or it is refused: neither log ever loses it."""
    table = fresh_repair(original, tmp_path / "t")
    old, new = seal(table.log), seal(table.target)
    refused = []

    def late_commit(one: Path, two: Path) -> bool:
        with pytest.raises(LogReplacedError, match="being replaced") as caught:
            append(table, 702)
        refused.append(caught.value)
        return exchange_durably(one, two)

    replace_log(*places(table), moves=Moves(rename_durably, late_commit))
    assert refused
    assert (seal(table.log), seal(backup(table))) == (new, old)
    append(table, 703)


def test_no_commit_slips_in_before_the_log_is_exchanged_back(original: RealTable, tmp_path: Path):
    """The same for undo: a commit acknowledged after its check would be in no table."""
    table = fresh_repair(original, tmp_path / "t")
    replace_log(*places(table))

    def late_commit(one: Path, two: Path) -> bool:
        with pytest.raises(LogReplacedError, match="being replaced"):
            append(table, 702)
        return exchange_durably(one, two)

    assert undo_replace(places(table)[0], moves=Moves(rename_durably, late_commit)).done == "undone"
    assert table.snapshot().version == 3
    append(table, 703)


@pytest.mark.parametrize("way_out", ["again", "undo"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_commit_just_before_a_swap_that_dies_is_in_the_table_afterwards(
    original: RealTable, tmp_path: Path, at: int, way_out: str
):
    """It comes between the comparison and the fence; both ways out are open."""
    table = fresh_repair(original, tmp_path / "t")
    log, repaired = places(table)
    store = InterleavedStore(log.store, lambda: append(table, 702))
    log = replace(log, store=store)
    with pytest.raises(RepairError, match="not a finished repair"):
        replace_log(log, repaired, moves=CrashAt(at, "after").moves)
    assert store.happened
    with suppress(RepairError):
        replace_log(*places(table)) if way_out == "again" else undo_replace(places(table)[0])
    assert table.snapshot().version == 4
    append(table, 703)


def test_a_commit_between_undos_check_and_its_fence_is_kept(original: RealTable, tmp_path: Path):
    """Undo says that it would lose it, and the repaired log goes on."""
    table = fresh_repair(original, tmp_path / "t")
    replace_log(*places(table))
    log = places(table)[0]
    store = InterleavedStore(log.store, lambda: append(table, 702))
    with pytest.raises(RepairError, match="1 commits were made since"):
        undo_replace(replace(log, store=store))
    assert store.happened
    assert table.snapshot().version == 2
    append(table, 703)


def test_undo_does_not_overwrite_what_lies_where_the_repaired_log_was(table: RealTable):
    """An error that says so, before anything moves."""
    replace_log(*places(table))
    table.target.mkdir()
    (table.target / "precious").write_text("mine")
    before = table.seal()
    with pytest.raises(RepairError, match="something is there already"):
        undo_replace(places(table)[0])
    assert table.seal() == before


def test_a_log_stays_as_it_is_when_a_cleanup_passes_a_swap_that_died(
    original: RealTable, tmp_path: Path
):
    """The fence says which repair it belongs to, whatever files of old versions are gone meanwhile."""
    table = fresh_repair(original, tmp_path / "t")
    with pytest.raises(SimulatedCrash):
        replace_log(*places(table), moves=CrashAt(1, "after").moves)
    (backup(table) / "000000000000000000.json").unlink()
    assert replace_log(*places(table)).done == "already replaced"
    append(table, 703)


def test_a_writer_overtaken_by_a_swap_never_deletes_a_version_of_the_log_that_came_in(
    original: RealTable, tmp_path: Path
):
    """Its number may be taken there: what it takes back is its own commit or nothing."""
    table = fresh_repair(original, tmp_path / "t")
    replace_log(*places(table))
    base = table.snapshot()
    publisher = Publisher(open_store(table.root), LogNames(), 18)
    undo_replace(places(table)[0])
    with pytest.raises(LogReplacedError):
        publisher.confirm_parent(base, "somebody")
    assert table.snapshot().version == 3


def test_a_version_that_was_taken_back_is_free_again(table: RealTable):
    """A writer that found it taken, and then nothing there, tries again instead of dying."""
    taken = table.log / "000000000000000004.json"

    class Vanishing(InterleavedStore):
        def list(self, prefix, *, start_after=None):
            taken.unlink(missing_ok=True)
            return self._inner.list(prefix, start_after=start_after)

    store = Vanishing(open_store(table.root), lambda: taken.write_bytes(b'{"commitInfo":{}}'))
    split = new_split(table.root, 702)
    done = TransactionLog(store).commit(lambda _: CommitPlan(Append(), "APPEND", (split,)))
    assert (done.version, done.attempts) == (4, 2)


def test_a_log_without_a_fence_is_not_changed_by_undo(table: RealTable):
    """There is nothing to undo."""
    before = table.seal()
    assert undo_replace(places(table)[0]).done == "nothing to undo"
    assert table.seal() == before


def test_a_log_that_went_on_since_its_repair_is_not_replaced(table: RealTable):
    """The repaired log lacks the newer commits, so it does not fit any more."""
    table.transaction_log().commit(
        lambda _: CommitPlan(Append(), "APPEND", (new_split(table.root, 703),))
    )
    before = table.seal()
    with pytest.raises(RepairError, match="not a finished repair"):
        replace_log(*places(table))
    assert table.seal() == before


def test_commits_to_the_repaired_log_are_not_undone(table: RealTable):
    """Undo would lose them."""
    replace_log(*places(table))
    table.transaction_log().commit(
        lambda _: CommitPlan(Append(), "APPEND", (new_split(table.root, 704),))
    )
    before = table.seal()
    with pytest.raises(RepairError, match="1 commits were made since"):
        undo_replace(places(table)[0])
    assert table.seal() == before


def test_an_older_backup_is_never_overwritten(table: RealTable):
    """It may be the only copy of something."""
    backup(table).mkdir()
    (backup(table) / "precious").write_text("mine")
    before = table.seal()
    with pytest.raises(RepairError, match="already a backup"):
        replace_log(*places(table))
    assert table.seal() == before


@pytest.mark.parametrize(
    ("uri", "command"),
    [
        (
            "s3://b/t/_transaction_log",
            "aws s3 sync s3://b/t/_transaction_log s3://b/t/_transaction_log_backup",
        ),
        ("gs://b/t/_transaction_log", "gcloud storage rsync -r"),
        ("az://c/t/_transaction_log", "azcopy copy --recursive"),
    ],
)
def test_on_object_stores_it_says_what_to_run_instead(uri: str, command: str):
    """Nothing is copied or deleted there by this library."""
    location = location_of(uri, lambda root: open_store("memory://x"))
    assert command in by_hand(location)
    with pytest.raises(RepairError, match="object store") as caught:
        replace_log(location, backup_of(location))
    assert "aws" in caught.value.hint or "gcloud" in caught.value.hint or "azcopy" in caught.value.hint


class SwappedAt(InterleavedStore):
    """Replaces the log right before the first call of this name; the process dies after that call."""

    def __init__(self, table: RealTable, name: str) -> None:
        super().__init__(open_store(table.root), lambda: replace_log(*places(table)))
        self._name = name

    def _overtaken(self, name: str, *arguments) -> None:
        swaps = name == self._name and bool(self._meanwhile)
        if swaps:
            self._meanwhile.pop()()
        getattr(self._inner, name)(*arguments)
        if swaps:
            raise SimulatedCrash(name)

    def put(self, key, data):
        self._overtaken("put", key, data)

    def put_if_absent(self, key, data):
        self._overtaken("put_if_absent", key, data)

    def delete(self, key):
        self._overtaken("delete", key)


@needs_held_directories
def test_a_commit_overtaken_by_a_swap_puts_nothing_into_the_log_that_came_in(
    original: RealTable, tmp_path: Path
):
    """It meets the fence in the directory it has looked at, so that no kill can leave a file in the other one."""
    table = fresh_repair(original, tmp_path / "t")
    new, store = seal(table.target), SwappedAt(table, "put_if_absent")
    split = new_split(table.root, 702)
    with pytest.raises(LogReplacedError, match="nothing was committed"):
        TransactionLog(store).commit(lambda _: CommitPlan(Append(), "APPEND", (split,)))
    assert store.happened
    assert seal(table.log) == new
    append(table, 703)


@needs_held_directories
def test_a_checkpoint_overtaken_by_a_swap_stays_with_its_log(original: RealTable, tmp_path: Path):
    """In the other log it would stand above all commits."""
    table = fresh_repair(original, tmp_path / "t")
    new, store = seal(table.target), SwappedAt(table, "put")
    with pytest.raises(SimulatedCrash):
        TransactionLog(store).checkpoint()
    assert seal(table.log) == new
    assert [*backup(table).glob("*3.checkpoint.json")]
    append(table, 703)


@needs_held_directories
def test_a_cleanup_overtaken_by_a_swap_deletes_nothing_of_the_log_that_came_in(tmp_path: Path):
    """The names of old versions are the names of the first versions of a repaired log."""
    keep_nothing = Config.of(session={"spark.indextables.log.retention": "0 seconds"})
    table = make_table(tmp_path / "t", commits=3, length=5)
    for _ in range(2):
        append(table, 710 + table.transaction_log().checkpoint().version)
    assert repair(table.log, table.target).status == "SUCCESS"
    new, store = seal(table.target), SwappedAt(table, "delete")
    with pytest.raises(SimulatedCrash):
        TransactionLog(store, keep_nothing).cleanup()
    assert seal(table.log) == new
    assert not (backup(table) / "000000000000000000.json").exists(), "it was at work"
    append(table, 703)


@needs_held_directories
def test_a_commit_overtaken_by_undo_is_refused_by_the_log_that_left(
    original: RealTable, tmp_path: Path
):
    """It holds the directory of the repaired log, whose fence stays: there it would be in no table."""
    table = fresh_repair(original, tmp_path / "t")
    replace_log(*places(table))
    store = InterleavedStore(open_store(table.root), lambda: undo_replace(places(table)[0]))
    split = new_split(table.root, 702)
    with pytest.raises(LogReplacedError):
        TransactionLog(store).commit(lambda _: CommitPlan(Append(), "APPEND", (split,)))
    assert store.happened
    assert table.snapshot().version == 3
    replace_log(*places(table))
    assert table.snapshot().version == 1
    append(table, 703)
