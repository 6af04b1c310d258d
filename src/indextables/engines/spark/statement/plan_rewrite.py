"""Replaces tables inside a parsed query: each ``indextables.`path` `` and each name becomes a native scan.

The session's own parser reads the text, so joins, subqueries, CTEs, pipes, hints and parameters mean what
they mean in Spark. Only the relations are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from indextables.engines.spark.jvm.callbacks import jvm_callback, serve_callbacks
from indextables.engines.spark.jvm.gateway import column_of, each, jvm_tools
from indextables.engines.spark.place.tables_and_options import open_table
from indextables.engines.spark.scan.reader import read_table
from indextables.engines.spark.statement.names import find_named, is_path, name_path, names_of
from indextables.engines.spark.statement.stored_views import find_view
from indextables.engines.spark.versions import seam
from indextables.errors import ConfigError
from indextables.log.state.snapshot import Snapshot

_IDENTIFIER: Final = "PlanWithUnresolvedIdentifier"
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


class Rewriter:
    """A Scala partial function over plan nodes; `replaced` counts the relations it has turned into scans.

    A table in `pinned`, by its root, is read at that version, and `read_pinned` then says so.
    """

    def __init__(self, session: SparkSession, pinned: Mapping[str, Snapshot] | None = None) -> None:
        self._session = session
        self._pinned = pinned or {}
        self._ctes: tuple[str, ...] = ()
        """The names of the WITH clauses around the part that is being rewritten."""
        self.replaced = 0
        self.read_pinned = False
        serve_callbacks(jvm_tools().gateway)

    def rewrite(self, plan: JavaObject) -> JavaObject:
        """Returns the plan with a native scan for every table, in subqueries and CTEs too."""
        return plan.transformWithSubqueries(self)

    @jvm_callback
    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802
        """Returns True for nodes that may name a table; a method of the Scala trait."""
        return node.nodeName() in {_WITH, _RELATION, _TIME_TRAVEL, _IDENTIFIER}

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
            case "PlanWithUnresolvedIdentifier":
                found = identified(self._session, node)
                return self._replacement(found) or found
            case _:
                return None

    def _scan(self, relation: JavaObject, moment: Mapping[str, object]) -> JavaObject | None:
        names = names_of(relation.multipartIdentifier())
        if self._is_cte(relation, names):
            return None
        named = None if is_path(self._session, names) else find_named(self._session, names)
        if named is None and not is_path(self._session, names):
            return self._view(names) if not moment else None
        path = names[1] if named is None else named.path
        self.replaced += 1
        given = relation.options().asCaseSensitiveMap()
        options = {str(key): str(given.get(key)) for key in given.keySet().toArray()}
        pinned = None
        if self._pinned and not moment:
            pinned = self._pinned.get(open_table(self._session, path).place.root)
            self.read_pinned |= pinned is not None
        frame = read_table(self._session, path, {**options, **moment}, pinned)
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        return plan if named is None else aliased(plan, named.parts)

    def _view(self, names: tuple[str, ...]) -> JavaObject | None:
        """Returns the rows of a view of the catalog that reads tables of this library."""
        view = find_view(self._session, names)
        if view is None:
            return None
        rewriter = Rewriter(view.session)
        body = rewriter.rewrite(view.body)
        if not rewriter.replaced:
            return None
        self.replaced += rewriter.replaced
        rows = view.columns_of(frame_of(view.session, body))
        return aliased(rows._jdf.queryExecution().analyzed(), view.parts)  # noqa: SLF001

    def _is_cte(self, relation: JavaObject, names: tuple[str, ...]) -> bool:
        """Returns whether a relation is a query of a WITH; marked, because Catalyst comes here again outside of it."""
        tag = jvm_tools().cte_tag
        if len(names) == 1 and names[0].lower() in self._ctes:
            relation.setTagValue(tag, "")
        return bool(relation.getTagValue(tag).isDefined())

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
        tools, outside = jvm_tools(), self._ctes
        rebuilt = []
        for part in each(node.cteRelations()):
            values = [part.productElement(k) for k in range(part.productArity())]
            own = (str(values[0]).lower(),)
            before, self._ctes = self._ctes, (*self._ctes, *(own if seam.recurses(node) else ()))
            values[1] = self.rewrite(values[1])
            self._ctes = (*before, *own)
            rebuilt.append(tools.lookup(f"scala.Tuple{len(values)}")(*values))
        child = self.rewrite(node.child())
        self._ctes = outside
        return seam.with_ctes(node, child, tools.seq(rebuilt))


def with_identifiers(session: SparkSession, plan: JavaObject) -> JavaObject:
    """Returns the statement with the name that each IDENTIFIER(…) stands for."""
    return plan.transformWithSubqueries(_Identifiers(session))


class _Identifiers:
    """A Scala partial function over plan nodes that puts names in place of IDENTIFIER(…)."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        serve_callbacks(jvm_tools().gateway)

    @jvm_callback
    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802
        """Returns True for IDENTIFIER(…); a method of the Scala trait."""
        return bool(node.nodeName() == _IDENTIFIER)

    @jvm_callback
    def apply(self, node: JavaObject) -> JavaObject:
        """Returns what stands for a node; a method of the Scala trait."""
        return identified(self._session, node)

    @jvm_callback
    def applyOrElse(self, node: JavaObject, default: JavaObject) -> JavaObject:  # noqa: N802
        """Returns what stands for a node, or what Catalyst would do without it; the method that it calls."""
        is_one = node.nodeName() == _IDENTIFIER
        return identified(self._session, node) if is_one else default.apply(node)

    class Java:
        """The interfaces of the proxy, for py4j."""

        implements = ("scala.PartialFunction",)


def identified(session: SparkSession, node: JavaObject) -> JavaObject:
    """Returns the plan of IDENTIFIER(…) with the name that Spark makes of the expression."""
    row = session.range(1).select(column_of(node.identifierExpr())).first()
    if row is None or row[0] is None:
        raise ConfigError(
            f"IDENTIFIER({node.identifierExpr().sql()}) is NULL", hint="give it the name of a table"
        )
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    return node.planBuilder().apply(parser.parseMultipartIdentifier(str(row[0])), node.children())


def aliased(plan: JavaObject, parts: Sequence[str]) -> JavaObject:
    """Returns the rows under a name by which their columns may be qualified."""
    tools = jvm_tools()
    *qualifier, name = parts
    identifier = tools.lookup("org.apache.spark.sql.catalyst.AliasIdentifier")
    alias = tools.lookup("org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias")
    return alias(identifier(name, tools.seq(qualifier)), plan)
