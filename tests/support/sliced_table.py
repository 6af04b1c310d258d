"""The table of the conformance suite once more, as slices: base files under logs that replace and delete rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.conformance import NEW, OLD, random_rows
from support.slices import File, SliceWriter

import indextables as it

# the key is wider than in older files, too
KEYED_OLD = OLD.set(0, pa.field("id", pa.int32(), nullable=False))
KEYED_NEW = NEW.set(0, pa.field("id", pa.int64(), nullable=False))
PARTITIONS = ("day", "region")
PARTS = (["n", "name", "amount"], ["d", "f", "place"], ["flag", "raw", "tags", "at"], ["local", "on"])


@dataclass(frozen=True)
class Sliced:
    """A table, and by id the rows it must show: all of them, and those of the base files alone."""

    table: it.Table
    rows: dict[int, dict[str, Any]]
    bases: dict[int, dict[str, Any]]


class _Maker:
    def __init__(self, path: Path, mode: str) -> None:
        self.rng = random.Random(11)
        self.mode, self.schema = mode, KEYED_OLD
        self.table = it.Table.create(
            path, KEYED_OLD, partition_by=PARTITIONS, record_key=["id"], merge_mode=mode
        )
        self.writer = SliceWriter(self.table)
        self.rows: dict[int, dict[str, Any]] = {}
        self.bases: dict[int, dict[str, Any]] = {}

    def base(self, number: int) -> None:
        """Forty rows of one partition in a group of their own."""
        rows = random_rows(self.rng, number, self.schema.names)
        self.writer.commit(File(f"g{number}", pa.Table.from_pylist(rows, self.schema)))
        self.bases |= {row["id"]: row for row in rows}
        self.rows |= {row["id"]: row for row in rows}

    def upsert(self, number: int, values_of: int, columns: Sequence[str] | None = None) -> None:
        """Some rows of a group get values as another group has them; in columns mode only these columns."""
        chosen = self._some(number)
        values = random_rows(self.rng, values_of, self.schema.names)
        new = {i: row | self._fixed(i, number) for i, row in zip(chosen, values, strict=False)}
        names = list(self.schema.names)
        if columns is not None and self.mode == "columns":
            names = [n for n in names if n in ("id", *PARTITIONS, *columns)]
        self._log(number, [{n: row[n] for n in names} for row in new.values()], names, "data")
        whole = dict.fromkeys(self.schema.names)
        for i, row in new.items():
            old = (
                whole if len(names) == len(whole) else self.rows.get(i, whole | self._fixed(i, number))
            )
            self.rows[i] = old | {n: row[n] for n in names}

    def delete(self, number: int) -> None:
        """Some rows of a group are gone."""
        chosen = self._some(number)
        self._log(number, [self._fixed(i, number) for i in chosen], ["id", *PARTITIONS], "delete")
        for i in chosen:
            self.rows.pop(i, None)

    def evolve(self) -> None:
        """From here on columns are wider, and there is one more."""
        self.table.evolve(KEYED_NEW)
        self.schema = KEYED_NEW

    def made(self) -> Sliced:
        names = self.schema.names
        found = [
            {i: {n: row.get(n) for n in names} for i, row in rows.items()}
            for rows in (self.rows, self.bases)
        ]
        return Sliced(self.table, *found)

    def _some(self, number: int) -> list[int]:
        return sorted(self.rng.sample(range(number * 40, number * 40 + 40), 15))

    def _fixed(self, i: int, number: int) -> dict[str, Any]:
        return {"id": i} | {name: self.bases[number * 40][name] for name in PARTITIONS}

    def _log(self, number: int, rows: list[dict[str, Any]], names: list[str], block: str) -> None:
        schema = pa.schema([self.schema.field(name) for name in names])
        partial = block == "data" and len(names) < len(self.schema.names)
        columns = names if partial else None
        self.writer.commit(File(f"g{number}", pa.Table.from_pylist(rows, schema), block, columns))


def make_slices(path: Path, mode: str) -> Sliced:
    """Twelve groups; every third has no log, others have up to four, before and after the schema changed."""
    maker = _Maker(path, mode)
    for number in range(6):
        maker.base(number)
    maker.upsert(0, 3, PARTS[0])
    maker.upsert(1, 9, PARTS[1])
    maker.delete(1)
    maker.delete(4)
    maker.evolve()
    for number in range(6, 12):
        maker.base(number)
    maker.upsert(0, 8, PARTS[2])
    maker.upsert(3, 1, ["added", *PARTS[3]])
    maker.upsert(4, 7, PARTS[0])
    maker.delete(6)
    maker.upsert(6, 2)
    maker.upsert(7, 0, PARTS[1])
    maker.upsert(7, 5, PARTS[0])
    maker.delete(9)
    maker.delete(0)
    maker.upsert(10, 10, ["added"])
    return maker.made()
