"""Which rows an overwrite replaces, as the session that writes reads the condition.

Spark parses and resolves it, as it does that of a DELETE: what a backslash, a double quote or a cast
means in it is a matter of the session's settings.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, SparkSession

from indextables.core.predicate.nodes import Constant, Opaque, Predicate
from indextables.core.predicate.tree import fold, is_computed
from indextables.engines.spark.change.reading import scan_filter
from indextables.engines.spark.jvm.gateway import column_of
from indextables.engines.spark.place.tables_and_options import SparkTable, open_table, parsed_alike
from indextables.engines.spark.scan.relation import native_frame
from indextables.engines.spark.statement.plan_rewrite import Rewriter
from indextables.engines.spark.statement.resolve import with_scans
from indextables.engines.spark.versions import seam
from indextables.errors import PredicateError, UnknownColumnError
from indextables.ops.shared.commit import Condition
from indextables.sql.conditions.parser import parse_predicate


def condition_of_text(session: SparkSession, path: str, text: str) -> Condition:
    """Returns the condition of the option replaceWhere.

    PredicateError if only an engine can evaluate it.
    """
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    return condition_of_expression(session, path, parser.parseExpression(text), text)


def condition_of_expression(
    session: SparkSession, path: str, expression: Any, text: str | None = None
) -> Condition:
    """Returns the condition of INSERT … REPLACE WHERE, as Spark parsed it."""
    text = str(expression.sql()) if text is None else text
    table = open_table(session, path)
    # Spark says what is wrong with a subquery; one that reads a table by its path is refused like others.
    rewriter = Rewriter(session, {table.place.root: table.log.snapshot()})
    column = column_of(with_scans(expression, rewriter))
    where = _understood(session, table, column)
    if where is None and parsed_alike(session, text):
        # A text that is compared with a number: rows can be told apart by it, by Spark's own cast.
        zone = str(session.conf.get("spark.sql.session.timeZone"))
        found = parse_predicate(text, zone)
        if not fold(found, lambda node, below: isinstance(node, Opaque) or any(below)):
            return Condition(found, zone, shown={"predicate": text})
    return _condition(where, text)


def condition_of_column(session: SparkSession, path: str, column: Column, text: str) -> Condition:
    """Returns the condition of `df.writeTo(…).overwrite(…)`."""
    return _condition(_understood(session, open_table(session, path), column), text)


def _condition(where: Predicate | None, text: str) -> Condition:
    if where is None:
        raise PredicateError(
            f"rows cannot be filtered by `{text}` here: only an engine can evaluate it",
            hint="replaceWhere and overwrite(…) take comparisons of columns with constants; otherwise DELETE "
            "the rows first, then append",
        )
    return Condition(where, shown={"predicate": text})


def _understood(session: SparkSession, table: SparkTable, column: Column) -> Predicate | None:
    """Returns what Spark makes of the condition on this table.

    None if a part of it means nothing to us.
    """
    # Only to ask Spark what the condition comes to: this is never run.
    rows = native_frame(session, table.log.snapshot(), table.place)
    try:
        plan = rows.where(column)._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
    except AnalysisException as error:
        raise _unknown(error) or error from None
    except (Py4JJavaError, PySparkException):
        return None  # a constant in it cannot be computed, so Spark would find no row by it either
    if plan.nodeName() == "LocalRelation":
        return Constant(False)  # no row at all can satisfy it
    found = scan_filter(plan)
    is_opaque = found is None or fold(found, lambda node, below: is_computed(node) or any(below))
    return None if is_opaque else found


def _unknown(error: AnalysisException) -> UnknownColumnError | None:
    """Returns what Spark says of a column that is not there, as our other verbs say it."""
    if not seam.condition_of(error).startswith("UNRESOLVED_COLUMN"):
        return None
    given = error.getMessageParameters() or {}
    name = str(given.get("objectName", "")).strip("`")
    return UnknownColumnError(
        f"the table has no column {name!r}",
        hint=f"it has {given['proposal']}" if "proposal" in given else None,
        column=name,
    )
