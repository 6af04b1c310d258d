"""Writers inside writers: each commits just before the one it interrupts, on random changes, against a dict."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from support.interleave import InterleavedStore

from indextables.storage.open import open_store
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("p", pa.string())])
Rows = dict[int, tuple[int | None, str | None]]
Change = tuple[Callable[[Table], Any], Callable[[Rows], Rows]]


def upsert(ids: list[int], v: int, p: str) -> Change:
    rows: Rows = dict.fromkeys(ids, (v, p))
    return lambda t: t.upsert(_table(rows)), lambda old: {**old, **rows}


def set_v(ids: list[int], v: int, p: str) -> Change:
    data = pa.table({"id": ids, "v": [v] * len(ids)})
    return lambda t: t.upsert(data), lambda old: {
        **old,
        **{i: (v, old.get(i, (None, None))[1]) for i in ids},
    }


def set_p(ids: list[int], v: int, p: str) -> Change:
    data = pa.table({"id": ids, "p": [p] * len(ids)})
    return lambda t: t.upsert(data), lambda old: {
        **old,
        **{i: (old.get(i, (None, None))[0], p) for i in ids},
    }


def delete_range(ids: list[int], v: int, p: str) -> Change:
    low, high = min(ids), min(ids) + 3
    return lambda t: t.delete(f"id >= {low} and id < {high}"), lambda old: {
        i: row for i, row in old.items() if not low <= i < high
    }


def delete_values(ids: list[int], v: int, p: str) -> Change:
    return lambda t: t.delete(f"v = {v} and p = '{p}'"), lambda old: {
        i: row for i, row in old.items() if row != (v, p)
    }


def overwrite(ids: list[int], v: int, p: str) -> Change:
    rows: Rows = dict.fromkeys(ids, (v, p))
    return lambda t: t.overwrite(_table(rows), where=f"p = '{p}'"), lambda old: {
        **{i: row for i, row in old.items() if row[1] != p},
        **rows,
    }


def compact(ids: list[int], v: int, p: str) -> Change:
    return lambda t: t.compact(), lambda old: old


def optimize(ids: list[int], v: int, p: str) -> Change:
    return lambda t: t.optimize(), lambda old: old


WHOLE = [upsert, upsert, upsert, delete_range, delete_values, overwrite, compact, optimize]
PARTIAL = [*WHOLE, set_v, set_p]


def _table(rows: Rows) -> pa.Table:
    values = zip(*rows.values(), strict=True)
    return pa.table([list(rows), *map(list, values)], schema=SCHEMA)


@dataclass
class World:
    """A table and the dict it must equal."""

    chance: random.Random
    mode: str
    path: str = field(default_factory=lambda: f"memory://{uuid4()}")
    rows: Rows = field(default_factory=dict)

    def __post_init__(self) -> None:
        partitions = self.chance.choice([[], ["p"]])
        Table.create(
            self.path, SCHEMA, record_key=["id"], merge_mode=self.mode, partition_by=partitions
        )

    def change(self, depth: int) -> None:
        """One change, interrupted by one or two others before it commits, and these by others."""
        pick = self.chance.choice(PARTIAL if self.mode == "columns" else WHOLE)
        ids = self.chance.sample(range(8), self.chance.randint(1, 4))
        run, model = pick(ids, self.chance.randint(0, 3), self.chance.choice("ab"))

        def meanwhile() -> None:
            for _ in range(self.chance.randint(1, 2) if depth else 0):
                self.change(depth - 1)

        store = InterleavedStore(open_store(self.path), meanwhile)
        run(Table(store))
        if store.happened:
            self.rows = model(self.rows)
        else:
            assert model(self.rows) == self.rows

    def check(self) -> None:
        found = Table(self.path).scan().to_arrow().to_pylist()
        assert len(found) == len({row["id"] for row in found})
        assert {row["id"]: (row["v"], row["p"]) for row in found} == self.rows


def play(seed: int) -> None:
    chance = random.Random(seed)
    world = World(chance, ("record", "columns")[seed % 2])
    for _ in range(6):
        world.change(chance.randint(0, 2))
        world.check()
    assert Table(world.path).check(deep=True).problems == ()


@pytest.mark.parametrize("seed", range(8))
def test_writers_that_interrupt_each_other_end_up_one_after_the_other(seed):
    """The rows are those of all changes in the order of their commits."""
    play(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_writers_that_interrupt_each_other(seed):
    """The same for longer."""
    play(seed)
