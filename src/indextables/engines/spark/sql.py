"""`spark.sql`: statements that touch a table of this library; every other one reaches Spark untouched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from py4j.java_gateway import JavaObject
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.sql_formatter import SQLStringFormatter

from indextables.config import Config
from indextables.engines.spark.jvm.gateway import jvm_tools, quoted
from indextables.engines.spark.place.tables_and_options import is_ours, open_table, settings_of
from indextables.engines.spark.scan.explain_labels import describing
from indextables.engines.spark.scan.reader import read_table
from indextables.engines.spark.statement import statement_reader as dml
from indextables.engines.spark.statement.plan_rewrite import Rewriter, frame_of, name_path
from indextables.engines.spark.statement.statements import nothing
from indextables.engines.spark.statement.unsupported import (
    refuse_catalog_statement,
    refuse_explained_change,
)
from indextables.engines.spark.statement.views import forget, refresh_views
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.executor import SparkExecutor, spark_executor
from indextables.errors import IndexTablesError
from indextables.log.transaction_log import TransactionLog
from indextables.sql import commands

Parameters: TypeAlias = Mapping[str, object] | Sequence[object]
"""The values of a statement's parameters, by their names or in their order."""
_LEVEL: Final = "storagelevel"


@dataclass(frozen=True)
class SessionContext:
    """What the statements of this library need, from a Spark session."""

    session: SparkSession

    @property
    def config(self) -> Config:
        """Returns the session's settings."""
        return Config.of(session=settings_of(self.session))

    def open_log(self, location: str) -> TransactionLog:
        """Returns the log of a table as this session reaches it."""
        return open_table(self.session, location).log

    def executor(self, location: str) -> SparkExecutor:
        """Returns Spark itself, for the heavy work."""
        return spark_executor(self.session, location)


def run_sql(
    session: SparkSession,
    to_spark: Callable[[], DataFrame],
    text: str,
    args: Parameters | None,
    frames: Mapping[str, object],
) -> DataFrame:
    """Returns the result of a statement; `to_spark` runs it unchanged in Spark."""
    refresh_views(session, text)
    if not commands.may_be_ours(text):
        return to_spark()
    found = commands.find(text)
    if found is not None:
        command, arguments = found
        return seam.from_arrow(session, command.run(SessionContext(session), arguments))
    formatter = SQLStringFormatter(session)
    try:
        plan = _parse(session, formatter.format(text, **frames) if frames else text, args)
        result = None if plan is None else _run(session, plan)
        return to_spark() if result is None else result
    finally:
        if frames:
            formatter.clear()


def path_of_name(session: SparkSession, name: object) -> str | None:
    """Returns the path in ``indextables.`path` ``, as `spark.table` and the like take it; None for other names."""
    if not isinstance(name, str) or not commands.may_be_ours(name):
        return None
    try:
        return name_path(session, _parser(session).parseMultipartIdentifier(name))
    except ParseException:
        return None


def _parser(session: SparkSession) -> JavaObject:
    return session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001


def _parse(session: SparkSession, text: str, args: Parameters | None) -> JavaObject | None:
    """Returns the parsed statement; None if it does not parse, so that Spark says why in its own words."""
    try:
        if not args:
            return _parser(session).parsePlan(text)
        return seam.parse(jvm_tools(), _parser(session), text, _parameters(session, args))
    except ParseException:
        return None


def _parameters(
    session: SparkSession, args: Parameters
) -> Mapping[str, JavaObject] | Sequence[JavaObject]:
    if isinstance(args, Mapping):
        return {name: seam.expression_of(session, sf.lit(value)) for name, value in args.items()}
    return [seam.expression_of(session, sf.lit(value)) for value in args]


def _run(session: SparkSession, plan: JavaObject) -> DataFrame | None:
    """Returns the result of a statement that touches a table of this library; None if it touches none."""
    name = plan.nodeName()
    if name == "CreateTempViewUsing":
        return _view_using(session, plan) if is_ours(plan.provider()) else None
    changed = dml.run(session, plan)
    if changed is not None:
        return changed
    refuse_catalog_statement(session, plan)
    rewriter = Rewriter(session)
    rewrite = _REWRITES.get(name, _query)
    return rewrite(session, plan, rewriter)


