"""Temporary views that follow their tables: before a statement may read one, it is made of the newest version.

Spark keeps the plan of the DataFrame that a view is made of, and a DataFrame is one version of a table. So
reads of a table's newest version are marked in plans, and a view whose table has moved on is registered
again with these reads replaced. All else in its plan stays: columns, modes, zones, other tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from indextables.engines.spark.jvm.callbacks import jvm_callback, serve_callbacks
from indextables.engines.spark.jvm.gateway import each, jvm_tools
from indextables.engines.spark.place.tables_and_options import open_table
from indextables.engines.spark.scan.reader import NewestRead, version_text
from indextables.engines.spark.scan.scan_report import reads_tables
from indextables.engines.spark.statement.plan_rewrite import frame_of
from indextables.engines.spark.versions import replace_method, seam
from indextables.errors import IndexTablesError, SchemaError
from indextables.log.state.snapshot import Snapshot

_METHODS: Final[Mapping[str, bool]] = {
    "createTempView": False,
    "createOrReplaceTempView": False,
    "createGlobalTempView": True,
    "createOrReplaceGlobalTempView": True,
}
"""PySpark's methods that make a temporary view, and whether it is one of all sessions."""
_FOR_ONE_STATEMENT: Final = "_pyspark_"
"""Names that PySpark itself gives to DataFrames in `spark.sql("… {df}", df=df)`."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A temporary view's name in one session, or among those of all sessions."""

    session: str
    """The id of the session; empty for a view of all sessions."""
    name: str


_views: Final[dict[_Name, frozenset[tuple[str, str]]]] = {}
"""The views that follow tables: the path of each table, and the version read of it."""
_lock: Final = threading.Lock()


def install() -> None:
    """Makes views of DataFrames follow the tables that these read; doing it again changes nothing."""
    for name, is_global in _METHODS.items():
        replace_method(seam.frame_class, name, _registering(is_global=is_global))


