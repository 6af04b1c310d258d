"""Every verb with a vacuum or a log cleanup beside it: refused, or right, and never a broken table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import CommitConflictError, IndexTablesError
from indextables.storage.open import open_store
from indextables.table.table import Table
from support.interleave import ForgetfulStore, SteppedStore

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
NOW = {"spark.indextables.vacuum.retention": "0 seconds"}
REFUSED = {"CommitConflictError", "ObjectNotFoundError", "VersionNotFoundError"}

Rows = list[tuple[int, str]]


def rows(*ids, v):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


@dataclass(frozen=True)
class Verb:
    """A change, and what it means for a list of (id, v)."""

    run: Callable[[Table], Any]
    model: Callable[[Rows], Rows] = lambda table: table
    keyed: bool | None = None
    """Only for tables with a record key, or without one."""


def put(table: Rows, *ids: int, v: str) -> Rows:
    return [row for row in table if row[0] not in ids] + [(i, v) for i in ids]


FIRST = [(i, "old") for i in range(10)]
VERBS = {
    "append": Verb(lambda t: t.append(rows(100, v="mine")), lambda x: [*x, (100, "mine")]),
    "append wider": Verb(
        lambda t: t.append(
            pa.table({"id": [100], "v": ["mine"], "w": [1]}),
            merge_schema=True,
        ),
        lambda x: [*x, (100, "mine")],
    ),
    "delete part": Verb(
        lambda t: t.delete("id in (4, 5)"), lambda x: [r for r in x if r[0] not in (4, 5)]
    ),
    "delete split": Verb(lambda t: t.delete("id < 10"), lambda x: [r for r in x if r[0] >= 10]),
    "overwrite all": Verb(lambda t: t.overwrite(rows(5, v="mine")), lambda _: [(5, "mine")]),
    "overwrite where": Verb(
        lambda t: t.overwrite(rows(5, v="mine"), where="id > 3 and id < 15"),
        lambda x: [*(r for r in x if not 3 < r[0] < 15), (5, "mine")],
    ),
    "optimize": Verb(lambda t: t.optimize()),
    "z-order": Verb(lambda t: t.optimize(z_order_by=["id"])),
    "analyze": Verb(lambda t: t.analyze(["v"], rebuild=True)),
    "drop statistics": Verb(lambda t: t.drop_statistics(["v"])),
    "restore": Verb(lambda t: t.restore(1), lambda _: FIRST),
    "rollback": Verb(lambda t: t.rollback(2), lambda x: [r for r in x if not 10 <= r[0] < 20]),
    "schema": Verb(lambda t: t.evolve(pa.schema([*SCHEMA, ("extra", pa.date32())]))),
    "upsert": Verb(
        lambda t: t.upsert(rows(5, 100, v="mine")), lambda x: put(x, 5, 100, v="mine"), keyed=True
    ),
    "compact": Verb(lambda t: t.compact(), keyed=True),
}
"""Each of them in a table without a record key and in one with a key, where it exists."""
CASES = [
    (name, keyed)
    for name, verb in VERBS.items()
    for keyed in (False, True)
    if verb.keyed in (None, keyed)
]


def table_of(keyed: bool) -> Table:
    uri = f"memory://{uuid4()}"
    table = Table.create(uri, SCHEMA, record_key=["id"] if keyed else [])
    for start in (0, 10, 20):
        table.append(rows(*range(start, start + 10), v="old"))
    if keyed:
        table.upsert(rows(1, v="log"))
    return table


def theirs(table: Table) -> None:
    """What every rewrite has to look at again: rows it may be about, and a split that is another one now."""
    table.append(rows(6, v="theirs"))
    table.delete("id = 3")


def after_theirs(table: Rows, keyed: bool) -> Rows:
    table = put(table, 6, v="theirs") if keyed else [*table, (6, "theirs")]
    return [row for row in table if row[0] != 3]


def rows_of(table: Table) -> Rows:
    found = table.scan(columns=["id", "v"]).to_arrow()
    return sorted(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


def vacuum(table: Table) -> None:
    table.vacuum(apply=True, allow_short_retention=True, options=NOW)


def check_outcome(verb: Verb, run: Callable[[], Any], before: Rows, uri: str) -> str:
    """Runs it; the rows are those of `before`, then of the verb, or the verb was refused by name."""
    try:
        run()
        expected, outcome = verb.model(before), "done"
    except IndexTablesError as error:
        expected, outcome = before, type(error).__name__
        assert outcome in REFUSED, error
    table = Table(uri)
    assert rows_of(table) == sorted(expected)
    assert table.check(deep=True).problems == ()
    return outcome


@pytest.mark.parametrize("overtaken", [False, True])
@pytest.mark.parametrize(("name", "keyed"), CASES)
def test_a_vacuum_beside_a_write_never_breaks_the_table(name, keyed, overtaken):
    """Also if the write lost once before, and is about to commit what it planned again with older files."""
    table, verb = table_of(keyed), VERBS[name]
    before = rows_of(table)
    steps = [lambda: theirs(Table(table.uri))] if overtaken else []
    if overtaken:
        before = after_theirs(before, keyed)
    store = SteppedStore(open_store(table.uri), *steps, lambda: vacuum(Table(table.uri)))
    outcome = check_outcome(verb, lambda: verb.run(Table(store)), before, table.uri)
    if outcome == "done" and not overtaken:
        assert store.happened


@pytest.mark.parametrize(("name", "keyed"), CASES)
def test_a_plan_whose_winners_are_cleaned_out_of_the_log_brings_no_row_back(name, keyed):
    """What it cannot see it must not ignore: it is planned again on the newest version, or refused."""
    table, verb = table_of(keyed), VERBS[name]
    before = after_theirs(rows_of(table), keyed)

    def clean_up():
        Table(table.uri).truncate_time_travel(apply=True)

    store = ForgetfulStore(open_store(table.uri), lambda: theirs(Table(table.uri)), clean_up)
    check_outcome(verb, lambda: verb.run(Table(store)), before, table.uri)
    assert store.happened and store.is_cleaned_up


@pytest.mark.parametrize("name", ["optimize", "z-order", "analyze", "drop statistics", "compact"])
def test_maintenance_that_cannot_see_what_happened_is_refused(name):
    """It is planned once, so there is no newer plan that could be committed."""
    table = table_of(name == "compact")

    def clean_up():
        Table(table.uri).truncate_time_travel(apply=True)

    store = ForgetfulStore(open_store(table.uri), lambda: theirs(Table(table.uri)), clean_up)
    with pytest.raises(CommitConflictError, match="cleaned up"):
        VERBS[name].run(Table(store))


@pytest.mark.parametrize(
    ("name", "keyed"),
    [
        *((n, k) for n in ("delete part", "overwrite all", "overwrite where") for k in (False, True)),
        ("upsert", True),
    ],
)
def test_files_of_a_first_plan_are_not_committed_after_a_vacuum_took_them(name, keyed):
    """The second plan is newer than the vacuum's mark, its files are not."""
    table, verb = table_of(keyed), VERBS[name]
    steps = (lambda: theirs(Table(table.uri)), lambda: vacuum(Table(table.uri)))
    store = SteppedStore(open_store(table.uri), *steps)
    with pytest.raises(CommitConflictError, match="vacuum"):
        verb.run(Table(store))
    assert store.happened


