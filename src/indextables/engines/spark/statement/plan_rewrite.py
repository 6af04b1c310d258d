"""Tables of ours inside a parsed query: each ``indextables.`path` `` becomes a native scan.

The text is parsed by the session's own parser, so that joins, subqueries, CTEs, pipes, hints and
parameters mean what they mean in Spark; only the relations are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from indextables.engines.spark.jvm.callbacks import jvm_callback, serve_callbacks
from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.place.tables import SHORT_NAME, open_table
from indextables.engines.spark.scan.reader import read_table
from indextables.errors import ConfigError
from indextables.log.state.snapshot import Snapshot

_WITH: Final = "UnresolvedWith"
_RELATION: Final = "UnresolvedRelation"
_TIME_TRAVEL: Final = "RelationTimeTravel"


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """Returns a logical plan as a DataFrame; a command runs now, as `spark.sql` runs it."""
    made = jvm_tools().dataset.ofRows(session._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(made, session)


def relation_path(session: SparkSession, plan: Any) -> str | None:
    """Returns the path that an unresolved relation (under an alias or not) names.

    None if it is not ours.
    """
    if plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    if plan.nodeName() != _RELATION:
        return None
    return name_path(session, plan.multipartIdentifier())


def name_path(session: SparkSession, parts: Any) -> str | None:
    """Returns the path in a name of two parts, unless the catalog has such a table."""
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
    """A Scala partial function over plan nodes; `replaced` counts the relations it turned into scans.

    A table in `pinned` (by its root) is read at that version, and `read_pinned` then says so.
    """

    def __init__(self, session: SparkSession, pinned: Mapping[str, Snapshot] | None = None) -> None:
        self._session = session
        self._pinned = pinned or {}
        self.replaced = 0
        self.read_pinned = False
        serve_callbacks(jvm_tools().gateway)

    def rewrite(self, plan: Any) -> Any:
        """Returns the plan with a native scan for every table of ours, in subqueries and CTEs too."""
        return plan.transformWithSubqueries(self)

    @jvm_callback
    def isDefinedAt(self, node: Any) -> bool:  # noqa: N802
        """Returns part of the Scala trait."""
        return node.nodeName() in {_WITH, _RELATION, _TIME_TRAVEL}

    @jvm_callback
    def apply(self, node: Any) -> Any:
        """Returns part of the Scala trait."""
        return self._replacement(node) or node

    @jvm_callback
    def applyOrElse(self, node: Any, default: Any) -> Any:  # noqa: N802
        """Returns the one Catalyst calls: the replacement, or what it would do without us."""
        return self._replacement(node) or default.apply(node)

    class Java:
        """What py4j reads."""

        implements = ("scala.PartialFunction",)

    def _replacement(self, node: Any) -> Any | None:
        match node.nodeName():
            case "UnresolvedRelation":
                return self._scan(node, {})
            case "RelationTimeTravel":
                return self._scan(node.relation(), self._moment(node))
            case "UnresolvedWith":
                return self._with(node)
            case _:
                return None

    def _scan(self, relation: Any, moment: Mapping[str, object]) -> Any | None:
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

    def _moment(self, node: Any) -> dict[str, Any]:
        """VERSION AS OF and TIMESTAMP AS OF as the options of a read; Spark computes the time."""
        if node.version().isDefined():
            return {"versionAsOf": str(node.version().get())}
        text = node.timestamp().get().sql()
        row = self._session.sql(f"SELECT unix_micros(CAST({text} AS TIMESTAMP))").first()
        if row is None or row[0] is None:
            # a text that is no time is NULL where ANSI is off, and must not mean the newest version
            raise ConfigError(
                f"TIMESTAMP AS OF {text} is no time", hint="it is a date or a time such as '2024-01-31'"
            )
        return {"timestampAsOf": row[0]}

    def _with(self, node: Any) -> Any:
        """Returns Catalyst's own transform does not descend into the bodies of CTEs."""
        tools = jvm_tools()
        rebuilt = []
        for i in range(node.cteRelations().length()):
            part = node.cteRelations().apply(i)
            values = [part.productElement(k) for k in range(part.productArity())]
            values[1] = self.rewrite(values[1])
            rebuilt.append(tools.lookup(f"scala.Tuple{len(values)}")(*values))
        return node.copy(self.rewrite(node.child()), tools.seq(rebuilt), node.allowRecursion())
