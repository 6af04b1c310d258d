"""A process that dies, or a store that fails, at every single call of a repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from indextables.errors import RepairError
from indextables.ops.repair import repair
from indextables.storage import open_store
from support.damage import RealTable, make_table
from support.faults import CrashingStore, FaultyStore, SimulatedCrash

REPAIRED = "_transaction_log_repaired"
WRITES = ("put", "put_if_absent", "delete")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> RealTable:
    return make_table(tmp_path_factory.mktemp("crash") / "t", commits=3, splits=2, length=1200)


def calls_of(table: RealTable) -> int:
    """How many calls a whole repair makes, source and target through one store."""
    store = FaultyStore(open_store(table.root))
    assert repair(table.log, table.target, parallelism=1, opener=lambda _: store).status == "SUCCESS"
    return len(store.calls)


def copy(table: RealTable, to: Path) -> RealTable:
    import shutil

    shutil.copytree(table.root, to)
    return RealTable(to)


@pytest.fixture(scope="module")
def total(original: RealTable, tmp_path_factory) -> int:
    return calls_of(copy(original, tmp_path_factory.mktemp("count") / "t"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_repair_killed_at_any_call_leaves_the_source_and_runs_again(
    original: RealTable, total: int, tmp_path: Path, when: str
):
    """The source is as it was; a second run succeeds, unless the first had already finished."""
    assert total > 15
    for number in range(total):
        table = copy(original, tmp_path / f"{when}-{number}")
        before = table.seal()
        store = CrashingStore(open_store(table.root), fail_at=number, when=when)
        try:
            repair(table.log, table.target, parallelism=1, opener=lambda _, s=store: s)
        except SimulatedCrash:
            pass
        else:  # the call had no effect to crash after: it found no pointer
            assert when == "after"
            assert store.calls[number][1].endswith("/_last_checkpoint")
        assert table.seal().items() >= before.items()
        if (table.target / "_last_checkpoint").exists():
            with pytest.raises(RepairError, match="not empty"):
                repair(table.log, table.target)
        else:
            assert repair(table.log, table.target).row()[2:] == (3, 6, 6, 0, "SUCCESS")
        repaired = table.snapshot(REPAIRED)
        assert repaired.column("key").equals(table.snapshot().column("key"))
        assert table.seal().items() >= before.items()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_fails_once_is_an_error_row_or_no_matter_and_leaves_nothing(
    original: RealTable, total: int, tmp_path: Path, when: str
):
    """ERROR and an empty target, or SUCCESS and a whole one: nothing in between."""
    for number in range(total):
        table = copy(original, tmp_path / f"{when}-{number}")
        before = table.seal()
        store = FaultyStore(open_store(table.root), fail_at=number, when=when)
        result = repair(table.log, table.target, parallelism=1, opener=lambda _, s=store: s)
        assert store.failed
        if result.ok:
            assert table.snapshot(REPAIRED).num_files == 6
        else:
            assert "injected fault" in result.status
            assert table.seal() == before, "what it wrote is gone"
        assert table.seal().items() >= before.items()


def test_what_a_dead_repair_left_is_removed_only_by_a_repair_of_the_same_source(
    original: RealTable, tmp_path: Path
):
    """Leftovers of another source's repair could be all that is left of it."""
    table = copy(original, tmp_path / "t")
    other = copy(original, tmp_path / "other")
    store = CrashingStore(open_store(table.root), fail_at=1, only=["put_if_absent"])
    with pytest.raises(SimulatedCrash):
        repair(table.log, table.target, opener=lambda _: store)
    assert [path.name for path in table.target.iterdir()] == ["000000000000000000.json"]
    with pytest.raises(RepairError, match="not empty"):
        repair(other.log, table.target)
    assert repair(table.log, table.target).status == "SUCCESS"


def test_two_repairs_to_one_target_never_mix(original: RealTable, tmp_path: Path):
    """The second to put its first commit loses, and removes nothing of the winner's."""
    table = copy(original, tmp_path / "t")

    class Overtaken(FaultyStore):
        def put_if_absent(self, key: str, data: bytes) -> None:
            if not table.target.exists():
                assert repair(table.log, table.target).status == "SUCCESS"
            super().put_if_absent(key, data)

    result = repair(table.log, table.target, opener=lambda uri: Overtaken(open_store(uri)))
    assert "another repair writes to" in result.status
    assert table.snapshot(REPAIRED).num_files == 6
    assert (table.target / "_last_checkpoint").exists()
