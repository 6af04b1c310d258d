"""Plans a repair: what it would keep and leave out, and why. Nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from indextables.config import Config
from indextables.core.stats.truncate import TruncationMetrics
from indextables.display import counted, html_facts, html_share, human_bytes
from indextables.errors import IndexTablesError, LogCorruptedError, RepairError, StorageError
from indextables.log.open.load import Listing
from indextables.log.state.segments import TOMBSTONES, Segment, Shape
from indextables.log.state.snapshot import Files, Snapshot
from indextables.log.wire.actions import AVRO_STATE, check_writable
from indextables.log.wire.files import Unverified
from indextables.log.wire.indextables4spark import is_of_states, is_search_index
from indextables.ops.repair.evidence import Evidence, gather
from indextables.ops.repair.findings import Excluded, Finding, incomplete, listed
from indextables.ops.repair.log_location import LogLocation, Opener, location_of, opener_with
from indextables.ops.repair.route import Route, broken_link, find_route
from indextables.ops.repair.settings import RepairSettings
from indextables.ops.repair.shorten import Shortener, without_dropped
from indextables.ops.repair.state import Rebuilt, finding_of, rebuild
from indextables.ops.repair.validate import (
    Progress,
    Validation,
    all_lost,
    lost_from_slices,
    newer_strangers,
    unchecked,
    validate,
)


@dataclass(frozen=True)
class RepairPlan:
    """What a repair of this log would write. If there is an `error`, it would write nothing.

    `kept`, `missing` and `mismatched` together are all splits of the newest version. `unreadable` lists
    what is damaged in the log itself, whether it is needed or not.
    """

    source: str
    version: int = -1
    base: int | None = None
    """The version of the checkpoint it starts from; -1 for the first commit; None if there is no complete route."""
    missing: tuple[Excluded, ...] = ()
    mismatched: tuple[Excluded, ...] = ()
    unreadable: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    stats_bytes_saved: int = 0
    error: IndexTablesError | None = None
    snapshot: Snapshot | None = field(default=None, repr=False)
    """The kept splits, as version 1 of the new log."""
    source_address: str = ""
    fingerprint: str = ""
    """A digest of the names and sizes of the source's files, by which a later call sees that the log has changed."""
    truncated: TruncationMetrics = field(default_factory=TruncationMetrics, repr=False)

    def __str__(self) -> str:
        return plan_text(self)

    def _repr_html_(self) -> str:
        kept = self.total_splits - len(self.excluded)
        share = html_share(
            kept, self.total_splits, f"{kept:,} of {counted(self.total_splits, 'split')} kept"
        )
        facts = {
            "log": self.source,
            "version": self.version,
            "missing": len(self.missing) or None,
            "not as the log says": len(self.mismatched) or None,
            "damaged in the log": len(self.unreadable) or None,
            "statistics saved": human_bytes(self.stats_bytes_saved) if self.stats_bytes_saved else None,
            "refused because": self.error,
        }
        return html_facts("Repair plan", facts) + share

    @property
    def kept(self) -> tuple[str, ...]:
        """Returns the paths of the splits that stay."""
        return tuple(self.snapshot.column("key").to_pylist()) if self.snapshot else ()

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        """Returns the splits that are left out, each with the reason."""
        return (*self.missing, *self.mismatched)

    @property
    def total_splits(self) -> int:
        """Returns the number of live splits in the newest version."""
        return (self.snapshot.num_files if self.snapshot else 0) + len(self.excluded)

    def check(self, *, fail_on_missing: bool = False) -> Snapshot:
        """Returns the state to write; raises the error that forbids it."""
        if self.error is not None:
            raise self.error
        assert self.snapshot is not None, "a plan has a state or an error"
        if fail_on_missing and self.excluded:
            raise RepairError(
                f"{len(self.excluded)} splits are not as the log says: {listed(self.excluded)}",
                hint="restore them, or repair with failOnMissing=false to leave them out",
                excluded=self.excluded,
            )
        return self.snapshot


