"""What DuckDB's optimiser makes of a query: which conditions stand directly above each table.

The query is planned over stand-ins, relations without rows that DuckDB knows nothing of but the types of their
columns. DuckDB serialises the plan, typed and with columns by their places: EXPLAIN prints names, and a name
may be another column's that the query renamed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import duckdb
from duckdb import DuckDBPyConnection

from indextables.core.expr.nodes import Expression, Literal, Ref, Unknown
from indextables.core.expr.zones import CYCLE, UTC, Zone, zone_from_changes
from indextables.core.predicate.nodes import Call, Constant, IsIn, Predicate, over
from indextables.core.types import StructType
from indextables.engines.duckdb.functions import Reader, literal_of
from indextables.engines.duckdb.views import quoted, type_of

_ROWS: Final = 521_932_890_112_000
"""The number of rows of the first stand-in, by which a plan tells them; there is no other relation of that size."""
_SERIALIZE: Final = (
    "SELECT json_serialize_plan(?, optimize := true, skip_null := true, skip_empty := true, "
    "skip_default := true), current_setting('TimeZone')"
)

Node: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)
class Scan:
    """One use of a table in a plan: only rows for which all conditions hold matter."""

    table: int
    conditions: list[Predicate] = field(default_factory=list)
    is_whole: bool = False
    """The plan is this scan, these conditions and columns computed from its rows, and nothing else."""


def stand_in(number: int, schema: StructType) -> str:
    """Returns a SELECT of a table's columns, of which the optimiser can find out nothing, and never runs it."""
    # a random number can be neither folded nor moved, and its text may be any value
    columns = ", ".join(
        f'CAST(CAST(random() AS VARCHAR) AS {type_of(f.type)}) AS "{place}"'
        for place, f in enumerate(schema)
    )
    names = ", ".join(f'"{place}" AS {quoted(f.name)}' for place, f in enumerate(schema))
    return f"SELECT {names} FROM (SELECT {columns} FROM range({_ROWS + number}))"  # noqa: S608 - quoted


def scans_of(
    connection: DuckDBPyConnection, query: str, schemas: Sequence[StructType]
) -> list[Scan] | None:
    """Returns each use of the stand-ins in the plan of a query that names them; the query does not run.

    None if DuckDB cannot serialise the plan, or does it in an unknown form. Its own errors about the query are
    raised where running the query would raise them, too.
    """
    try:
        # sql() and not execute(), whose result belongs to the connection: another thread could fetch it
        ((text, zone),) = connection.sql(_SERIALIZE, params=[query]).fetchall()
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        if "json_serialize_plan" in str(error).partition("\n")[0]:
            return None  # an older DuckDB
        raise
    try:
        plan = json.loads(text.replace('"value":NAN', '"value":NaN'))
        if plan["error"]:
            _check_is_serialisable(plan)
            return None
        found = _Plan(schemas, lambda: zone_of_duckdb(connection, zone))
        for root in plan["plans"]:
            outer = found.visit(root)
            if outer is not None:
                outer.scan.is_whole = True
            elif root["type"] == "LOGICAL_EMPTY_RESULT":
                found.scans.append(Scan(-1, [Constant(False)], is_whole=True))
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    # a use that was not found may want rows that the others do not
    used = sum(text.count(f'"value":{_ROWS + table}') for table in range(len(schemas)))
    return found.scans if used == sum(scan.table >= 0 for scan in found.scans) else None


