"""A table with a record key against a plain dict: whatever is done to both, they stay the same.

The machine draws changes; each is a `Step`: what it does to the table, and what it means for the dict. A
step is carried out as it is, or through a store that fails at some call, or while another writer commits
just before it does. Engines are exchanged by overriding `upsert`, `delete`, `compact` and `rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import indextables as it
from indextables.core.types import schema_to_arrow
from indextables.errors import (
    CommitConflictError,
    IndexTablesError,
    ObjectNotFoundError,
    SchemaEvolutionError,
)
from indextables.storage.open import open_store
from support.faults import CrashingStore, FaultyStore, SimulatedCrash
from support.interleave import InterleavedStore

Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]
AT_ONCE = {"spark.indextables.vacuum.retention": "0 seconds"}

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("q", pa.string(), nullable=False),
        ("p", pa.string()),
        ("v", pa.int32()),
        ("w", pa.string()),
    ]
)
CELLS: dict[str, Any] = {
    "id": st.integers(0, 7),
    "q": st.sampled_from(["s", "t"]),
    "p": st.sampled_from(["a", "b", None]),
    "v": st.none() | st.integers(0, 9),
    "w": st.sampled_from(["x", "y", None]),
}
FIRST: list[Row] = [{"id": i, "q": "s", "p": "ab"[i % 2], "v": i, "w": "xy"[i // 4]} for i in range(8)]
"""There from the start, so that most of what is written later is about a row that is there."""
ADDED = st.none() | st.integers(0, 3)

# (how it is written, which rows it is TRUE for)
LEAVES = st.one_of(
    st.builds(lambda k: (f"id < {k}", lambda r: r["id"] < k), st.integers(0, 8)),
    st.builds(lambda k: (f"id = {k}", lambda r: r["id"] == k), st.integers(0, 8)),
    st.builds(lambda k: (f"v >= {k}", lambda r: r["v"] is not None and r["v"] >= k), st.integers(0, 9)),
    st.builds(lambda t: (f"q = '{t}'", lambda r: r["q"] == t), st.sampled_from(["s", "t"])),
    st.builds(lambda t: (f"p = '{t}'", lambda r: r["p"] == t), st.sampled_from(["a", "b"])),
    st.builds(lambda t: (f"w = '{t}'", lambda r: r["w"] == t), st.sampled_from(["x", "y"])),
    st.builds(lambda n: (f"{n} is null", lambda r: r[n] is None), st.sampled_from(["p", "v", "w"])),
)
CONDITIONS = LEAVES | st.builds(
    lambda a, b: (f"{a[0]} and {b[0]}", lambda r: a[1](r) and b[1](r)), LEAVES, LEAVES
)


@dataclass(frozen=True)
class Step:
    """A change: to the table, and to the dict; `may_fail` are errors that leave both as they were."""

    name: str
    run: Callable[[it.Table], Any] = field(repr=False)
    model: Callable[[Rows], Rows] = field(repr=False)
    may_fail: tuple[type[BaseException], ...] = ()


class KeyedMachine(RuleBasedStateMachine):
    """Every change there is, in any order."""

    only_mode: str | None = None
    """How rows are merged; None: in either way."""

    # -- what an engine may do otherwise -------------------------------------------------------

    def upsert(self, table: it.Table, data: pa.Table) -> Any:
        return table.upsert(data)

    def delete(self, table: it.Table, where: str) -> Any:
        return table.delete(where)

    def compact(self, table: it.Table) -> Any:
        return table.compact()

    def rows(self, where: str | None = None, version: int | None = None) -> list[Row]:
        return self.table.scan(where, version=version).to_arrow().to_pylist()

    def new_uri(self) -> str:
        return f"memory://{uuid4()}"

    # ------------------------------------------------------------------------------------------

    @initialize(
        mode=st.sampled_from(["record", "columns"]),
        key=st.sampled_from([["id"], ["id", "q"]]),
        partition=st.sampled_from([[], ["p"], ["q"]]),
        form=st.sampled_from(["json", "parquet"]),
    )
    def create(self, mode: str, key: list[str], partition: list[str], form: str) -> None:
        self.uri, self.mode, self.key = self.new_uri(), self.only_mode or mode, key
        self.partition = partition
        self.table = it.Table.create(
            self.uri,
            SCHEMA,
            record_key=key,
            merge_mode=self.mode,
            partition_by=partition,
            properties={
                "spark.indextables.checkpoint.interval": 4,
                "spark.indextables.checkpoint.format": form,
            },
        )
        self.state: Rows = {}
        self.versions: dict[int, Rows] = {0: {}}
        self._do(
            Step(
                "fill",
                lambda t: t.upsert(self._data(FIRST, list(self.names))),
                lambda s: self._upserted(s, FIRST),
            )
        )

    # -- steps ---------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.schema.names

    def _draw_rows(self, data: Any, names: list[str], size: int = 4) -> list[Row]:
        cells = {name: CELLS.get(name, ADDED) for name in names}
        rows = data.draw(st.lists(st.fixed_dictionaries(cells), max_size=size), label="rows")
        return list({self._key(row): row for row in rows}.values())

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def _data(self, rows: list[Row], names: list[str]) -> pa.Table:
        types = schema_to_arrow(self.table.schema)
        schema = pa.schema([types.field(name) for name in names])
        return pa.Table.from_pylist(rows, schema)

    def _upserted(self, state: Rows, rows: list[Row]) -> Rows:
        new = dict(state)
        names = {name for row in state.values() for name in row} or set(self.names)
        for row in rows:
            old = new.get(self._key(row)) or dict.fromkeys(names | set(self.names))
            new[self._key(row)] = {**old, **row}
        return new

    def _step(self, data: Any, kind: str) -> Step:
        return getattr(self, f"_step_{kind}")(data)

    def _step_upsert(self, data: Any) -> Step:
        names = list(self.names)
        if self.mode == "columns" and data.draw(st.booleans(), label="partial"):
            # q may not be NULL, so a row that may be new must bring it
            left = [name for name in names if name in {*self.key, "q"} or data.draw(st.booleans())]
            names = left
        rows = self._draw_rows(data, names)
        table = self._data(rows, names)
        return Step(
            f"upsert {rows}", lambda t: self.upsert(t, table), lambda s: self._upserted(s, rows)
        )

    def _step_delete(self, data: Any) -> Step:
        text, matches = data.draw(CONDITIONS, label="condition")
        return Step(
            f"delete {text}",
            lambda t: self.delete(t, text),
            lambda s: {key: row for key, row in s.items() if not matches(row)},
        )

    def _step_overwrite(self, data: Any) -> Step:
        text, matches = data.draw(st.just(("true", lambda _: True)) | CONDITIONS, label="condition")
        rows = [row for row in self._draw_rows(data, list(self.names)) if matches(row)]
        table = self._data(rows, list(self.names))
        return Step(
            f"overwrite {text} with {rows}",
            lambda t: t.overwrite(table, where=text),
            lambda s: self._upserted({k: r for k, r in s.items() if not matches(r)}, rows),
        )

    def _step_upkeep(self, data: Any) -> Step:
        text, _ = data.draw(CONDITIONS, label="condition")
        runs: dict[str, Callable[[it.Table], Any]] = {
            "compact": self.compact,
            f"compact {text}": lambda t: t.compact(text),
            "compact where it pays": lambda t: t.compact(min_logs=2, min_percent=150),
            "optimize": lambda t: t.optimize(),
            "lay out": lambda t: t.optimize(z_order_by=["v", "w"]),
            "analyze": lambda t: t.analyze(),
            "drop statistics": lambda t: t.drop_statistics(["v"]),
            "drop statistics of the key": lambda t: t.drop_statistics(
                [name for name in self.key if name not in self.partition]
            ),
            "checkpoint": lambda t: t.checkpoint(),
            "vacuum": lambda t: t.vacuum(apply=True),
        }
        name = data.draw(st.sampled_from(list(runs)), label="upkeep")
        return Step(name, runs[name], lambda s: s)

    def _step_vacuum(self, _data: Any) -> Step:
        return Step(
            "vacuum",
            lambda t: t.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE),
            lambda s: s,
        )

    def _step_evolve(self, data: Any) -> Step:
        types = schema_to_arrow(self.table.schema)
        changes = {"v": pa.int64(), "id": pa.int64()}
        what = data.draw(st.sampled_from(["add", *changes]), label="change")
        if what in changes:
            at = types.get_field_index(what)
            wanted = types.set(at, types.field(at).with_type(changes[what]))
            return Step(
                f"widen {what}", lambda t: t.evolve(wanted), lambda s: s, (CommitConflictError,)
            )
        name = f"n{len(self.names)}"
        wanted = types.append(pa.field(name, pa.int32()))
        return Step(
            f"add {name}",
            lambda t: t.evolve(wanted),
            lambda s: {key: {**row, name: row.get(name)} for key, row in s.items()},
            (CommitConflictError,),
        )

    def _step_restore(self, data: Any) -> Step:
        version = data.draw(st.sampled_from(sorted(self.versions)), label="version")
        old, names = self.versions[version], self.names
        return Step(
            f"restore {version}",
            lambda t: t.restore(version),
            lambda _: {key: {**dict.fromkeys(names), **row} for key, row in old.items()},
            (ObjectNotFoundError,) if version < self._lowest else (),
        )

    def _step_rollback(self, data: Any) -> Step:
        known = [v for v in self.versions if v - 1 in self.versions]
        version = data.draw(st.sampled_from([max(known), *sorted(known)]) if known else st.just(0))
        before, after = self.versions.get(version - 1, {}), self.versions.get(version, {})
        names = self.names

        def undo(state: Rows) -> Rows:
            new = dict(state)
            for key in before.keys() | after.keys():
                old = before.get(key)
                if _same(old, after.get(key)):
                    continue
                new.pop(key, None)
                if old is not None:
                    new[key] = {**dict.fromkeys(names), **old}
            return new

        gone = (ObjectNotFoundError,) if version - 1 < self._lowest else ()
        built_on = () if version == self.table.version else (CommitConflictError,)
        errors = (*gone, *built_on, SchemaEvolutionError)
        if not known:
            errors = (IndexTablesError,)
        return Step(f"rollback {version}", lambda t: t.rollback(version), undo, errors)

    @property
    def _lowest(self) -> int:
        return self.table.snapshot().min_read_version

    # -- carried out ---------------------------------------------------------------------------

    def _settle(self, state: Rows) -> None:
        """The table is now known to be this."""
        names = self.names
        self.state = {key: {**dict.fromkeys(names), **row} for key, row in state.items()}
        self.versions[self.table.version] = self.state

    def _do(self, step: Step) -> None:
        try:
            step.run(self.table)
        except step.may_fail:
            self._settle(self.state)
            return
        self._settle(step.model(self.state))

    @rule(data=st.data())
    def write(self, data: Any) -> None:
        self._do(self._step_upsert(data))

    @rule(data=st.data())
    def write_again(self, data: Any) -> None:
        """Writes are what everything else is about, so they come more often."""
        self._do(self._step_upsert(data))

    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        self._do(self._step_delete(data))

    @rule(data=st.data())
    def overwrite(self, data: Any) -> None:
        self._do(self._step_overwrite(data))

    @rule(data=st.data())
    def upkeep(self, data: Any) -> None:
        self._do(self._step_upkeep(data))

    @precondition(lambda self: len(self.names) < 8)
    @rule(data=st.data())
    def evolve(self, data: Any) -> None:
        self._do(self._step_evolve(data))

    @rule(data=st.data())
    def restore(self, data: Any) -> None:
        self._do(self._step_restore(data))

    @rule(data=st.data())
    def rollback(self, data: Any) -> None:
        self._do(self._step_rollback(data))

    @rule(data=st.data())
    def vacuum_at_once(self, data: Any) -> None:
        self._do(self._step_vacuum(data))

    @rule()
    def reopen(self) -> None:
        self.table = it.Table(self.uri)

    kinds = st.sampled_from(
        ["upsert", "delete", "overwrite", "upkeep", "evolve", "restore", "rollback", "vacuum"]
    )

    @rule(
        data=st.data(),
        kind=kinds,
        store=st.sampled_from([FaultyStore, CrashingStore]),
        call=st.integers(0, 30),
        when=st.sampled_from(["before", "after"]),
    )
    def crash(self, data: Any, kind: str, store: Any, call: int, when: Any) -> None:
        """A store that fails at some call: the change is there once, or not at all."""
        step = self._step(data, kind)
        failing = store(open_store(self.uri), fail_at=call, when=when)
        succeeded = False
        try:
            step.run(it.Table(failing))
            succeeded = True
        except (IndexTablesError, SimulatedCrash):
            pass
        self.table = it.Table(self.uri)
        after = step.model(self.state)
        found = self._bag(self.rows())
        possible = [after] if succeeded else [self.state, after]
        self._settle(next((s for s in possible if self._bag(self._wide(s)) == found), possible[-1]))

    @rule(data=st.data(), mine=kinds, theirs=kinds)
    def race(self, data: Any, mine: str, theirs: str) -> None:
        """Another writer commits just before: the loser ends up as if it had come second."""
        first, second = self._step(data, theirs), self._step(data, mine)
        won: list[bool] = []

        def meanwhile() -> None:
            try:
                first.run(it.Table(self.uri))
            except first.may_fail:
                won.append(False)
            else:
                won.append(True)

        store = InterleavedStore(open_store(self.uri), meanwhile)
        lost = False
        try:
            second.run(it.Table(store))
        except (CommitConflictError, *second.may_fail):
            lost = True
        except ObjectNotFoundError:
            # a restore that lost against a vacuum: it says so instead of bringing back half a version
            if theirs != "vacuum" or mine not in {"restore", "rollback"}:
                raise
            lost = True
        between = self.state
        if won == [True]:
            between = first.model(self.state)
            if self.table.version > max(self.versions) + 1:
                self.versions[max(self.versions) + 1] = between
        self._settle(between if lost else second.model(between))

    @rule()
    def repair(self) -> None:
        """A new log from the old one, put in its place: the same rows, and no history."""
        store = open_store(self.uri)
        result = it.repair(f"{self.uri}/_transaction_log", f"{self.uri}/_repaired")
        assert result.status == "SUCCESS", result
        for meta in list(store.list("_transaction_log/")):
            store.delete(meta.key)
        for meta in list(store.list("_repaired/")):
            store.put(meta.key.replace("_repaired", "_transaction_log", 1), store.get(meta.key))
            store.delete(meta.key)
        self.table = it.Table(self.uri)
        self.versions = {}
        self._settle(self.state)

    @rule(data=st.data())
    def travel(self, data: Any) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)), label="version")
        try:
            found = self._bag(self.rows(version=version))
        except ObjectNotFoundError:
            assert version < self._lowest
            return
        names = self.table.snapshot(version).schema.names
        assert found == self._bag(self._wide(self.versions[version], names))

    @rule(data=st.data())
    def ask(self, data: Any) -> None:
        """A condition finds the rows it is TRUE for, whatever was skipped."""
        text, matches = data.draw(CONDITIONS, label="condition")
        expected = [row for row in self.state.values() if matches(row)]
        assert self._bag(self.rows(text)) == self._bag(expected), text

    @invariant()
    def the_rows_are_the_same(self) -> None:
        if hasattr(self, "table"):
            assert self._bag(self.rows()) == self._bag(self.state.values())
            assert self.table.scan().count() == len(self.state)

    def teardown(self) -> None:
        if hasattr(self, "table"):
            assert self.table.check(deep=True).problems == ()
            self.table.compact()
            assert self._bag(self.rows()) == self._bag(self.state.values())
            kinds = set(self.table.snapshot().column("kind").to_pylist())
            assert kinds <= {"base"}

    def _wide(self, state: Rows, names: Any = None) -> list[Row]:
        names = names or self.names
        return [{**dict.fromkeys(names), **row} for row in state.values()]

    @staticmethod
    def _bag(rows: Any) -> Counter[str]:
        return Counter(repr(sorted(row.items())) for row in rows)


def _same(one: Row | None, two: Row | None) -> bool:
    """The same row, columns that came in between left aside."""
    if one is None or two is None:
        return one is two
    return all(one.get(name) == two.get(name) for name in {*one, *two})