def plan_repair(
    src: str | Path,
    *,
    validate_splits: bool | None = None,
    preserve_stats: bool | None = None,
    parallelism: int | None = None,
    config: Config | Mapping[str, object] | None = None,
    storage_options: Mapping[str, object] | None = None,
    opener: Opener | None = None,
    progress: Progress | None = None,
) -> RepairPlan:
    """Plans the repair of a log without writing anything. Problems of the log are in the plan, not raised.

    Args:
        src: The log directory, such as "table/_transaction_log".
        validate_splits: Look whether each split is stored with the size the log says; True by default.
        preserve_stats: Keep statistics, shortened to the limits of the settings; True by default.
        parallelism: How many files to read at a time.
        config: Settings (`spark.indextables.repair.*`); the arguments go before them.
        storage_options: Credentials and endpoints of an object store.
        opener: Opens the store of a table by its URI, instead of this library's own stores.
        progress: Called with the number of splits looked at and of all.

    Returns:
        The plan. Printed, it is the dry run.

    Raises:
        RepairError: `src` does not name a log directory.
        StorageError: The store fails, which says nothing about the log.
        ConfigError: An option has a value it cannot have.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://plan_repair", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1]}))
        >>> print(it.plan_repair("memory://plan_repair/_transaction_log"))
        repair of memory://plan_repair/_transaction_log at version 1
          1 of 1 splits are kept
          0 bytes of statistics are left out
    """
    settings = RepairSettings.of(
        config,
        validate_splits=validate_splits,
        preserve_stats=preserve_stats,
        parallelism=parallelism,
    )
    return make_plan(location_of(src, opener or opener_with(storage_options)), settings, progress)


def make_plan(
    location: LogLocation, settings: RepairSettings, progress: Progress | None = None
) -> RepairPlan:
    """Returns the plan for an opened log; StorageError if the store fails, which says nothing about the log."""
    evidence = gather(location, settings.parallelism)
    damage = tuple(found for file in evidence.files() for found in file.findings)
    blank = RepairPlan(
        location.uri,
        unreadable=damage,
        source_address=location.address,
        fingerprint=fingerprint(evidence.listing),
    )
    if evidence.newest < 0:
        return replace(blank, error=_no_log(location))
    try:
        recovered = _read(evidence, settings)
        check_writable(_in_json(recovered.rebuilt.snapshot).protocol)
    except StorageError:
        raise
    except IndexTablesError as error:
        return replace(blank, error=error)
    unneeded = tuple(
        replace(found, needed=False)
        for found in (*damage, *recovered.refuted.values(), *recovered.rebuilt.findings)
    )
    blank = replace(blank, unreadable=unneeded, notes=tuple(notes_on(evidence, recovered.route)))
    return _finish(blank, recovered, location, settings, progress)


