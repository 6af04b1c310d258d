"""For any history of a table: the repaired log shows exactly the table the source shows, up to truncation."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.core.stats.truncate import TruncationOptions, truncate_stats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.wire.actions import Remove, Txn
from indextables.log.commit.intent import Append, ChangeSchema, CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.ops.repair import repair
from support.damage import RealTable, make_table, new_split

REPAIRED = "_transaction_log_repaired"
steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("overwrite"), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("analyze"), st.integers(0, 9)),
    st.tuples(st.just("checkpoint"), st.integers(0, 1)),
    st.tuples(st.just("add column"), st.just(0)),
    st.tuples(st.just("widen"), st.just(0)),
    st.tuples(st.just("txn"), st.integers(0, 2)),
)
_numbers = itertools.count(1)


def play(table: RealTable, step: str, amount: int) -> None:
    """One step of a history, as a commit of the library's own."""
    log = table.transaction_log()
    snapshot = log.snapshot()
    live = snapshot.splits()
    adds = tuple(
        replace(
            new_split(table.root, next(_numbers), length=1100), schema_id=snapshot.metadata.schema_id
        )
        for _ in range(amount if step in {"append", "overwrite"} else 0)
    )
    removes = tuple(Remove(split.path, 1_700_000_000_000) for split in live)
    match step:
        case "append":
            plan = CommitPlan(Append(), "APPEND", adds)
        case "overwrite":
            plan = CommitPlan(Rewrite(), "OVERWRITE", (*removes, *adds))
        case "delete":
            plan = CommitPlan(Rewrite(), "DELETE", removes[amount : amount + 2])
        case "analyze":
            again = [
                replace(s.to_add(), data_change=False, stats=None) for s in live[amount : amount + 1]
            ]
            plan = CommitPlan(Append(), "ANALYZE", tuple(again))
        case "checkpoint":
            table.transaction_log(checkpoint_format=("json", "parquet")[amount]).checkpoint()
            return
        case "txn":
            version = snapshot.txns["stream"].version + 1
            plan = CommitPlan(
                Append(), "APPEND", (Txn("stream", version), Txn(f"app{amount}", version))
            )
        case _:
            plan = CommitPlan(ChangeSchema(), "CHANGE SCHEMA", _changed(snapshot, step))
    if plan.actions:
        log.commit(lambda _: plan)


def _changed(snapshot: Snapshot, step: str) -> tuple:
    old = snapshot.metadata
    if step == "add column":
        fields = (*old.schema, Field(f"c{len(old.schema.fields)}", PrimitiveType("string")))
    else:
        wide = {"date": "timestamp_ntz"}
        fields = tuple(
            replace(f, type=PrimitiveType(wide.get(f.type.name, f.type.name))) for f in old.schema
        )
    schema = StructType(tuple(fields))
    if schema == old.schema:
        return ()
    past = {**old.past_schemas, old.schema_id: old.schema}
    return (replace(old, schema=schema, schema_id=old.schema_id + 1, past_schemas=past),)


def assert_same_table(source: Snapshot, repaired: Snapshot) -> None:
    """Everything a reader or a writer can see of the table, statistics up to truncation."""
    options = TruncationOptions()
    assert repaired.metadata == source.metadata
    assert repaired.protocol == source.protocol
    assert dict(repaired.txns) == dict(source.txns)
    assert repaired.unknown == source.unknown
    one, two = source.files().drop_columns("stats"), repaired.files().drop_columns("stats")
    assert two.equals(one)
    for was, now in zip(source.splits(), repaired.splits(), strict=True):
        assert now.stats == truncate_stats(was.stats, was.schema, options)[0]


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(steps, max_size=9), st.booleans())
def test_property_a_repaired_log_shows_the_same_table(history, forget: bool):
    """Appends, overwrites, deletes, new statistics, checkpoints and schema changes in any order."""
    root = Path(tempfile.mkdtemp(prefix="repair-"))
    try:
        table = make_table(root / "t", commits=1, length=1100)
        for step, amount in history:
            play(table, step, amount)
        if forget:
            _forget_old_commits(table)
        source, before = table.snapshot(), table.seal()
        result = repair(table.log, table.target)
        assert (result.source_version, result.valid_splits, result.missing_splits, result.status) == (
            source.version,
            source.num_files,
            0,
            "SUCCESS",
        )
        assert_same_table(source, table.snapshot(REPAIRED))
        assert table.seal().items() >= before.items()
    finally:
        shutil.rmtree(root)


def _forget_old_commits(table: RealTable) -> None:
    """What a cleanup may do: delete every commit below the newest checkpoint."""
    versions = [int(p.name[:18]) for p in table.log.glob("*.checkpoint.json")]
    for version in range(max(versions, default=0)):
        table.commit(version).unlink(missing_ok=True)
