"""Why a condition keeps the splits it keeps: piece by piece, column by column, split by split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from indextables.cli.report.known import ColumnReach, column_reach, known_of
from indextables.core.bind.bind import bind
from indextables.core.expr.evaluate import why_not
from indextables.core.predicate.nodes import And, Not, Opaque, Or, Over, Predicate
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import columns_of, flatten
from indextables.core.prune.evaluate import may_match
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats.columns import FileMask
from indextables.log.state.snapshot import Snapshot
from indextables.plan.report import PruneReport
from indextables.sql.conditions.parser import parse_predicate
from indextables.table.table import Table

Joint: TypeAlias = Literal["AND", "OR"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A piece of the condition, and how many splits it would keep alone."""

    depth: int
    condition: str
    joint: Joint | None
    """How the pieces below it are joined; None for a piece without any."""
    kept: int
    why: str
    """What kept it from skipping more; empty if nothing did."""
    mask: FileMask = field(repr=False)
    bound: Predicate = field(repr=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one split is kept or skipped, and what the log knows that decided it."""

    path: str
    kept: bool
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The pieces of a condition in the order they were written, and the columns they read."""

    snapshot: Snapshot
    report: PruneReport
    mask: FileMask = field(repr=False)
    """The splits the query reads."""
    steps: tuple[Step, ...]
    columns: tuple[ColumnReach, ...]

    def verdicts(self, limit: int | None = None) -> Iterator[Verdict]:
        """Yields the verdict on each split, in the table's order."""
        index, legs = self.snapshot.index(), _legs(self.steps)
        for at, key in enumerate(self.snapshot.column("key").slice(0, limit).to_pylist()):
            kept = bool(self.mask[at])
            decisive = legs if kept else [leg for leg in legs if not leg.mask[at]]
            # no piece alone may exclude it, and yet two together leave no value
            yield Verdict(key, kept, _why(decisive or legs, at, index))


def _legs(steps: Sequence[Step]) -> Sequence[Step]:
    """Returns the pieces that can skip a split alone."""
    return [step for step in steps if step.depth == 1] if steps[0].joint == "AND" else steps[:1]


def _why(decisive: Sequence[Step], at: int, index: ColumnStatsIndex) -> str:
    if not index.may_have_rows[at]:
        return "it has no rows"
    paths = {path: None for leg in decisive for path in columns_of(leg.bound)}
    return ", ".join(known_of(index, path, at) for path in paths)


def explain(
    table: Table, where: str | Predicate, *, version: int | None = None, timezone: str = "UTC"
) -> Explanation:
    """Returns the condition taken apart over the table's statistics; no data file is opened."""
    condition = parse_predicate(where, timezone) if isinstance(where, str) else where
    plan = table.plan(condition, version=version, timezone=timezone).plan
    index = plan.snapshot.index()
    steps = tuple(_steps(flatten(condition), plan.snapshot, timezone))
    columns = {path: None for step in steps if step.joint is None for path in columns_of(step.bound)}
    return Explanation(
        plan.snapshot,
        plan.report,
        plan.mask,
        steps,
        tuple(column_reach(index, path) for path in columns),
    )


def _steps(condition: Predicate, snapshot: Snapshot, timezone: str) -> Iterator[Step]:
    """Yields the pieces from the outside in; a NOT is moved inwards."""
    stack: list[tuple[Predicate, int]] = [(condition, 0)]
    index = snapshot.index()
    while stack:
        node, depth = stack.pop()
        joint, children = _parts(node)
        bound = bind(node, snapshot.schema, timezone=timezone)
        mask = may_match(bound, index)
        why = "" if joint else _obstacle(bound, index, mask)
        text = to_sql(node)
        yield Step(depth, text, joint, int(np.count_nonzero(mask)), why, mask, bound)
        stack.extend((child, depth + 1) for child in reversed(children))


def _parts(node: Predicate) -> tuple[Joint | None, tuple[Predicate, ...]]:
    match node:
        case And(children) if children:
            return "AND", children
        case Or(children) if children:
            return "OR", children
        case Not(And(children)) if children:
            return "OR", tuple(map(_negated, children))
        case Not(Or(children)) if children:
            return "AND", tuple(map(_negated, children))
        case _:
            return None, ()


def _negated(node: Predicate) -> Predicate:
    return node.child if isinstance(node, Not) else Not(node)


def _obstacle(bound: Predicate, index: ColumnStatsIndex, mask: FileMask) -> str:
    found: list[str] = []
    inner = bound.child if isinstance(bound, Not) else bound
    if isinstance(inner, Opaque):
        found.append(inner.why or "statistics cannot answer it")
    if isinstance(inner, Over) and (why := why_not(inner.expression)):
        found.append(f"{why}: a condition on the column itself would skip files")
    for path in columns_of(bound):
        missing = int(np.count_nonzero(index.column(path).missing & mask))
        if missing:
            found.append(f"{missing} without statistics of {'.'.join(path)}")
    return "; ".join(found)