@pytest.mark.parametrize("verb", [lambda t: t.restore(0), lambda t: t.rollback(1)])
@pytest.mark.parametrize("vacuums", [1, 2])
def test_converted_files_that_come_back_beside_a_vacuum_are_there_or_refused(tmp_path, verb, vacuums):
    """Their names carry no version: the log alone says that they were removed."""
    for name in ("a", "b"):
        pq.write_table(rows(ord(name), v="old"), tmp_path / f"{name}.parquet")
    table = it.convert(tmp_path)
    table.delete("id = 97")
    steps = [lambda: vacuum(Table(tmp_path))] * vacuums
    before = rows_of(table)
    restored = Verb(lambda t: verb(t), lambda _: [(97, "old"), (98, "old")])
    store = SteppedStore(open_store(tmp_path), *steps)
    check_outcome(restored, lambda: restored.run(Table(store)), before, table.uri)


def test_a_history_that_another_process_cuts_further_meanwhile_is_a_conflict():
    """Its checkpoint is gone by then, and nothing is deleted."""
    table = table_of(keyed=False)
    name = f"_transaction_log/{table.version:018d}.checkpoint.json"
    store = open_store(table.uri)

    def overtaken():
        for number in range(2):
            Table(table.uri).append(rows(500 + number, v="theirs"))
            Table(table.uri).truncate_time_travel(apply=True)

    class Overtaken(ForgetfulStore):
        def put(self, key, data):
            self._inner.put(key, data)
            if key == name:
                overtaken()

    before = rows_of(table)
    with pytest.raises(CommitConflictError, match="cleaned up by another process"):
        Table(Overtaken(store, lambda: None, lambda: None)).truncate_time_travel(apply=True)
    assert len(rows_of(Table(table.uri))) == len(before) + 2
