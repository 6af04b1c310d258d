"""One attempt at a change: the statement read against one version of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Constant, Predicate
from indextables.core.predicate.tree import fold, is_computed
from indextables.core.prune.evaluate import must_match
from indextables.core.stats.columns import FileMask, as_array, is_null
from indextables.engines.spark.change.clauses import Scopes, merge_clauses, update_clause
from indextables.engines.spark.jvm.gateway import column_of, each
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, SparkTable
from indextables.engines.spark.scan.conditions import to_predicate
from indextables.engines.spark.scan.relation import native_frame
from indextables.engines.spark.statement.names import find_named, is_path, names_of
from indextables.engines.spark.statement.plan_rewrite import Rewriter, aliased, frame_of
from indextables.engines.spark.statement.resolve import with_scans
from indextables.engines.spark.write.changed_rows import IN_SOURCE, Clause, Target, changed_rows, joined
from indextables.errors import PredicateError, UnknownColumnError
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.read.row_filter import is_evaluable
from indextables.plan.slices import whole_slices


@dataclass(frozen=True)
class Reading:
    """The statement's names, source and subqueries, all as of this snapshot."""

    session: SparkSession
    table: SparkTable
    snapshot: Snapshot
    plan: Any
    fixed_source: DataFrame | None = None
    """The rows of `source`, if they were computed before."""

    @cached_property
    def rewriter(self) -> Rewriter:
        """Reads the table itself at this snapshot, wherever the statement names it."""
        return Rewriter(self.session, {self.table.place.root: self.snapshot})

    @property
    def operation(self) -> str:
        """Returns DELETE, UPDATE or MERGE."""
        return {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE"}.get(self.plan.nodeName(), "MERGE")

    @cached_property
    def condition(self) -> Any | None:
        """Returns the WHERE of the statement, or the ON of a MERGE; None without one."""
        match self.operation:
            case "MERGE":
                found = self.plan.mergeCondition()
            case "UPDATE":
                given = self.plan.condition()
                found = given.get() if given.isDefined() else None
            case _:
                found = self.plan.condition()
        return None if found is None else with_scans(found, self.rewriter)

    @cached_property
    def source(self) -> DataFrame:
        """Returns the rows of the USING clause, marked as such."""
        if self.fixed_source is not None:
            return self.fixed_source
        rows = frame_of(self.session, self.rewriter.rewrite(self.plan.sourceTable()))
        return rows.select("*", F.lit(True).alias(IN_SOURCE))

    def named(self, frame: DataFrame) -> DataFrame:
        """Returns the frame under the name that the statement has for the table."""
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        return frame_of(self.session, aliased(plan, self._names))

    @property
    def _names(self) -> tuple[str, ...]:
        target = self.plan.targetTable() if self.operation == "MERGE" else self.plan.table()
        if target.nodeName() == "SubqueryAlias":
            return (str(target.alias()),)
        names = names_of(target.multipartIdentifier())
        if not is_path(self.session, names) and (named := find_named(self.session, names)):
            return named.parts
        return (SHORT_NAME, self.table.place.location)

    def changes(self, target: Target) -> tuple[DataFrame, Sequence[Clause]]:
        """Returns the changed rows and the clauses that changed them; nothing runs yet."""
        scopes = Scopes(self.snapshot.schema, target.frame, self._names)
        if self.operation == "MERGE":
            sides = [
                name
                for name, actions in (
                    ("source", self.plan.notMatchedActions()),
                    ("target", self.plan.notMatchedBySourceActions()),
                )
                if actions.length()
            ]
            both = joined(target, self.source, column_of(self.condition), sides)
            scopes = Scopes(scopes.schema, target.frame, self._names, self.source, both)
            clauses = merge_clauses(self.plan, scopes, self.rewriter)
            return changed_rows(both, target, clauses), clauses
        rows = target.frame
        if self.condition is not None:
            rows = rows.where(column_of(self.condition))
        if self.operation == "DELETE":
            clause = Clause("delete", "target")
        else:
            clause = update_clause(self.plan.assignments(), scopes, self.rewriter)
        return changed_rows(rows, target, [clause]), [clause]

    @property
    def shown(self) -> dict[str, str]:
        """Returns what history says about the statement."""
        if self.operation != "MERGE":
            return {} if self.condition is None else {"predicate": self.condition.sql()}
        clauses = [
            {"when": when, **_shown_action(action)}
            for when, actions in (
                ("matched", self.plan.matchedActions()),
                ("not matched", self.plan.notMatchedActions()),
                ("not matched by source", self.plan.notMatchedBySourceActions()),
            )
            for action in each(actions)
        ]
        predicate = self.plan.mergeCondition().sql()
        return {"predicate": predicate, "clauses": orjson.dumps(clauses).decode()}

    @property
    def is_plain(self) -> bool:
        """Returns whether `where` is the whole condition, and means to us exactly what it means to Spark."""
        if self.operation == "MERGE" or self.where is None or not is_evaluable(self.where):
            return False
        return not fold(self.where, lambda node, below: is_computed(node) or any(below))

    @cached_property
    def whole(self) -> FileMask:
        """Returns the files that a DELETE removes without opening them: each row matches, and none may raise.

        The proof is of the statement's own condition, not of what a scan is handed; how many rows go is known.
        """
        nowhere = np.zeros(self.snapshot.num_files, np.bool_)
        if self.operation != "DELETE" or self.where is None:
            return nowhere
        counted = ~is_null(as_array(self.snapshot.index().source.num_records()))
        return whole_slices(self.snapshot, must_match(self.where, self.snapshot.index()) & counted)

    @cached_property
    def where(self) -> Predicate | None:
        """Returns `predicate` in terms of this snapshot's columns."""
        if self.predicate is None:
            return None
        try:
            return bind(self.predicate, self.snapshot.schema, case_sensitive=True)
        except (PredicateError, UnknownColumnError):
            return None

    @cached_property
    def predicate(self) -> Predicate | None:
        """Returns a condition that every row of the table satisfies which the change depends on; None: any row.

        A part that is not understood is Opaque in it.
        """
        if self.operation == "MERGE" and self.plan.notMatchedBySourceActions().length():
            return None
        # Only to ask Spark what the condition comes to: this is never run.
        rows = self.named(native_frame(self.session, self.snapshot, self.table.place))
        if self.operation == "MERGE":
            rows = rows.join(self.source, column_of(self.condition), "left_semi")
        elif self.condition is not None:
            rows = rows.where(column_of(self.condition))
        if self.rewriter.read_pinned:
            return None  # a subquery, or a source, reads the table itself: any row may matter
        plan = rows._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
        if self.operation != "MERGE":
            return scan_filter(plan)
        while plan.nodeName() == "Project":
            plan = plan.child()
        # What the condition says of the table alone, and what follows from it, is right above its scan.
        return scan_filter(plan.left()) if plan.nodeName() == "Join" else None


def _shown_action(action: Any) -> dict[str, str]:
    kind = str(action.nodeName()).removesuffix("Action").removesuffix("Star").lower()
    condition = action.condition()
    return {"action": kind} | ({"predicate": condition.get().sql()} if condition.isDefined() else {})


def scan_filter(plan: Any) -> Predicate | None:
    """Returns the condition of a filter right above a scan, TRUE without one.

    None if there is anything else.
    """
    while plan.nodeName() in {"Project", "SubqueryAlias"}:
        plan = plan.child()
    if plan.nodeName() == "LogicalRelation":
        return Constant(True)
    if plan.nodeName() == "Filter" and plan.child().nodeName() == "LogicalRelation":
        return to_predicate(plan.condition())
    return None
