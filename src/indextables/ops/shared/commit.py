"""Conditions, settings and targets of a verb, and its commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

from indextables.config import TARGET_FILE_SIZE, Config
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import And, Compare, IsIn, IsNull, Literal, Or, Predicate, Ref
from indextables.core.predicate.to_sql import to_sql
from indextables.core.prune.partitions import decode_partition
from indextables.core.stats import stats_columns
from indextables.core.stats.truncate import TruncationOptions
from indextables.core.stats.truncation_options import ignored_overrides
from indextables.core.types import DataType
from indextables.display import html_facts, what_changed
from indextables.errors import CommitConflictError
from indextables.log.commit.attempt import Proposal
from indextables.log.commit.intent import CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Txn
from indextables.log.wire.indextables4spark import check_parquet
from indextables.parquet.read.row_filter import check_evaluable
from indextables.parquet.write.write import WriteTarget, Written
from indextables.plan.merge_rule import MergeRule

# A condition that is TRUE for exactly the rows of some partitions.


def partition_condition(values: Iterable[Mapping[str, str | None]], metadata: Metadata) -> Predicate:
    """Returns a condition over the partition columns alone; it is FALSE if there are no partitions."""
    types = {field.name: field.type for field in metadata.schema}
    columns = metadata.partition_columns
    distinct = dict.fromkeys(tuple(each.get(name) for name in columns) for each in values)
    if len(columns) == 1:
        return _one_of(columns[0], [texts[0] for texts in distinct], types[columns[0]])
    return Or(
        tuple(
            And(tuple(_is(name, text, types[name]) for name, text in zip(columns, texts, strict=True)))
            for texts in distinct
        )
    )


def _one_of(name: str, texts: list[str | None], kind: DataType) -> Predicate:
    literals = tuple(_literal(text, kind) for text in texts if text is not None)
    is_null: tuple[Predicate, ...] = (IsNull(Ref((name,))),) if None in texts else ()
    values: tuple[Predicate, ...] = (IsIn(Ref((name,)), literals),) if literals else ()
    return Or((*values, *is_null))


def _is(name: str, text: str | None, kind: DataType) -> Predicate:
    ref = Ref((name,))
    return IsNull(ref) if text is None else Compare("=", ref, _literal(text, kind))


def _literal(text: str, kind: DataType) -> Literal:
    return Literal(decode_partition(text, kind), kind)


@dataclass(frozen=True, slots=True)
class Condition:
    """The rows a verb is about, as the user gave them, bound anew to each snapshot; None means all rows."""

    where: Predicate | None = None
    timezone: str = "UTC"
    shown: Mapping[str, str] | None = None
    """What history shows instead of the condition itself."""

    def bound(self, snapshot: Snapshot) -> Predicate | None:
        """Returns the condition over this snapshot's columns; PredicateError if it cannot be computed from rows."""
        if self.where is None:
            return None
        bound = bind(self.where, snapshot.schema, timezone=self.timezone)
        check_evaluable(bound)
        return bound

    @property
    def parameters(self) -> dict[str, str]:
        """Returns what history shows of the condition."""
        if self.shown is not None:
            return dict(self.shown)
        return {} if self.where is None else {"predicate": to_sql(self.where)}


@dataclass(frozen=True, slots=True)
class SamePartitions:
    """The rows of every partition that the new data has a row in, or all rows if there are no partitions."""

    def of(self, written: Written, metadata: Metadata) -> Condition:
        """Returns the condition, now that the new data is known."""
        if not metadata.partition_columns:
            return Condition()
        return Condition(
            partition_condition([add.partition_values for add in written.adds], metadata),
            shown={"mode": "dynamic"},
        )


# What a verb did, for the user who called it.


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The table's version after the call; `committed` is False if there was nothing to do."""

    version: int
    operation: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    committed: bool = True
    skipped: frozenset[str] = frozenset()
    """Names of the exchanges left out because another writer replaced their files meanwhile."""

    def _repr_html_(self) -> str:
        done = what_changed(self.metrics) if self.committed else "nothing to do, nothing committed"
        return html_facts(self.operation, {"version": self.version, "what it did": done or None})


