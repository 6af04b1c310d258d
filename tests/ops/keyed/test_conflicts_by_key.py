"""Every cell of the conflict matrix in tables with a record key, with two real writers on one table.

The rule is always the same: the rows afterwards are those of the winner's change, then of mine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from support.interleave import InterleavedStore

from indextables.errors import CommitConflictError
from indextables.storage.open import open_store
from indextables.table.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.string()),
        ("w", pa.int64()),
        ("p", pa.string()),
    ]
)
Rows = dict[int, tuple[Any, Any, Any]]
"""id → (v, w, p)"""


def table_of(rows: Rows) -> pa.Table:
    columns = zip(*rows.values(), strict=True) if rows else ((), (), ())
    return pa.table([list(rows), *map(list, columns)], schema=SCHEMA)


def some(ids, v, w=0, p="a") -> Rows:
    return {i: (v, w, p) for i in ids}


@dataclass(frozen=True)
class Verb:
    """A change of the table, and what it means for a dict."""

    run: Callable[[Table], Any]
    model: Callable[[Rows], Rows] = lambda rows: rows


def upserts(rows: Rows) -> Verb:
    return Verb(lambda t: t.upsert(table_of(rows)), lambda old: {**old, **rows})


def sets(**columns: Any) -> Callable[..., Verb]:
    """A partial upsert of some columns."""

    def of(*ids: int) -> Verb:
        given = {"id": list(ids), **{name: [value] * len(ids) for name, value in columns.items()}}
        data = pa.table(given, pa.schema([SCHEMA.field(name) for name in given]))

        def model(old: Rows) -> Rows:
            changed = {}
            for i in ids:
                row = dict(zip("vwp", old.get(i, (None, None, None)), strict=True)) | columns
                changed[i] = (row["v"], row["w"], row["p"])
            return {**old, **changed}

        return Verb(lambda t: t.upsert(data), model)

    return of


def deletes(where: str, matches: Callable[[int, tuple], bool]) -> Verb:
    return Verb(
        lambda t: t.delete(where), lambda old: {i: r for i, r in old.items() if not matches(i, r)}
    )


def overwrites(rows: Rows, where: str | None, matches: Callable[[int, tuple], bool]) -> Verb:
    return Verb(
        lambda t: t.overwrite(table_of(rows), where=where),
        lambda old: {**{i: r for i, r in old.items() if not matches(i, r)}, **rows},
    )


def rolled_back(t: Table) -> None:
    """The third commit of `new_table` undone, by going back to the second."""
    t.restore(version=2)


VERBS = {
    "upsert rows that are there": upserts(some([3, 4, 13], "up")),
    "upsert new rows": upserts(some([30, 31], "new")),
    "upsert both": upserts(some([3, 30, 40], "both")),
    "upsert elsewhere": upserts(some([15, 60], "far")),
    "move rows": upserts(some([3, 30], "moved", p="z")),
    "move them elsewhere": upserts(some([3], "moved", p="y")),
    "append": Verb(
        lambda t: t.append(table_of(some([4, 31], "app"))), lambda old: {**old, **some([4, 31], "app")}
    ),
    "delete by value": deletes("v = 'old'", lambda i, r: r[0] == "old"),
    "delete changed rows": deletes("v = 'log'", lambda i, r: r[0] == "log"),
    "delete new rows": deletes("id >= 30", lambda i, r: i >= 30),
    "delete one row": deletes("id = 3", lambda i, r: i == 3),
    "delete what was inserted or changed": deletes(
        "v in ('up', 'new', 'both', 'moved', 'app')",
        lambda i, r: r[0] in ("up", "new", "both", "moved", "app"),
    ),
    "delete a whole slice": deletes("id >= 10 and id < 20", lambda i, r: 10 <= i < 20),
    "delete a partition": deletes("p = 'a'", lambda i, r: r[2] == "a"),
    "delete everything": deletes("true", lambda i, r: True),
    "overwrite a part": overwrites(some([3, 30], "over"), "id < 5 or id >= 30", lambda i, r: i < 5 or i >= 30),
    "overwrite by value": overwrites(some([3, 50], "old", 1), "v = 'old'", lambda i, r: r[0] == "old"),
    "overwrite everything": overwrites(some([3, 30], "over"), None, lambda i, r: True),
    "compact": Verb(lambda t: t.compact()),
    "optimize": Verb(lambda t: t.optimize()),
    "analyze": Verb(lambda t: t.analyze(rebuild=True)),
    "drop statistics": Verb(lambda t: t.drop_statistics(["v", "id"])),
    "add a column": Verb(lambda t: t.evolve(pa.schema([*SCHEMA, ("extra", pa.date32())]))),
    "widen the key": Verb(
        lambda t: t.evolve(SCHEMA.set(0, pa.field("id", pa.decimal128(20, 0), nullable=False)))
    ),
    "restore": Verb(rolled_back, lambda old: {**some(range(10), "old"), **some(range(10, 20), "old")}),
    "checkpoint": Verb(lambda t: t.checkpoint()),
}  # fmt: skip
PARTIAL = {
    "set v": sets(v="part")(3, 4, 13),
    "set w": sets(w=7)(3, 4, 30),
    "set v of new rows": sets(v="part")(30, 31),
    "set v and move": sets(v="part", p="z")(3, 30),
    "set p alone": sets(p="z")(3, 13),
}

START: Rows = {
    **some(range(10), "old"),
    **some(range(10, 20), "old"),
    **some([4, 5, 14], "log", 1),
}
del START[5]


@cache
def _model(mode: str) -> dict[str, bytes]:
    path = f"memory://{uuid4()}"
    table = Table.create(path, SCHEMA, record_key=["id"], partition_by=["p"], merge_mode=mode)
    table.upsert(table_of(some(range(10), "old")))
    table.upsert(table_of(some(range(10, 20), "old")))
    table.upsert(table_of(some([4, 5, 14], "log", 1)))
    table.delete("id = 5")
    store = open_store(path)
    return {meta.key: store.get(meta.key) for meta in store.list("")}


def new_table(mode: str) -> str:
    """Two slices: ids 0-9 and 10-19, each with a data log, the first with a delete log too."""
    path = f"memory://{uuid4()}"
    store = open_store(path)
    for key, data in _model(mode).items():
        store.put(key, data)
    return path


def race(path: str, mine: Verb, theirs: Verb) -> Rows:
    """`theirs` commits through another handle just before `mine` does; what the table must be then."""
    store = InterleavedStore(open_store(path), lambda: theirs.run(Table(path)))
    mine.run(Table(store))
    if store.happened:
        return mine.model(theirs.model(START))
    assert mine.model(START) == START  # there was nothing to commit, so there was no race
    return START


def contents(table: Table) -> Rows:
    rows = table.scan(columns=["id", "v", "w", "p"]).to_arrow().to_pylist()
    assert len(rows) == len({row["id"] for row in rows}), "a key is there twice"
    return {int(row["id"]): (row["v"], row["w"], row["p"]) for row in rows}


ALL = VERBS | PARTIAL
SCHEMA_CHANGES = {"add a column", "widen the key"}
# one of each kind; all pairs are among the long tests
MINE = ["upsert both", "move rows", "delete by value", "overwrite by value", "compact", "optimize",
        "analyze", "add a column", "restore"]  # fmt: skip
THEIRS = ["upsert rows that are there", "upsert both", "move them elsewhere", "delete one row",
          "delete a whole slice", "overwrite a part", "compact", "optimize", "analyze",
          "widen the key", "restore"]  # fmt: skip
MINE_PARTIAL = ["set w", "set v and move", "delete by value"]
THEIRS_PARTIAL = [
    "set v",
    "set v and move",
    "delete one row",
    "delete a whole slice",
    "compact",
    "restore",
]
CELLS = [
    *(("record", mine, theirs) for mine in MINE for theirs in THEIRS),
    *(("columns", mine, theirs) for mine in MINE_PARTIAL for theirs in THEIRS_PARTIAL),
]
EVERY = [("record", mine, theirs) for mine in VERBS for theirs in VERBS if mine != "checkpoint"] + [
    ("columns", mine, theirs) for mine in ALL for theirs in ALL if mine != "checkpoint"
]


def check_race(mode, mine, theirs):
    path = new_table(mode)
    if {mine, theirs} <= SCHEMA_CHANGES:
        with pytest.raises(CommitConflictError):
            race(path, ALL[mine], ALL[theirs])
        return
    expected = race(path, ALL[mine], ALL[theirs])
    table = Table(path)
    assert contents(table) == expected
    assert table.check(deep=True).problems == ()


@pytest.mark.parametrize(("mode", "mine", "theirs"), CELLS, ids=[" | ".join(cell) for cell in CELLS])
def test_the_rows_are_those_of_the_winner_and_then_of_the_loser(mode, mine, theirs):
    """No row is lost, none comes back, no key is there twice."""
    check_race(mode, mine, theirs)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "mine", "theirs"), EVERY, ids=[" | ".join(cell) for cell in EVERY])
def test_every_pair_of_writers(mode, mine, theirs):
    """The same for all verbs against all."""
    check_race(mode, mine, theirs)
