"""Changes what a table says about itself: its properties and its description, in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from indextables.core.stats import stats_columns
from indextables.core.stats.truncation_options import TruncationOptions
from indextables.errors import ConfigError
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata
from indextables.ops.shared.commit import CommitResult, commit, config_for
from indextables.ops.shared.record_key import refuse_misspelled
from indextables.plan.merge_rule import MERGE_MODE, RECORD_KEY

_FIXED = frozenset({RECORD_KEY.lower(), MERGE_MODE.lower()})


def set_properties(
    log: TransactionLog,
    properties: Mapping[str, object],
    remove: Iterable[str] = (),
    *,
    if_exists: bool = True,
) -> CommitResult:
    """Commits the properties with these changed and those removed; commits nothing if that changes nothing.

    ConfigError for one that would change what the rows mean, that cannot be understood, or, unless
    `if_exists`, for one to be removed that is not there.
    """
    texts = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in properties.items()
    }
    gone = tuple(remove)

    def plan(snapshot: Snapshot) -> CommitPlan:
        missing = [key for key in gone if key not in snapshot.properties]
        if missing and not if_exists:
            raise ConfigError(
                f"the table has no property {missing[0]!r}",
                hint=f"it has {sorted(snapshot.properties)}; IF EXISTS removes those that are there",
                key=missing[0],
            )
        kept = {key: value for key, value in snapshot.properties.items() if key not in gone}
        changed = replace(snapshot.metadata, properties={**kept, **texts})
        _check(snapshot.metadata, changed)
        return _plan(snapshot, changed, {"properties": texts, "removedProperties": list(gone)})

    return commit(log, plan, log.snapshot())


def set_description(log: TransactionLog, description: str | None) -> CommitResult:
    """Commits what the table says it is for; commits nothing if it says so already."""

    def plan(snapshot: Snapshot) -> CommitPlan:
        changed = replace(snapshot.metadata, description=description)
        return _plan(snapshot, changed, {"description": description or ""})

    return commit(log, plan, log.snapshot())


def _plan(snapshot: Snapshot, changed: Metadata, parameters: Mapping[str, object]) -> CommitPlan:
    actions = () if changed == snapshot.metadata else (changed,)
    return CommitPlan(ChangeSchema(), "SET PROPERTIES", actions, parameters=dict(parameters))


def _check(before: Metadata, after: Metadata) -> None:
    """Raises ConfigError for properties with which the next write would fail, or rows would mean something else."""
    refuse_misspelled(after.properties)
    for key in {*before.properties, *after.properties}:
        if key.lower() in _FIXED and before.properties.get(key) != after.properties.get(key):
            raise ConfigError(
                f"{key} is said once, when a table is created",
                hint="make the table anew: mode('overwrite') and option('overwriteSchema', 'true')",
                key=key,
            )
    config = config_for(after.properties, None).validate()
    TruncationOptions.from_config(config)
    stats_columns(after.schema, after.partition_columns, config)
