"""Slices are read as a dict of rows by key would be: the last write wins, a delete hides, columns combine."""

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.slices import File, SliceWriter

import indextables as it
from indextables.parquet.read.read import ReadRequest, read_batches, units_of
from indextables.plan.planner import Planner

OLD = pa.schema(
    [
        pa.field("k", pa.int32(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        pa.field("p", pa.int32()),
        pa.field("a", pa.int32()),
        pa.field("b", pa.string()),
    ]
)
# the key and a column are wider than in older files, which have no `c` either
NEW = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        OLD.field("t"),
        OLD.field("p"),
        pa.field("a", pa.int64()),
        OLD.field("b"),
        pa.field("c", pa.struct([("x", pa.int32())])),
    ]
)
KEY = ("k", "t")
KEYS = [(k, t) for k in range(4) for t in "uv"]
CONDITIONS = {
    "true": lambda r: True,
    "k = 1": lambda r: r["k"] == 1,
    "k >= 2 AND t = 'u'": lambda r: r["k"] >= 2 and r["t"] == "u",
    "a = 1": lambda r: r["a"] == 1,
    "a = 1 AND b = 'x'": lambda r: r["a"] == 1 and r["b"] == "x",
    "a <> 1": lambda r: r["a"] is not None and r["a"] != 1,
    "a IS NULL": lambda r: r["a"] is None,
    "b IS NOT NULL": lambda r: r["b"] is not None,
    "b LIKE 'x%' OR k = 0": lambda r: r["b"] == "x" or r["k"] == 0,
    "NOT (a < 3)": lambda r: r["a"] is not None and r["a"] >= 3,
    "p = 1": lambda r: r["p"] == 1,
    "p = 1 AND a > 1": lambda r: r["p"] == 1 and r["a"] is not None and r["a"] > 1,
}


def group_of(key: tuple[int, str]) -> int:
    return key[0] % 3


class World:
    """A table and the dict of rows it should show."""

    def __init__(self, mode: str, uri: str | None = None) -> None:
        self.table = it.Table.create(
            uri or f"memory://{uuid4()}", OLD, partition_by=["p"], record_key=KEY, merge_mode=mode
        )
        self.mode, self.schema = mode, OLD
        self.writer = SliceWriter(self.table)
        self.rows: dict[tuple[int, str], dict[str, Any]] = {}
        self.bases: dict[tuple[int, str], dict[str, Any]] = {}
        self.grouped: set[int] = set()

    def evolve(self) -> None:
        self.table.evolve(NEW)
        self.schema = NEW

    def commit(
        self, upserts: dict[tuple[int, str], dict[str, Any]], deletes: set[tuple[int, str]]
    ) -> None:
        """Each group gets what concerns it: a base file first, then logs."""
        files = []
        for group in {group_of(key) for key in (*upserts, *deletes)}:
            mine = {key: new for key, new in upserts.items() if group_of(key) == group}
            gone = {key for key in deletes - set(upserts) if group_of(key) == group}
            if group not in self.grouped:
                files += self._base(group, mine) if mine else []
            else:
                files += self._logs(group, mine, gone)
        if files:
            self.writer.commit(*files)

    def _base(self, group: int, rows: dict[Any, dict[str, Any]]) -> list[File]:
        self.grouped.add(group)
        for key, new in rows.items():
            self.rows[key] = self._row(key, new)
            self.bases[key] = self.rows[key]
        return [File(f"g{group}", self._arrow([self.rows[key] for key in rows], self.schema.names))]

    def _logs(self, group: int, rows: dict[Any, dict[str, Any]], gone: set[Any]) -> list[File]:
        files = []
        if gone:
            keys = [self._row(key, {}) for key in sorted(gone)]
            files.append(File(f"g{group}", self._arrow(keys, [*KEY, "p"]), "delete"))
            for key in gone:
                self.rows.pop(key, None)
        if rows and self.mode == "record":
            for key, new in rows.items():
                self.rows[key] = self._row(key, new)
            whole = self._arrow([self.rows[key] for key in rows], self.schema.names)
            files.append(File(f"g{group}", whole, "data"))
        elif rows:
            # all rows of a partial log set the same columns: those of the first one
            names = [*KEY, "p", *next(iter(rows.values()))]
            written = [self._row(key, new) for key, new in rows.items()]
            files.append(File(f"g{group}", self._arrow(written, names), "data", names))
            for key, row in zip(rows, written, strict=True):
                before = self.rows.get(key, self._row(key, {}))
                self.rows[key] = before | {name: row[name] for name in names}
        return files

    def _row(self, key: tuple[int, str], new: dict[str, Any]) -> dict[str, Any]:
        named = dict(zip(KEY, key, strict=True)) | {"p": group_of(key)} | new
        return {name: named.get(name) for name in self.schema.names}

    def _arrow(self, rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in names if name in self.schema.names])
        return pa.Table.from_pylist(rows, schema)

    def expected(self, rows: dict[Any, dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        found = self.rows if rows is None else rows
        return [{name: row.get(name) for name in self.schema.names} for _, row in sorted(found.items())]


def by_key(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: tuple(row[name] for name in KEY))


def values(columns: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    kinds = {
        "a": st.none() | st.integers(0, 4),
        "b": st.none() | st.sampled_from("xyz"),
        "c": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 2)}),
    }
    return st.fixed_dictionaries({name: kinds[name] for name in columns})