def fingerprint(listing: Listing) -> str:
    """Returns the names and sizes of all commits and checkpoints as one short digest."""
    files = [*(f for found in listing.commits.values() for f in found), *listing.checkpoints]
    lines = sorted(f"{file.name} {file.size}" for file in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class _Recovered:
    route: Route
    rebuilt: Rebuilt
    shortener: Shortener
    refuted: Mapping[str, Finding]


def _read(evidence: Evidence, settings: RepairSettings) -> _Recovered:
    """Returns the state by the longest complete route, avoiding files that turn out to be damaged."""
    refuted: dict[str, Finding] = {}
    options = settings.truncation({})
    while True:
        route = find_route(evidence, refuted)
        shortener = Shortener(options, keep=settings.preserve_stats)
        found = broken_link(route)
        if found is None:
            try:
                rebuilt = rebuild(evidence.location, route, shortener)
            except LogCorruptedError as error:
                found = finding_of(error)
            else:
                own = settings.truncation(rebuilt.snapshot.properties)
                if is_search_index(rebuilt.snapshot.metadata):
                    own = own.dropping()  # its software knows no marks
                if own == options:
                    return _Recovered(route, rebuilt, shortener, refuted)
                options = own  # known only after reading the newest properties, so read again
                continue
        key = f"{evidence.location.names.prefix}{found.file}"
        if key in refuted:
            raise incomplete([found])
        refuted[key] = found


def _finish(
    plan: RepairPlan,
    recovered: _Recovered,
    location: LogLocation,
    settings: RepairSettings,
    progress: Progress | None,
) -> RepairPlan:
    state = _in_json(recovered.rebuilt.snapshot)
    checked = unchecked(state)
    notes = list(plan.notes)
    if settings.validate_splits:
        checked = validate(state, location.store, settings.parallelism, progress)
        notes.extend(_strangers(state, location))
    kept = _only(state, checked)
    return replace(
        plan,
        version=state.version,
        base=recovered.route.start,
        missing=checked.missing,
        mismatched=checked.mismatched,
        notes=tuple(notes),
        stats_bytes_saved=recovered.shortener.saved_by(kept.column("key")),
        snapshot=kept,
        truncated=recovered.shortener.metrics,
        error=lost_from_slices(state, checked) or all_lost(state, checked),
    )


def _in_json(state: Snapshot) -> Snapshot:
    """Returns the table as a log in JSON has it, whatever its own log is kept in."""
    features = tuple(name for name in state.protocol.writer_features if name != AVRO_STATE)
    return replace(state, protocol=replace(state.protocol, writer_features=features))


def _only(state: Snapshot, checked: Validation) -> Snapshot:
    """Returns the table with just the valid splits: without history, tombstones and vacuum's mark.

    That mark counts versions of the old log. The new one starts at zero, so it would lock every writer out.
    """
    files = state.files().filter(pa.array(checked.valid)).combine_chunks()
    if is_search_index(state.metadata):
        files = without_dropped(files)
    segment = Segment.alive(files, Shape.of(state.metadata))
    return replace(
        state,
        version=1,
        min_read_version=0,
        state=Files((segment,), TOMBSTONES.empty_table()),
    )


def _strangers(state: Snapshot, location: LogLocation) -> Iterator[str]:
    if state.timestamp_ms is None:
        return
    found = list(newer_strangers(state, location.store, state.timestamp_ms, location.names.directory))
    if found:
        yield (
            f"{len(found)} data files are newer than version {state.version} and in no commit, written by "
            f"a writer that has not committed or for a commit that is lost: {listed(found)}"
        )


def _no_log(location: LogLocation) -> RepairError:
    return RepairError(
        f"there is no transaction log at {location.uri}",
        hint="name the log directory itself, such as 'table/_transaction_log'",
        uri=location.uri,
    )


def notes_on(evidence: Evidence, route: Route) -> Iterator[str]:
    """Yields what a reader of the plan should know although it does not prevent the repair."""
    names = evidence.location.names
    if evidence.hint_problem is not None:
        yield f"{names.hint} is garbled ({evidence.hint_problem}); nothing depends on it"
    elif evidence.hint is None and evidence.checkpoints:
        yield f"{names.hint} is missing; nothing depends on it"
    if route.base is not None:
        yield f"the state starts from {route.base.file.name}, not from the first commit"
    foreign = [c for c in route.commits if isinstance(c.verdict, Unverified)]
    if foreign:
        yield (
            f"{len(foreign)} commits have no checksum, because another program wrote them: they can be read, but "
            f"nothing proves that they are whole (the first is {foreign[0].file.name})"
        )
    if len(widths := sorted(evidence.listing.widths)) > 1:
        yield f"names of {' and '.join(map(str, widths))} digits are mixed; the new log has 18"
    if strangers := list(_stray_names(evidence)):
        yield f"files that do not belong to a log are left where they are: {listed(strangers)}"


def _stray_names(evidence: Evidence) -> Iterator[str]:
    names = evidence.location.names
    for meta in evidence.location.store.list(names.prefix):
        key = meta.key.removeprefix(names.prefix)
        if names.parse(meta) is None and meta.key != names.hint and not is_of_states(key):
            yield meta.key


def plan_text(plan: RepairPlan) -> str:
    """Returns the plan as text, the dry run: a line for each split left out and each damaged file."""
    return "\n".join(_lines(plan))


def _lines(plan: RepairPlan) -> Iterator[str]:
    if plan.error is not None:
        yield f"{plan.source} cannot be repaired: {plan.error.message}"
    else:
        yield f"repair of {plan.source} at version {plan.version}"
        yield f"  {len(plan.kept)} of {plan.total_splits} splits are kept"
        yield f"  {plan.stats_bytes_saved} bytes of statistics are left out"
    for what, excluded in (("missing", plan.missing), ("mismatched", plan.mismatched)):
        yield from (f"  {what}: {one}" for one in excluded)
    for finding in plan.unreadable:
        yield f"  {'unreadable' if finding.needed else 'unreadable, not needed'}: {finding}"
    yield from (f"  note: {note}" for note in plan.notes)
