"""DataFusion's optimised plan, in Substrait: which conditions stand above each table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from datafusion.substrait import Plan

from indextables.core.expr.nodes import Ref
from indextables.core.predicate.nodes import Predicate
from indextables.core.types import StructType, schema_to_arrow
from indextables.engines.datafusion.functions import cast_of, function_of
from indextables.engines.exchange.protobuf import Message, message
from indextables.engines.exchange.substrait import Reader, Typed, functions_of

# numbers of fields in Substrait's messages
_READ, _FILTER, _PROJECT, _RELATION, _ROOT = 1, 2, 7, 1, 2
_WINDOW = 5


class Scan(NamedTuple):
    """One use of a table: only rows for which all conditions hold matter."""

    table: str
    conditions: list[Predicate]


def scans_of(plan: Plan, schemas: Mapping[str, StructType]) -> list[Scan] | None:
    """Returns each use of these tables in a plan; None if the plan has a form that is not known."""
    try:
        data = plan.encode()
        whole = message(data)
        found = _Plan(schemas, functions_of(whole))
        for relation in whole.get(3, []):
            tree = message(_bytes(relation))
            root = _inner(_inner(tree, _ROOT), 1) if _ROOT in tree else _inner(tree, _RELATION)
            found.visit(root)
        uses = [names[-1] for names in _names(json.loads(plan.to_json()))]
    except (ValueError, LookupError, TypeError, AssertionError, RecursionError):
        return None
    # a use that was not found may want rows that the others do not
    there = sorted(name for name in uses if name in schemas)
    return found.scans if there == sorted(scan.table for scan in found.scans) else None


def _names(tree: object) -> Iterator[list[str]]:
    todo = [tree]
    while todo:
        match todo.pop():
            case dict() as node:
                if "namedTable" in node:
                    yield node["namedTable"]["names"]
                todo.extend(node.values())
            case list() as nodes:
                todo.extend(nodes)


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number where a message belongs")
    return value


def _inner(tree: Message, number: int) -> Message:
    return message(_bytes(tree[number][0]))


class _Rows(NamedTuple):
    scan: Scan
    columns: Sequence[Typed]


@dataclass(slots=True)
class _Plan:
    schemas: Mapping[str, StructType]
    functions: Mapping[int, str]
    scans: list[Scan] = field(default_factory=list)

    def visit(self, relation: Message) -> _Rows | None:
        """Returns a relation's rows if they are those of one scan, and notes what it says of them."""
        if _READ in relation:
            return self._read(_inner(relation, _READ))
        if _FILTER in relation:
            tree = _inner(relation, _FILTER)
            rows = self.visit(_inner(tree, 2))
            if rows is not None:
                condition = self._reader(rows.columns, None).condition(_inner(tree, 3))
                rows.scan.conditions.append(condition)
            return self._emitted(rows, tree, () if rows is None else rows.columns)
        if _PROJECT in relation:
            tree = _inner(relation, _PROJECT)
            rows = self.visit(_inner(tree, 2))
            parts = [message(_bytes(each)) for each in tree.get(3, [])]
            # a window counts rows that a condition above it does not keep
            if rows is None or any(_WINDOW in part for part in parts):
                return None
            reader = self._reader(rows.columns, None)
            computed = [reader.value(part) for part in parts]
            return self._emitted(rows, tree, (*rows.columns, *computed))
        self._visit_others(relation)
        return None

    def _visit_others(self, relation: Message) -> None:
        """Visits what another relation is made of: of its fields, those that are relations themselves.

        Substrait's relations have their inputs in the fields 2 and 3. A table in a subquery would be missed, so
        the uses that were found are compared with those there are.
        """
        for value in (value for values in relation.values() for value in values):
            tree = message(_bytes(value))
            for number in (2, 3):
                for inner in tree.get(number, []):
                    if isinstance(inner, bytes) and _is_relation(inner):
                        self.visit(message(inner))

    def _read(self, tree: Message) -> _Rows | None:
        names = [_bytes(name).decode() for name in _inner(tree, 7).get(1, [])] if 7 in tree else []
        schema = self.schemas.get(names[-1]) if names else None
        if schema is None:
            return None
        scan = Scan(names[-1], [])
        self.scans.append(scan)
        columns = [Typed(Ref((f.name,)), f.type) for f in schema]
        if 3 in tree:
            reader = self._reader(columns, schema_to_arrow(schema))
            scan.conditions.append(reader.condition(_inner(tree, 3)))
        if 4 in tree:
            select = _inner(_inner(tree, 4), 1) if 1 in _inner(tree, 4) else {}
            places = [message(_bytes(each)).get(1, [0])[0] for each in select.get(1, [])]
            columns = [columns[int(place)] for place in places]
        return _Rows(scan, columns)

    def _reader(self, columns: Sequence[Typed], fields: object) -> Reader:
        return Reader(columns, self.functions, fields, function_of, cast_of)

    @staticmethod
    def _emitted(rows: _Rows | None, tree: Message, columns: Sequence[Typed]) -> _Rows | None:
        if rows is None:
            return None
        common = _inner(tree, 1) if 1 in tree else {}
        if 2 not in common:
            return _Rows(rows.scan, columns)
        places = _packed(_inner(common, 2).get(1, []))
        return _Rows(rows.scan, [columns[place] for place in places])


def _packed(values: Sequence[int | bytes]) -> list[int]:
    """Returns the numbers of a repeated field, which may be packed into bytes."""
    found: list[int] = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        number = shift = 0
        for byte in value:
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                found.append(number)
                number = shift = 0
    return found


def _is_relation(data: bytes) -> bool:
    """Returns whether these bytes may be a relation: one field, which is a message with a common part."""
    try:
        tree = message(data)
        return len(tree) == 1 and all(isinstance(v, bytes) for values in tree.values() for v in values)
    except ValueError:
        return False