@st.composite
def commits(draw: Any) -> tuple[str, int, list[Any]]:
    """A mode, when the schema changes, and what each commit writes and deletes."""
    mode = draw(st.sampled_from(["record", "columns"]))
    steps = draw(st.integers(1, 5))
    change = draw(st.integers(0, steps))
    found = []
    for step in range(steps):
        known = ["a", "b", "c"] if step >= change else ["a", "b"]
        keys = st.sampled_from(KEYS)
        chosen = known
        if mode == "columns" and step > 0:
            chosen = draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
        upserts = draw(st.dictionaries(keys, values(chosen), max_size=5))
        found.append((upserts, draw(st.sets(keys, max_size=3))))
    return mode, change, found


def world_of(history: tuple[str, int, list[Any]]) -> World:
    mode, change, steps = history
    world = World(mode)
    for step, (upserts, deletes) in enumerate(steps):
        if step == change:
            world.evolve()
        world.commit(upserts, deletes)
    return world


@settings(max_examples=max(40, settings().max_examples * 2 // 5))
@given(commits(), st.sampled_from(sorted(CONDITIONS)))
def test_a_slice_shows_what_a_dict_of_rows_would(history: Any, text: str) -> None:
    """Upserts and deletes in any order, both modes, a key of two columns, a schema that changes midway."""
    world = world_of(history)
    holds = CONDITIONS[text]
    expected = [row for row in world.expected() if holds(row)]
    assert by_key(world.table.scan(text).to_arrow()) == expected
    assert world.table.scan(text).count() == len(expected)
    assert world.table.scan(text, columns=["b"]).to_arrow().num_rows == len(expected)
    assert by_key(world.table.scan().to_arrow()) == world.expected()


@settings(max_examples=15)
@given(commits())
def test_every_file_is_opened_once(history: Any) -> None:
    """A log is read for its rows and for its keys in one go."""
    world = world_of(history)
    for text in ("true", "k = 1", "a = 1"):
        plan = world.table.plan(text)
        with it.query_stats() as stats:
            plan.scan().to_arrow()
        assert stats.data_files_opened == plan.report.kept_files


KINDS = {
    "long": (pa.int64(), [1, 2, -(2**63)]),
    "decimal": (pa.decimal128(20, 3), [Decimal("1.000"), Decimal("-0.001"), Decimal("2.500")]),
    "date": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1)]),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, d, 1, 2, 3, 4, tzinfo=dt.UTC) for d in (1, 2, 3)],
    ),
    "local time": (pa.timestamp("us"), [dt.datetime(2024, 1, d) for d in (1, 2, 3)]),
    "text": (pa.string(), ["", "zoë", "a" * 300]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff"]),
    "boolean": (pa.bool_(), [True, False]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_found_by_a_key_of_any_type(kind: str) -> None:
    """The first key is replaced, the second deleted, the others stay."""
    dtype, keys = KINDS[kind]
    schema = pa.schema([pa.field("k", dtype, nullable=False), pa.field("v", pa.int32())])
    table = it.Table.create(f"memory://{uuid4()}", schema, record_key=["k"])
    writer = SliceWriter(table)
    writer.commit(File("g", pa.table([keys, [0] * len(keys)], schema=schema)))
    writer.commit(
        File("g", pa.table([keys[:1], [1]], schema=schema), "data"),
        File("g", pa.table([keys[1:2]], schema=schema.remove(1)), "delete"),
    )
    found = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {keys[0]: 1} | dict.fromkeys(keys[2:], 0)


def test_all_types_of_columns_come_through_a_merge_by_columns() -> None:
    """Nested ones too; a partial log leaves them as they were."""
    schema = pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            pa.field("n", pa.int32()),
            pa.field("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.int32()))])),
            pa.field("m", pa.map_(pa.string(), pa.int32())),
            pa.field("d", pa.decimal128(10, 2)),
            pa.field("f", pa.float32()),
        ]
    )
    rows = [
        {"k": i, "n": i, "s": {"x": "t", "y": [i, None]}, "m": [("a", i)], "d": Decimal(i), "f": i / 2}
        for i in range(3)
    ]
    table = it.Table.create(f"memory://{uuid4()}", schema, record_key=["k"], merge_mode="columns")
    writer = SliceWriter(table)
    writer.commit(File("g", pa.Table.from_pylist(rows, schema)))
    partial = pa.Table.from_pylist([{"k": 1, "n": None}], pa.schema([schema.field(0), schema.field(1)]))
    writer.commit(File("g", partial, "data", ["k", "n"]))
    nested = pa.Table.from_pylist(
        [{"k": 2, "s": None}, {"k": 0, "s": {"x": "u", "y": []}}],
        pa.schema([schema.field(0), schema.field(2)]),
    )
    writer.commit(File("g", nested, "data", ["k", "s"]))
    rows[1]["n"], rows[2]["s"], rows[0]["s"] = None, None, {"x": "u", "y": []}
    assert table.scan().to_arrow().to_pylist() == rows
    assert table.scan("s.x = 'u'", columns=["k"]).to_arrow()["k"].to_pylist() == [0]


def test_a_condition_that_only_the_combined_row_satisfies_finds_it() -> None:
    """Neither the base nor the partial log has both values; judged file by file the row would be lost."""
    world = World("columns")
    world.commit({(0, "u"): {"a": 1, "b": "x"}}, set())
    world.commit({(0, "u"): {"b": "z"}}, set())
    assert world.table.scan("a = 1 AND b = 'z'").count() == 1
    assert world.table.scan("a = 1 AND b = 'x'").count() == 0


def test_a_row_replaced_by_one_that_does_not_match_is_not_shown() -> None:
    """The log is opened for its keys, though none of its rows matches."""
    world = World("record")
    world.commit({(0, "u"): {"a": 1}, (3, "u"): {"a": 1}}, set())
    world.commit({(0, "u"): {"a": 2}}, set())
    assert by_key(world.table.scan("a = 1").to_arrow())[0]["k"] == 3
    assert world.table.scan("a = 1").count() == 1


def test_a_row_written_again_after_its_delete_is_shown() -> None:
    """Only what is older than the delete is hidden by it; in columns mode nothing older comes back."""
    for mode in ("record", "columns"):
        world = World(mode)
        world.commit({(0, "u"): {"a": 1, "b": "x"}}, set())
        world.commit({}, {(0, "u")})
        assert world.table.scan().count() == 0
        world.commit({(0, "u"): {"a": 2}}, set())
        found = world.table.scan().to_arrow().to_pylist()
        assert found == [{"k": 0, "t": "u", "p": 0, "a": 2, "b": None}]


def test_slices_without_logs_are_counted_by_the_log_and_slices_with_logs_are_read() -> None:
    """How many rows logs hide is known to nobody before they are read."""
    world = World("record")
    world.commit({(0, "u"): {}, (1, "u"): {}, (2, "u"): {}}, set())
    with it.query_stats() as stats:
        assert world.table.scan().count() == 3
    assert stats.data_files_opened == 0
    world.commit({}, {(1, "u")})
    with it.query_stats() as stats:
        assert world.table.scan().count() == 2
    assert stats.data_files_opened == 2


def test_rows_of_a_slice_come_where_its_oldest_file_is() -> None:
    """Then in the order of their commits and positions."""
    world = World("record")
    world.commit({(0, "u"): {"a": 0}, (3, "u"): {"a": 0}}, set())
    world.commit({(1, "u"): {"a": 1}}, set())
    world.commit({(0, "u"): {"a": 2}}, set())
    found = world.table.scan().to_arrow()
    assert list(zip(found["k"].to_pylist(), found["a"].to_pylist(), strict=True)) == [
        (3, 0),
        (0, 2),
        (1, 1),
    ]


def test_many_batches_of_a_base_meet_many_keys_of_logs(tmp_path: Any) -> None:
    """Rows are looked up in chunks of about as many as there are keys; every second one is hidden."""
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int32())])
    table = it.Table.create(tmp_path / "t", schema, record_key=["k"])
    writer = SliceWriter(table)
    count = 200_000
    writer.commit(File("g", pa.table([range(count), [0] * count], schema=schema)))
    evens = range(0, count, 2)
    writer.commit(File("g", pa.table([evens, [1] * len(evens)], schema=schema), "data"))
    writer.commit(File("g", pa.table([range(0, count, 4)], schema=schema.remove(1)), "delete"))
    found = table.scan().to_arrow()
    assert found["k"].to_pylist() == [*range(1, count, 2), *range(2, count, 4)]
    assert table.scan("v = 1").count() == count // 4


def test_a_piece_can_be_read_by_itself() -> None:
    """What compaction reads: all rows of one slice, merged."""
    world = World("record")
    world.commit({(0, "u"): {"a": 0}, (1, "u"): {"a": 0}}, set())
    world.commit({(0, "u"): {"a": 5}}, set())
    planner = Planner.open(world.writer.store)
    units = units_of(planner.plan())
    request = ReadRequest(planner.store, planner.schema, ("k", "a"))
    parts = [pa.Table.from_batches(read_batches(request, [unit])).to_pylist() for unit in units]
    assert sorted(parts, key=str) == [[{"k": 0, "a": 5}], [{"k": 1, "a": 0}]]