def _query(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    rewritten = rewriter.rewrite(plan)
    return frame_of(session, rewritten) if rewriter.replaced else None


def _explain(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    refuse_explained_change(session, plan.logicalPlan())
    refuse_catalog_statement(session, plan.logicalPlan())
    inner = rewriter.rewrite(plan.logicalPlan())
    if not rewriter.replaced:
        return None
    # as Spark's command does it, except that the scans can be counted while the plan is printed
    skip = jvm_tools().lookup("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    execution = session._jsparkSession.sessionState().executePlan(inner, skip)  # noqa: SLF001
    try:
        with describing(execution):
            return session.createDataFrame([(execution.explainString(plan.mode()),)], "plan STRING")
    except PySparkException:
        return frame_of(session, plan.copy(inner, plan.mode()))  # says what is wrong with the query


def _view(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    """Creates a temporary view of the plan, which follows its tables: Spark could not resolve its text later."""
    rewritten = rewriter.rewrite(plan.plan())
    if not rewriter.replaced:
        return None
    frame = frame_of(session, rewritten)
    columns = plan.userSpecifiedColumns()
    if columns.length():
        frame = frame.toDF(*(columns.apply(i).productElement(0) for i in range(columns.length())))
    is_global = plan.viewType().toString() == "GlobalTempView"
    _register(frame, plan.name().table(), replace=plan.replace(), is_global=is_global)
    return nothing(session)


def _cached(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    """Runs CACHE TABLE … AS SELECT: caches a temporary view that keeps its rows, unlike those that `_view` makes."""
    rewritten = rewriter.rewrite(plan.plan())
    if not rewriter.replaced:
        return None
    name = seam.view_name(jvm_tools(), plan)
    _register(frame_of(session, rewritten), name, replace=False, is_global=False)
    forget(session, name)
    given = jvm_tools().as_java(plan.options())
    level = next((given.get(key) for key in given.keySet().toArray() if key.lower() == _LEVEL), None)
    options = f" OPTIONS ('{_LEVEL}' '{level}')" if level else ""
    try:
        session.sql(f"CACHE {'LAZY ' if plan.isLazy() else ''}TABLE {quoted(name)}{options}")
    except Exception:
        session.catalog.dropTempView(name)
        raise
    return nothing(session)


def _described(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    inner = rewriter.rewrite(plan.plan())
    return frame_of(session, plan.copy(plan.queryText(), inner)) if rewriter.replaced else None


def _permanent_view(_session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    rewriter.rewrite(plan.query())
    if not rewriter.replaced:
        return None
    raise IndexTablesError(
        "a permanent view cannot read a table by its path: the catalog keeps only its text",
        hint="use CREATE TEMPORARY VIEW in each session that needs it",
    )


def _view_using(session: SparkSession, plan: JavaObject) -> DataFrame:
    given = jvm_tools().as_java(plan.options())
    options = {str(key): str(given.get(key)) for key in given.keySet().toArray()}
    if plan.userSpecifiedSchema().isDefined():
        raise IndexTablesError(
            "a view over a table takes the table's columns", hint="leave the columns out"
        )
    path = next((value for key, value in options.items() if key.lower() == "path"), "")
    frame = read_table(session, path, options)
    _register(
        frame,
        plan.tableIdent().table(),
        replace=plan.replace(),
        is_global=getattr(plan, "global")(),
    )
    return nothing(session)


def _register(frame: DataFrame, name: str, *, replace: bool, is_global: bool) -> None:
    match replace, is_global:
        case True, True:
            frame.createOrReplaceGlobalTempView(name)
        case True, False:
            frame.createOrReplaceTempView(name)
        case False, True:
            frame.createGlobalTempView(name)
        case _:
            frame.createTempView(name)


_REWRITES: Final[Mapping[str, Callable[[SparkSession, JavaObject, Rewriter], DataFrame | None]]] = {
    "ExplainCommand": _explain,
    "CreateViewCommand": _view,
    "CacheTableAsSelect": _cached,
    "DescribeQueryCommand": _described,
    "CreateView": _permanent_view,
}
