"""Replaces tables inside a parsed query: each ``indextables.`path` `` becomes a native scan.

The session's own parser reads the text, so joins, subqueries, CTEs, pipes, hints and parameters mean what
they mean in Spark. Only the relations are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from indextables.engines.spark.jvm.callbacks import jvm_callback, serve_callbacks
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.place.tables_and_options import SHORT_NAME, open_table
from indextables.engines.spark.scan.reader import read_table
from indextables.engines.spark.versions import seam
from indextables.errors import ConfigError
from indextables.log.state.snapshot import Snapshot

_WITH: Final = "UnresolvedWith"
_RELATION: Final = "UnresolvedRelation"
_TIME_TRAVEL: Final = "RelationTimeTravel"


def frame_of(session: SparkSession, plan: JavaObject) -> DataFrame:
    """Returns a logical plan as a DataFrame; a command runs now, as `spark.sql` would run it."""
    made = jvm_tools().dataset.ofRows(session._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(made, session)


def relation_path(session: SparkSession, plan: JavaObject) -> str | None:
    """Returns the path that an unresolved relation names, under an alias or not; None for other relations."""
    if plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    if plan.nodeName() != _RELATION:
        return None
    return name_path(session, plan.multipartIdentifier())


def name_path(session: SparkSession, parts: JavaObject) -> str | None:
    """Returns the path in a name with two pieces, unless the catalog has such a table."""
    if parts.length() != 2 or parts.apply(0).lower() != SHORT_NAME:
        return None
    path = str(parts.apply(1))
    catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
    if catalog.databaseExists(SHORT_NAME):
        identifier = jvm_tools().lookup("org.apache.spark.sql.catalyst.TableIdentifier")
        if catalog.tableExists(identifier(path, jvm_tools().some(parts.apply(0)))):
            return None
    return path


class Rewriter:
    """A Scala partial function over plan nodes; `replaced` counts the relations it has turned into scans.

    A table in `pinned`, by its root, is read at that version, and `read_pinned` then says so.
    """

    def __init__(self, session: SparkSession, pinned: Mapping[str, Snapshot] | None = None) -> None:
        self._session = session
        self._pinned = pinned or {}
        self.replaced = 0
        self.read_pinned = False
        serve_callbacks(jvm_tools().gateway)

    def rewrite(self, plan: JavaObject) -> JavaObject:
        """Returns the plan with a native scan for every table, in subqueries and CTEs too."""
        return plan.transformWithSubqueries(self)

    @jvm_callback
    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802
        """Returns True for nodes that may name a table; a method of the Scala trait."""
        return node.nodeName() in {_WITH, _RELATION, _TIME_TRAVEL}

    @jvm_callback
    def apply(self, node: JavaObject) -> JavaObject:
        """Returns the replacement of a node, or the node itself; a method of the Scala trait."""
        return self._replacement(node) or node

    @jvm_callback
    def applyOrElse(self, node: JavaObject, default: JavaObject) -> JavaObject:  # noqa: N802
        """Returns the replacement, or what Catalyst would do without it; the method that Catalyst calls."""
        return self._replacement(node) or default.apply(node)

    class Java:
        """The interfaces of the proxy, for py4j."""

        implements = ("scala.PartialFunction",)

    def _replacement(self, node: JavaObject) -> JavaObject | None:
        match node.nodeName():
            case "UnresolvedRelation":
                return self._scan(node, {})
            case "RelationTimeTravel":
                return self._scan(node.relation(), self._moment(node))
            case "UnresolvedWith":
                return self._with(node)
            case _:
                return None

    def _scan(self, relation: JavaObject, moment: Mapping[str, object]) -> JavaObject | None:
        path = relation_path(self._session, relation)
        if path is None:
            return None
        self.replaced += 1
        given = relation.options().asCaseSensitiveMap()
        options = {str(key): str(given.get(key)) for key in given.keySet().toArray()}
        pinned = None
        if self._pinned and not moment:
            pinned = self._pinned.get(open_table(self._session, path).place.root)
            self.read_pinned |= pinned is not None
        frame = read_table(self._session, path, {**options, **moment}, pinned)
        return frame._jdf.queryExecution().analyzed()  # noqa: SLF001

    def _moment(self, node: JavaObject) -> dict[str, object]:
        """Returns VERSION AS OF and TIMESTAMP AS OF as options of a read; Spark computes the time."""
        if node.version().isDefined():
            return {"versionAsOf": str(node.version().get())}
        text = node.timestamp().get().sql()
        row = self._session.sql(f"SELECT unix_micros(CAST({text} AS TIMESTAMP))").first()
        if row is None or row[0] is None:
            # without ANSI rules, a text that is no time is NULL, which must not mean the newest version
            raise ConfigError(
                f"TIMESTAMP AS OF {text} is not a time",
                hint="give a date or a time such as '2024-01-31'",
            )
        return {"timestampAsOf": row[0]}

    def _with(self, node: JavaObject) -> JavaObject:
        """Returns a WITH whose CTEs are rewritten too, because Catalyst's own transform does not descend into them."""
        tools = jvm_tools()
        rebuilt = []
        for i in range(node.cteRelations().length()):
            part = node.cteRelations().apply(i)
            values = [part.productElement(k) for k in range(part.productArity())]
            values[1] = self.rewrite(values[1])
            rebuilt.append(tools.lookup(f"scala.Tuple{len(values)}")(*values))
        return seam.with_ctes(node, self.rewrite(node.child()), tools.seq(rebuilt))
