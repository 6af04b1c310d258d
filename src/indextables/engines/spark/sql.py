"""`spark.sql`: statements that touch a table of this library; every other one reaches Spark untouched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from py4j.java_gateway import JavaObject
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.sql_formatter import SQLStringFormatter

from indextables.config import Config
from indextables.engines.spark.jvm.gateway import column_of, each, jvm_tools, quoted
from indextables.engines.spark.place.tables_and_options import is_ours, open_table, settings_of
from indextables.engines.spark.scan.explain_labels import describing
from indextables.engines.spark.scan.reader import read_table
from indextables.engines.spark.statement import statement_reader as dml
from indextables.engines.spark.statement.names import find_named, is_path, names_in, names_of
from indextables.engines.spark.statement.plan_rewrite import (
    Rewriter,
    aliased,
    frame_of,
    with_identifiers,
)
from indextables.engines.spark.statement.statement_reader import creates
from indextables.engines.spark.statement.statements import nothing
from indextables.engines.spark.statement.stored_views import create_view, find_view, is_known
from indextables.engines.spark.statement.table_statements import (
    refuse_explained_change,
    run_table_statement,
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
    is_named = commands.may_be_ours(text)
    if is_named or commands.begins_like_ours(text):
        found = commands.find(text, partial(_path, session))
        if found is not None:
            command, arguments = found
            return seam.from_arrow(session, command.run(SessionContext(session), arguments))
    formatter = SQLStringFormatter(session)
    try:
        plan = _parse(session, formatter.format(text, **frames) if frames else text, args)
        if plan is not None and "IDENTIFIER" in text.upper():
            is_named, plan = True, with_identifiers(session, plan)
        if plan is None or not (is_named or _names_ours(session, plan)):
            return to_spark()
        result = _run(session, plan)
        return to_spark() if result is None else result
    finally:
        if frames:
            formatter.clear()


def _path(session: SparkSession, names: Sequence[str]) -> str | None:
    found = find_named(session, names)
    return None if found is None else found.path


def _names_ours(session: SparkSession, plan: JavaObject) -> bool:
    """Returns whether a statement may read or change a table of this library by its name."""
    if "ExecuteImmediate" in str(plan.nodeName()) or creates(session, plan):
        return True
    return any(is_known(session, names) for names in set(names_in(plan)))


def read_named(
    session: SparkSession, name: object, options: Mapping[str, object] | None = None
) -> DataFrame | None:
    """Returns the rows of a table of this library, or of a view that reads one; None for other names.

    The name is as `spark.table` and the like take it: ``indextables.`path` ``, or one of the catalog.
    """
    if not isinstance(name, str):
        return None
    try:
        names = names_of(_parser(session).parseMultipartIdentifier(name))
    except ParseException:
        return None
    if is_path(session, names):
        return read_table(session, names[1], options)
    named = find_named(session, names)
    if named is not None:
        plan = read_table(session, named.path, options)._jdf.queryExecution().analyzed()  # noqa: SLF001
        return frame_of(session, aliased(plan, named.parts))
    if find_view(session, names) is None:
        return None
    return _query(session, _parser(session).parsePlan(f"TABLE {name}"), Rewriter(session))


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
    if "ExecuteImmediate" in name:
        return _immediate(session, plan)
    changed = dml.run(session, plan)
    if changed is None:
        changed = run_table_statement(session, plan)
    if changed is not None:
        return changed
    rewriter = Rewriter(session)
    rewrite = _REWRITES.get(name, _query)
    return rewrite(session, plan, rewriter)


def _immediate(session: SparkSession, plan: JavaObject) -> DataFrame | None:
    """Runs EXECUTE IMMEDIATE if its text is about a table of this library; None if it is not."""
    text = str(_values(session, [seam.immediate_text(session, plan)])[0])
    given = list(each(plan.args()))
    values = _values(session, given)
    args: Parameters = values
    if values and all(value.nodeName() == "Alias" for value in given):
        args = dict(zip((str(value.name()) for value in given), values, strict=True))
    if plan.targetVariables().length():
        inner = _parse(session, text, args)
        if inner is not None and _names_ours(session, inner):
            raise IndexTablesError(
                "EXECUTE IMMEDIATE … INTO cannot read a table of this format",
                hint="SET VAR v = (SELECT …), or EXECUTE IMMEDIATE without INTO",
            )
        return None
    return _if_ours(session, text, args)


def _if_ours(session: SparkSession, text: str, args: Parameters) -> DataFrame | None:
    nothing_of_ours: list[bool] = []

    def to_spark() -> DataFrame:
        nothing_of_ours.append(True)
        return nothing(session)

    found = run_sql(session, to_spark, text, args, {})
    return None if nothing_of_ours else found


def _values(session: SparkSession, expressions: Sequence[JavaObject]) -> list[object]:
    """Returns what Spark makes of constant expressions."""
    if not expressions:
        return []
    row = session.range(1).select([column_of(each) for each in expressions]).first()
    assert row is not None
    return list(row)


def _query(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    rewritten = rewriter.rewrite(plan)
    return frame_of(session, rewritten) if rewriter.replaced else None


def _explain(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    refuse_explained_change(session, plan.logicalPlan())
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


_CHANGES: Final = (
    "InsertIntoStatement",
    "DeleteFromTable",
    "UpdateTable",
    "MergeIntoTable",
    "Overwrite",
)


def _script(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    """Runs BEGIN … END that reads tables of this library; one that may change them is refused."""
    text = str(plan.toString())
    if any(name in text for name in _CHANGES) and _names_ours(session, plan):
        raise IndexTablesError(
            "a script (BEGIN … END) cannot change rows where it names a table of this format",
            hint="run its statements one by one with spark.sql",
        )
    return _query(session, plan, rewriter)


def _permanent_view(session: SparkSession, plan: JavaObject, rewriter: Rewriter) -> DataFrame | None:
    rewritten = rewriter.rewrite(plan.query())
    if not rewriter.replaced:
        return None
    create_view(session, plan, frame_of(session, rewritten))
    return nothing(session)


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
    "CompoundBody": _script,
}
