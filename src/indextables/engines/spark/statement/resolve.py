"""Catalyst's expressions as columns of a DataFrame, resolved in the scope that the statement gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField

from indextables.engines.spark.jvm.gateway import column_of, jvm_tools
from indextables.engines.spark.statement.plan_rewrite import Rewriter
from indextables.errors import PredicateError

_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"


def with_scans(expression: JavaObject, rewriter: Rewriter) -> JavaObject:
    """Returns the expression with a native scan for every table in its subqueries."""
    tools = jvm_tools()
    alias = tools.lookup("org.apache.spark.sql.catalyst.analysis.UnresolvedAlias")
    holder = tools.lookup(f"{_LOGICAL}.Project")(
        tools.seq([alias(expression, tools.none)]), tools.lookup(f"{_LOGICAL}.OneRowRelation")()
    )
    return rewriter.rewrite(holder).projectList().apply(0).child()


@dataclass(frozen=True)
class Resolved:
    """A value of each row of a DataFrame with all names resolved, so that it means the same in a join above."""

    column: Column
    field: StructField


def resolve_in(scope: DataFrame, expression: JavaObject) -> Resolved:
    """Returns the expression over the columns of `scope` and no others; Spark's own error for other names."""
    frame = scope.select(column_of(expression).alias("value"))
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    below = scope._jdf.queryExecution().analyzed()  # noqa: SLF001
    if plan.nodeName() != "Project" or not plan.child().equals(below):
        raise PredicateError(
            f"a change cannot be computed from other rows: {expression.sql()}",
            hint="compute aggregates and window functions in the source of a MERGE",
        )
    return Resolved(column_of(plan.projectList().apply(0).child()), frame.schema.fields[0])
