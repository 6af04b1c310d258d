"""Every cell of the conflict matrix whose verbs exist, with two real writers on one table."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from indextables.errors import CommitConflictError, SchemaMismatchError
from indextables.storage.open import open_store
from indextables.table.table import Table
from support.interleave import InterleavedStore


SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows(*ids, v="new"):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


@dataclass(frozen=True)
class Verb:
    """A change to the table and what it means for a plain list of (id, v)."""

    run: Any
    model: Any = field(default=lambda table: table)


def _append(*ids, v):
    return Verb(lambda t: t.append(rows(*ids, v=v)), lambda table: table + [(i, v) for i in ids])


def _delete(where, matches):
    return Verb(lambda t: t.delete(where), lambda table: [r for r in table if not matches(r[0])])


def _overwrite(where, matches, *ids, v):
    return Verb(
        lambda t: t.overwrite(rows(*ids, v=v), where=where),
        lambda table: [r for r in table if not matches(r[0])] + [(i, v) for i in ids],
    )


def widened(t):
    return t.evolve(pa.schema([*SCHEMA, ("extra", pa.date32())]))


def retyped(t):
    return t.evolve(pa.schema([("id", pa.decimal128(20, 0)), ("v", pa.string())]))


MINE = {
    "append": _append(100, v="mine"),
    "overwrite": _overwrite("id < 10", lambda i: i < 10, 5, v="mine"),
    "overwrite all": Verb(lambda t: t.overwrite(rows(5, v="mine")), lambda _: [(5, "mine")]),
    "delete part": _delete("id in (3, 4)", lambda i: i in (3, 4)),
    "delete split": _delete("id < 10", lambda i: i < 10),
    "analyze": Verb(lambda t: t.analyze(["v"], rebuild=True)),
    "schema": Verb(widened),
}
WINNERS = {
    "append outside": _append(50, v="theirs"),
    "append inside": _append(3, v="theirs"),
    "delete same split": _delete("id = 7", lambda i: i == 7),
    "delete same rows": _delete("id = 3", lambda i: i == 3),
    "delete whole split": _delete("id < 10", lambda i: i < 10),
    "delete other split": _delete("id = 15", lambda i: i == 15),
    "overwrite": _overwrite("id >= 3 and id < 5", lambda i: 3 <= i < 5, 3, 4, v="theirs"),
    "overwrite all": Verb(
        lambda t: t.overwrite(rows(3, 4, 60, v="theirs")), lambda _: [(i, "theirs") for i in (3, 4, 60)]
    ),
    "analyze": Verb(lambda t: t.analyze(["id"], rebuild=True)),
    "schema": Verb(widened),
}


@pytest.fixture
def memory():
    """A new place for a table, without the cost of a disk."""
    return f"memory://{uuid4()}"


def new_table(path):
    table = Table.create(path, SCHEMA)
    table.append(rows(*range(10), v="old"))
    table.append(rows(*range(10, 20), v="old"))
    return table


def race(path, mine, theirs):
    """Runs `mine` on one handle; `theirs` commits through another one just before it does."""
    store = InterleavedStore(open_store(path), lambda: theirs(Table(path)))
    try:
        return mine(Table(store))
    finally:
        assert store.happened


def contents(table):
    found = table.scan(columns=["id", "v"]).to_arrow()
    return sorted(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("mine", MINE)
def test_the_loser_ends_up_as_if_it_had_come_second(memory, mine, winner):
    """Re-planned, rebased or skipped: the rows are those of the winner, then mine, one after the other."""
    if (mine, winner) == ("schema", "schema"):
        new_table(memory)
        pytest.raises(CommitConflictError, race, memory, MINE[mine].run, retyped)
        return
    table = new_table(memory)
    expected = MINE[mine].model(WINNERS[winner].model([(i, "old") for i in range(20)]))
    race(memory, MINE[mine].run, WINNERS[winner].run)
    assert contents(table) == sorted(expected)
    assert table.check(deep=True).problems == ()


def test_an_append_survives_a_wider_schema_and_keeps_its_own(memory):
    """The files were written with the older schema; the new column is known to be NULL there."""
    table = new_table(memory)
    race(memory, MINE["append"].run, widened)
    split = table.snapshot().splits()[-1]
    assert split.schema_id == 0
    assert table.scan("extra is null and id = 100").count() == 1
    assert table.plan("extra is not null").files == []


def test_an_append_survives_a_widened_column(memory):
    """The file holds the narrow type, every reader gets the wide one."""
    path = memory
    Table.create(path, pa.schema([("id", pa.int32())]))
    data = pa.table({"id": pa.array([1], pa.int32())})
    race(path, lambda t: t.append(data), lambda t: t.evolve(pa.schema([("id", pa.int64())])))
    assert Table(path).scan().to_arrow().to_pylist() == [{"id": 1}]


def test_two_appends_that_both_add_columns_both_get_theirs(memory):
    """Merging is repeated on the winner's schema, and each file is labelled with the schema it got."""
    table = new_table(memory)
    race(
        memory,
        lambda t: t.append(pa.table({"id": [1], "mine": ["m"]}), merge_schema=True),
        lambda t: t.append(pa.table({"id": [2], "theirs": [2.5]}), merge_schema=True),
    )
    assert table.schema.names == ("id", "v", "theirs", "mine")
    assert table.scan("mine = 'm'").to_arrow().to_pylist() == [
        {"id": 1, "v": None, "theirs": None, "mine": "m"}
    ]
    assert table.scan("theirs > 2").count() == 1


def test_two_appends_that_add_the_same_column_differently_do_not_mix(memory):
    """One name cannot be a date for one half of the rows and a number for the other."""
    new_table(memory)
    with pytest.raises(SchemaMismatchError, match="x"):
        race(
            memory,
            lambda t: t.append(pa.table({"id": [1], "x": ["m"]}), merge_schema=True),
            lambda t: t.append(pa.table({"id": [2], "x": [2.5]}), merge_schema=True),
        )


def test_analyze_skips_a_split_that_was_replaced_and_keeps_the_rest(memory):
    """Statistics of a file that is gone are of no use; those of the others are."""
    table = new_table(memory)
    table.drop_statistics(["v"])
    gone = table.snapshot().splits()[0].path
    result = race(memory, lambda t: t.analyze(["v"]), WINNERS["delete same split"].run)
    assert result.skipped == {gone}
    lacking = {info.column: info.missing for info in table.statistics_info()}
    assert lacking[("v",)] == 0  # the rewritten split got its own when it was written


def test_a_rewritten_split_is_not_rewritten_again_for_the_next_attempt(memory):
    """Splits are immutable, so the work of the first attempt serves the second."""
    table = new_table(memory)
    race(memory, MINE["delete part"].run, WINNERS["append inside"].run)
    written = list(open_store(memory).list("data/"))
    # two first splits, one appended by the winner (then dropped whole), one rewritten
    assert len(written) == 4
    assert contents(table) == [(i, "old") for i in range(20) if i not in (3, 4)]


def test_a_writer_that_began_before_a_vacuums_mark_cannot_commit(memory):
    """Its files may be gone already."""
    new_table(memory)

    def vacuum(t):
        t.append(rows(70))
        t.vacuum(
            apply=True,
            allow_short_retention=True,
            options={"spark.indextables.vacuum.retention": "0 seconds"},
        )

    for mine in ("append", "delete part", "overwrite"):
        with pytest.raises(CommitConflictError, match="vacuum"):
            race(memory, MINE[mine].run, vacuum)
    assert Table(memory).check(deep=True).ok