def _registering(*, is_global: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def make(original: Callable[..., None]) -> Callable[..., None]:
        def register(self: DataFrame, name: str) -> None:
            original(self, name)
            _follow(self, name, is_global=is_global)

        return register

    return make


def _follow(frame: DataFrame, name: str, *, is_global: bool) -> None:
    """Remembers a view if it reads the newest version of a table."""
    if name.startswith(_FOR_ONE_STATEMENT):
        return
    key = _key(frame.sparkSession, name, is_global=is_global)
    reads = _Reads()
    if reads_tables(frame):
        reads.rewrite(frame._jdf.queryExecution().analyzed())  # noqa: SLF001
    with _lock:
        _views.pop(key, None)
        if reads.found:
            _views[key] = frozenset((read.path, read.version) for read in reads.found)


def forget(session: SparkSession, name: str) -> None:
    """Leaves a view of the session as it is from now on."""
    with _lock:
        _views.pop(_key(session, name, is_global=False), None)


def _key(session: SparkSession, name: str, *, is_global: bool) -> _Name:
    owner = "" if is_global else str(session._jsparkSession.sessionUUID())  # noqa: SLF001
    return _Name(owner, name.lower())


def refresh_views(session: SparkSession, text: str) -> None:
    """Makes the views anew that a statement may read and whose tables have moved on.

    Args:
        session: The session that runs it.
        text: The statement, or the name of a view.

    Raises:
        IndexTablesError: A table is gone, or has lost a column that the view reads.
    """
    if not _views:
        return
    own = str(session._jsparkSession.sessionUUID())  # noqa: SLF001
    with _lock:
        mine = {key: reads for key, reads in _views.items() if key.session in {own, ""}}
    if not mine or not _may_read(session, text.lower(), {key.name for key in mine}):
        return
    newest = _Newest(session)
    for key, reads in mine.items():
        try:
            if any(newest.version(path) != version for path, version in reads):
                _refresh(session, key, newest)
        except IndexTablesError:
            # what only names the view, such as DROP VIEW, works without its table
            if key.name in text.lower() and not text.lstrip().upper().startswith(("DROP", "CREATE")):
                raise


def _may_read(session: SparkSession, text: str, names: set[str]) -> bool:
    """Returns whether a text names one of these views, or another temporary view, which may be made of them."""
    if any(name in text for name in names):
        return True
    catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
    others = catalog.listLocalTempViews("*")
    return any(str(other.table()).lower() in text for other in each(others))


def _refresh(session: SparkSession, key: _Name, newest: _Newest) -> None:
    """Registers a view of the newest versions, unless it is gone or another one has its name."""
    catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
    raw = catalog.getRawTempView(key.name) if key.session else catalog.getRawGlobalTempView(key.name)
    plan = raw.get().plan() if raw.isDefined() else None
    if plan is None or not plan.isDefined():
        with _lock:
            _views.pop(key, None)
        return
    reads = _Reads(newest)
    rewritten = reads.rewrite(plan.get())
    try:
        frame = frame_of(session, rewritten)
    except AnalysisException as e:
        raise _no_longer(key.name) from e
    if key.session:
        frame.createOrReplaceTempView(key.name)
    else:
        frame.createOrReplaceGlobalTempView(key.name)


def _no_longer(name: str) -> SchemaError:
    return SchemaError(
        f"the view {name!r} reads columns that its table no longer has, or has in another type",
        hint=f"make it again: CREATE OR REPLACE TEMPORARY VIEW {name} AS …",
    )


@dataclass
class _Newest:
    """The newest version of each table, asked for once by all views of a statement."""

    session: SparkSession
    _known: dict[str, Snapshot] = field(default_factory=dict)

    def snapshot(self, path: str) -> Snapshot:
        if path not in self._known:
            self._known[path] = open_table(self.session, path).log.snapshot()
        return self._known[path]

    def version(self, path: str) -> str:
        return version_text(self.snapshot(path))

    def plan(self, read: NewestRead) -> JavaObject:
        frame = read.frame(self.session, self.snapshot(read.path))
        return frame._jdf.logicalPlan()  # noqa: SLF001


class _Reads:
    """A Scala partial function over plan nodes that collects the marked reads, and replaces them if told by what."""

    def __init__(self, newest: _Newest | None = None) -> None:
        self.found: list[NewestRead] = []
        self._newest = newest
        serve_callbacks(jvm_tools().gateway)

    def rewrite(self, plan: JavaObject) -> JavaObject:
        """Returns the plan with the reads replaced, in subqueries too; from below, so that none is replaced twice."""
        return plan.transformUpWithSubqueries(self)

    @jvm_callback
    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802
        """Returns True for a marked node; a method of the Scala trait."""
        return NewestRead.of(node) is not None

    @jvm_callback
    def apply(self, node: JavaObject) -> JavaObject:
        """Returns what stands for a node; a method of the Scala trait."""
        return self._replacement(node) or node

    @jvm_callback
    def applyOrElse(self, node: JavaObject, default: JavaObject) -> JavaObject:  # noqa: N802
        """Returns what stands for a marked node, or what Catalyst would do without it; the method that it calls."""
        return self._replacement(node) or default.apply(node)

    class Java:
        """The interfaces of the proxy, for py4j."""

        implements = ("scala.PartialFunction",)

    def _replacement(self, node: JavaObject) -> JavaObject | None:
        read = NewestRead.of(node)
        if read is None:
            return None
        self.found.append(read)
        return None if self._newest is None else _in_place_of(node, self._newest.plan(read))


def _in_place_of(old: JavaObject, new: JavaObject) -> JavaObject:
    """Returns the new read with the columns of the old one, which what stands above knows by their numbers."""
    columns, found = list(each(old.output())), list(each(new.output()))
    if _is_scan(old) and _is_scan(new) and _shapes(columns)[: len(found)] == _shapes(found):
        # columns beyond the table's are those of files, such as `_metadata`
        parts: list[Any] = [new.productElement(i) for i in range(new.productArity())]
        parts[1] = old.output()
        return new.copy(*parts)
    tools = jvm_tools()
    alias = tools.lookup("org.apache.spark.sql.catalyst.expressions.Alias")
    by_shape = dict(zip(_shapes(found), found, strict=True))
    listed = [
        alias(by_shape[shape], *_named_as(column))
        for shape, column in zip(_shapes(columns), columns, strict=True)
        if shape in by_shape  # Spark refuses a plan that needs another one
    ]
    project = tools.lookup("org.apache.spark.sql.catalyst.plans.logical.Project")
    return project(tools.seq(listed), new)


def _named_as(column: JavaObject) -> tuple[Any, ...]:
    """Returns what makes an alias be this column: name, number, qualifier, no metadata, nothing inherited."""
    tools = jvm_tools()
    return (column.name(), column.exprId(), column.qualifier(), tools.none, tools.seq([]))


def _shapes(columns: list[JavaObject]) -> list[tuple[str, str]]:
    return [(str(column.name()), str(column.dataType().json())) for column in columns]


def _is_scan(node: JavaObject) -> bool:
    return bool(node.nodeName() == "LogicalRelation")
