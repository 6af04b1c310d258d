"""Small tables of slices as plain rows, merged in the plainest way: what plans of slices are judged by."""

import json
import math
from dataclasses import dataclass
from uuid import uuid4

from hypothesis import strategies as st

from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.wire.actions import Add, Metadata, Protocol
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.storage import open_store
from support.truth import truth

SCHEMA = StructType(
    (
        Field("id", PrimitiveType("long")),
        Field("a", PrimitiveType("long")),
        Field("b", PrimitiveType("double")),
        Field("c", PrimitiveType("string")),
        Field("p", PrimitiveType("string")),
    )
)
VALUES = {
    ("id",): list(range(12)),
    ("a",): [0, 1, 2],
    ("b",): [0.0, 1.0, math.nan],
    ("c",): ["", "x", "xy"],
    ("p",): ["u", "v"],
}
COLUMNS = ("a", "b", "c")
GROUPS = 3


@dataclass(frozen=True)
class File:
    """A file of a slice: rows by key, of which each holds the columns that the file sets."""

    group: int
    seq: int
    block: str
    """base, data or delete."""
    rows: dict
    p: str | None
    columns: tuple = COLUMNS
    indexed: tuple = ()
    """The columns that have statistics; without the key it has none at all."""

    @property
    def path(self):
        return f"{self.seq:02}-{self.group}-{self.block}"

    def stats(self):
        if "id" not in self.indexed:
            return None
        known = [c for c in ("id", *self.columns) if c in self.indexed]
        values = {c: [key if c == "id" else row[c] for key, row in self.rows.items()] for c in known}
        bounded = {
            (c,): sorted(v for v in found if v is not None and not is_nan(v))
            for c, found in values.items()
        }
        return SplitStats(
            len(self.rows),
            {path: found[0] for path, found in bounded.items() if found},
            {path: found[-1] for path, found in bounded.items() if found},
            {(c,): sum(v is None for v in found) for c, found in values.items()},
            {("b",): sum(map(is_nan, values["b"]))} if "b" in values else {},
        )

    def add(self):
        kind = "base" if self.block == "base" else "log"
        tags = {} if self.columns == COLUMNS else {"columns": json.dumps(["id", *self.columns])}
        return Add(
            self.path,
            1,
            {"p": self.p},
            stats=self.stats(),
            tags=tags,
            seq=self.seq,
            file_group=f"group {self.group}",
            kind=kind,
            block=None if kind == "base" else self.block,
        )


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


@st.composite
def files_of(draw, mode):
    """Up to three groups; each has a base or not, and logs of any kind over it. Keys are of one group."""
    found = []
    for group in range(draw(st.integers(1, GROUPS))):
        keys = st.sets(st.sampled_from([k for k in range(12) if k % GROUPS == group]), min_size=1)
        p = draw(st.sampled_from(["u", "v", None]))
        blocks = draw(st.lists(st.sampled_from(["data", "delete"]), max_size=4))
        if draw(st.integers(0, 4)) or not blocks:
            blocks = ["base", *blocks]
        for number, block in enumerate(blocks):
            columns = COLUMNS
            if block == "delete":
                columns = ()
            elif block == "data" and mode == "columns":
                columns = tuple(c for c in COLUMNS if draw(st.booleans()))
            rows = {
                key: {c: draw(st.sampled_from([*VALUES[c,], None])) for c in columns}
                for key in sorted(draw(keys))
            }
            indexed = ("id", *columns)
            if not draw(st.integers(0, 3)):
                indexed = tuple(c for c in indexed if draw(st.booleans()))
            seq = 1 + number + draw(st.integers(0, 1)) * 5 * (number == len(blocks) - 1)
            found.append(File(group, seq, block, rows, p, columns, indexed))
    return found


def table_of(files, mode):
    """The files in a real log."""
    log = TransactionLog(open_store(f"memory://slices-{uuid4().hex}"))
    properties = {"recordKey": '["id"]', "mergeMode": mode}
    log.create(
        CommitPlan(
            Append(), "CREATE", (Protocol(), Metadata("id", SCHEMA, ("p",), properties=properties))
        )
    )
    log.commit(lambda _: CommitPlan(Append(), "UPSERT", tuple(file.add() for file in files)))
    return log.snapshot()


def merged(files, mode):
    """The rows of these files of one group, by key: a delete ends a row, a data log replaces or changes it."""
    rows = {}
    for file in sorted(files, key=lambda f: f.seq):
        for key, row in file.rows.items():
            if file.block == "delete":
                rows.pop(key, None)
            elif mode == "record":
                rows[key] = row
            else:
                rows[key] = {**dict.fromkeys(COLUMNS), **rows.get(key, {}), **row}
    return rows


def is_wanted(predicate, key, row, p):
    if predicate is None:
        return True
    return truth(predicate, {("id",): key, ("p",): p, **{(c,): v for c, v in row.items()}}) is True


def answer(files, mode, predicate):
    """The rows of the table that satisfy the condition."""
    found = []
    for group in range(GROUPS):
        mine = [f for f in files if f.group == group]
        found += [
            (k, row) for k, row in merged(mine, mode).items() if is_wanted(predicate, k, row, mine[0].p)
        ]
    return in_order(found)


def answer_of(plan, files):
    """The rows a reader gets that trusts the plan: bare files as they are, pieces merged."""
    by_path = {f.path: f for f in files}
    found = []
    for split in plan.snapshot.splits(plan.bare):
        file = by_path[split.path]
        found += [(k, row) for k, row in file.rows.items() if is_wanted(plan.predicate, k, row, file.p)]
    for piece in plan.pieces:
        mine = [by_path[s.path] for s in piece.files]
        logs = [by_path[s.path] for s in piece.deltas]
        if piece.mode == "columns":
            deletes = [f for f in logs if f.block == "delete"]
            rows = merged([*mine, *deletes], piece.mode).items()
        else:
            rows = [
                (key, row)
                for f in mine
                for key, row in f.rows.items()
                if not any(key in log.rows and log.seq > f.seq for log in logs)
            ]
        found += [(k, row) for k, row in rows if is_wanted(plan.predicate, k, row, mine[0].p)]
    return in_order(found)


def in_order(rows):
    """NaN equals itself as text."""
    return sorted((key, str(row)) for key, row in rows)
