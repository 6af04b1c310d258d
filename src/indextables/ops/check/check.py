"""Checks a table and reports every problem of its log and files, not just the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indextables.core.prune.partitions import partition_scalar
from indextables.display import html_facts, html_table
from indextables.errors import IndexTablesError, LogCorruptedError
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.check.log import Problem, check_log
from indextables.ops.check.rows import check_keys, check_rows, check_slices, check_text
from indextables.ops.shared.executor import Executor
from indextables.storage.base import ObjectMeta

Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The problems of a table, and notes that are only worth knowing."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    commits: int
    files: int
    depth: Literal["log and files", "log, files and rows"]

    @property
    def ok(self) -> bool:
        """Returns True if nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        head = f"{self.commits} commits, {self.files} files ({self.depth}): "
        verdict = "no problem found" if self.ok else f"{len(self.problems)} problems"
        lines = [*self.problems, *(f"note: {note}" for note in self.notes)]
        return "\n".join([head + verdict, *map(str, lines)])

    def _repr_html_(self) -> str:
        head, *lines = str(self).splitlines()
        return (
            html_table(head, ("found",), [(line,) for line in lines]) if lines else html_facts(head, {})
        )


def check(
    log: TransactionLog, executor: Executor, *, deep: bool = False, progress: Progress | None = None
) -> CheckReport:
    """Reads the whole log and compares it with the store; `deep` also compares rows with their statistics."""
    findings = check_log(log)
    problems, notes = list(findings.problems), list(findings.notes)
    files = 0
    try:
        snapshot = log.snapshot()
    except IndexTablesError as error:
        notes.append(
            Problem(
                "not-opened", log.names.directory, None, f"the files were not checked: {error.message}"
            )
        )
    else:
        files = snapshot.num_files
        stored = {meta.key: meta for meta in log.store.list("")}
        problems += _missing(snapshot, stored)
        problems += _bad_partitions(snapshot)
        problems += check_slices(snapshot)
        notes += _unreferenced(snapshot, stored, log.names.prefix)
        if deep:
            damaged = {problem.file for problem in problems}
            problems += check_rows(snapshot, executor, damaged, progress)
            damaged |= {problem.file for problem in problems}
            problems += check_text(snapshot, log.store, damaged)
            if not problems:  # files that are unreadable or in no slice cannot be merged
                problems += check_keys(snapshot, log.store)
    return CheckReport(
        tuple(problems),
        tuple(notes),
        findings.commits,
        files,
        "log, files and rows" if deep else "log and files",
    )


def _missing(snapshot: Snapshot, stored: Mapping[str, ObjectMeta]) -> Iterator[Problem]:
    columns = (snapshot.column(name).to_pylist() for name in ("key", "size", "seq"))
    for key, size, seq in zip(*columns, strict=True):
        found = stored.get(key)
        if found is None:
            yield Problem(
                "missing-file", key, None, f"the data file of version {seq} is not in the store"
            )
        elif size is not None and found.size != size:
            yield Problem(
                "wrong-size", key, None, f"the log says {size} bytes, the file has {found.size}"
            )


def _bad_partitions(snapshot: Snapshot) -> Iterator[Problem]:
    if not snapshot.partition_columns:
        return
    types = {field.name: field.type for field in snapshot.schema}
    rows = zip(
        snapshot.column("key").to_pylist(), snapshot.column("partition_values").to_pylist(), strict=True
    )
    for key, values in rows:
        for name, text in (values or {}).items():
            try:
                partition_scalar(text, types[name])
            except LogCorruptedError as error:
                yield Problem("bad-partition-value", key, None, f"column {name!r}: {error.message}")


def _unreferenced(
    snapshot: Snapshot, stored: Mapping[str, ObjectMeta], log_prefix: str
) -> Iterator[Problem]:
    known = {*snapshot.column("key").to_pylist(), *snapshot.tombstones.column("key").to_pylist()}
    for key, meta in stored.items():
        if key not in known and not key.startswith(log_prefix):
            yield Problem(
                "unreferenced-file",
                key,
                None,
                f"{meta.size} bytes that the newest version does not use",
            )