def commit(
    log: TransactionLog,
    proposal: Proposal,
    snapshot: Snapshot,
    *,
    discard: Callable[[], None] = lambda: None,
) -> CommitResult:
    """Commits a plan made for this snapshot, or what a planner plans for the newest one.

    If nothing can be planned at all, no commit was attempted, so nothing refers to the files that were written
    for it: `discard` deletes them.
    """
    last: list[CommitPlan] = []

    def remember(now: Snapshot) -> CommitPlan:
        assert not isinstance(proposal, CommitPlan)
        try:
            _check_not_vacuumed(snapshot, now)
            last.append(proposal(now))
        except BaseException:
            if not last:
                discard()
            raise
        return last[-1]

    if isinstance(proposal, CommitPlan):
        last.append(proposal)
        done = log.commit(proposal, snapshot)
    else:
        done = log.commit(remember, snapshot)
    plan = last[-1].without(done.skipped)
    return CommitResult(done.version, plan.operation, plan.all_metrics(), not done.no_op, done.skipped)


def _check_not_vacuumed(began: Snapshot, now: Snapshot) -> None:
    """Raises CommitConflictError if a vacuum has passed this writer.

    The commit itself asks this too; asking first saves planning in vain.
    """
    if began.version < now.min_read_version:
        raise CommitConflictError(
            f"this write began at version {began.version}, and a vacuum has since removed "
            f"files of writers that began below {now.min_read_version}",
            hint="start again from the current version",
            read_version=began.version,
            min_read_version=now.min_read_version,
        )


def is_done(snapshot: Snapshot, txn: Txn | None) -> bool:
    """Returns True if the application has committed this batch, or a later one, before."""
    done = snapshot.txns.get(txn.app_id) if txn else None
    return txn is not None and done is not None and done.version >= txn.version


# Where the next write of a table goes and with which settings.

_logger: Final = logging.getLogger(__name__)


def config_for(properties: Mapping[str, str], options: Mapping[str, object] | None) -> Config:
    """Returns the options of the call over the table's properties; ConfigError before anything is written."""
    config = Config.of(write=options, table=properties).validate()
    TruncationOptions.from_config(config, warns=False)  # `truncation_for` warns, once a write
    return config


def write_target(metadata: Metadata, read_version: int, config: Config) -> WriteTarget:
    """Returns where and how to write, in a fresh directory.

    The directory's name says which version the writer had read; vacuum relies on it. The columns of a
    record key always get statistics, because an upsert finds the files to read by them.
    """
    if "format" in metadata.extra:  # tables written here have none
        check_parquet(metadata)
    wanted = stats_columns(metadata.schema, metadata.partition_columns, config)
    key = [(n,) for n in MergeRule.of(metadata.properties).key if n not in metadata.partition_columns]
    return WriteTarget(
        schema=metadata.schema,
        partition_columns=metadata.partition_columns,
        schema_id=metadata.schema_id,
        directory=f"data/{read_version}-{uuid4()}",
        stats_columns=(*wanted, *(path for path in key if path not in wanted)),
        truncation=truncation_for(metadata, config),
        split_bytes=config.get(TARGET_FILE_SIZE),
    )


def truncation_for(metadata: Metadata, config: Config) -> TruncationOptions:
    """Returns the truncation rules for this table's columns, and warns once of a rule for a missing column."""
    for key, why in ignored_overrides(config, metadata.schema):
        _warn(metadata.id, key, why)
    return TruncationOptions.from_config(config)


@lru_cache(maxsize=1024)
def _warn(table: str, key: str, why: str) -> None:  # noqa: ARG001 - once for each table
    _logger.warning("Option '%s' is ignored: %s", key, why)