def _check_is_serialisable(failed: Node) -> None:
    """Raises DuckDB's error about the query; there is none if DuckDB only cannot serialise the plan."""
    if failed["error_type"] != "not implemented":
        raise duckdb.Error(str(failed["error_message"]))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one scan, filtered and projected: what its columns are now; None right above the stand-in."""

    scan: Scan
    columns: Sequence[Expression] | None


@dataclass(slots=True)
class _Plan:
    schemas: Sequence[StructType]
    zone_of: Callable[[], Zone | None]
    scans: list[Scan] = field(default_factory=list)

    def visit(self, node: Node) -> _Rows | None:
        """Returns an operator's rows if they are those of one scan, and notes what it says of them."""
        children = [self.visit(child) for child in node.get("children", ())]
        rows = children[0] if children else None
        match node["type"]:
            case "LOGICAL_GET":
                return self._stand_in(node)
            case "LOGICAL_FILTER" if rows is not None:
                return self._filtered(rows, node)
            case "LOGICAL_PROJECTION" if rows is not None:
                return _Rows(rows.scan, self._projected(rows, node["expressions"]))
            case "LOGICAL_COMPARISON_JOIN" if rows is not None and node["join_type"] == "MARK":
                return self._marked(rows, node)
            case _:
                return None

    def _stand_in(self, node: Node) -> _Rows | None:
        if node["qname"]["path"][-1] != "range":
            return None
        table = node["parameters"][0]["value"] - _ROWS
        if not 0 <= table < len(self.schemas) or node["table_filters"]:
            return None
        self.scans.append(Scan(table))
        return _Rows(self.scans[-1], None)

    def _reader(self, rows: _Rows) -> Reader:
        return Reader(() if rows.columns is None else rows.columns, self.zone_of)

    def _filtered(self, rows: _Rows, node: Node) -> _Rows | None:
        reader = self._reader(rows)
        rows.scan.conditions.extend(reader.condition(part) for part in node["expressions"])
        if rows.columns is None:
            return None
        kept = node.get("projection_map")
        return _Rows(rows.scan, rows.columns if kept is None else [rows.columns[i] for i in kept])

    def _projected(self, rows: _Rows, parts: Sequence[Node]) -> list[Expression]:
        if rows.columns is None:
            fields = self.schemas[rows.scan.table].fields
            return [Ref((fields[int(part["alias"])].name,)) for part in parts]
        reader = self._reader(rows)
        return [reader.value(part) for part in parts]

    def _marked(self, rows: _Rows, node: Node) -> _Rows | None:
        """Returns the rows with one more column: whether a value is in a list of constants."""
        mark: Expression = Unknown("IN (…)", (), "DuckDB looks it up elsewhere")
        listed, conditions = node["children"][1], node["conditions"]
        is_list = listed["type"] == "LOGICAL_CHUNK_GET" and len(conditions) == 1
        if any(name.endswith("projection_map") for name in node) or rows.columns is None:
            return None
        if is_list and conditions[0]["comparison"] == "COMPARE_EQUAL":
            (column,) = listed["collection"]["values"]
            values = [literal_of(value) for value in column]
            value = self._reader(rows).value(conditions[0]["left"])
            left, right = (conditions[0][side]["return_type"] for side in ("left", "right"))
            if None not in values and isinstance(value, Ref | Call) and left == right:
                plain = tuple(map(_plain, values))  # type: ignore[arg-type]
                mark = over(value, lambda ref: IsIn(ref, plain))
        return _Rows(rows.scan, [*rows.columns, mark])


def _plain(literal: Literal) -> Literal:
    return Literal(literal.value) if type(literal.value) in {int, str} else literal


# The rules of time zones as DuckDB has them: its tables are its own, and differ from Python's for old times.


_UTC: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Universal", "Zulu"})
_OFFSETS: Final = (
    "SELECT list((epoch_us(timezone($1, make_timestamptz(moment * 1000000))) - moment * 1000000) // 1000000 ORDER BY place) "
    "FROM (SELECT unnest($2::BIGINT[]) AS moment, unnest(range(len($2))) AS place)"
)
_STEP: Final = 10 * 86_400
_FIRST: Final = -3_786_825_600
"""The year 1850, before which local time was the sun's everywhere."""
_LAST: Final = 2_145_916_800
"""The year 2038: from here on rules repeat."""
_known: Final[dict[str, Zone | None]] = {}


def zone_of_duckdb(connection: DuckDBPyConnection, name: str) -> Zone | None:
    """Returns a zone by DuckDB's rules; None if it cannot be asked. Each zone is asked for once."""
    if name in _UTC:
        return UTC
    if name not in _known:
        try:
            _known[name] = _asked(connection, name)
        except duckdb.Error:
            _known[name] = None
    return _known[name]


def _asked(connection: DuckDBPyConnection, name: str) -> Zone:
    seconds = list(range(_FIRST, _LAST + CYCLE + _STEP, _STEP))
    offsets = _offsets(connection, name, seconds)
    turns = [i for i in range(1, len(seconds)) if offsets[i] != offsets[i - 1]]
    low, high = [seconds[i - 1] for i in turns], [seconds[i] for i in turns]
    before, after = [offsets[i - 1] for i in turns], [offsets[i] for i in turns]
    while any(b - a > 1 for a, b in zip(low, high, strict=True)):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        for i, offset in enumerate(_offsets(connection, name, middle)):
            if offset == before[i]:
                low[i] = middle[i]
            else:
                high[i], after[i] = middle[i], offset
    changes = list(zip(high, after, strict=True))
    early = [change for change in changes if change[0] < _LAST]
    cycle = [change for change in changes if _LAST <= change[0] < _LAST + CYCLE]
    return zone_from_changes(name, "duckdb", offsets[0], early, cycle)


def _offsets(connection: DuckDBPyConnection, name: str, seconds: Sequence[int]) -> list[int]:
    if not seconds:
        return []
    ((found,),) = connection.sql(_OFFSETS, params={"1": name, "2": list(seconds)}).fetchall()
    return list(found)
