"""Catalyst's filters as conditions; what cannot be read surely becomes Opaque.

`Expression.toJSON()` lists the nodes of a tree in pre-order, which one py4j call fetches. The text is
lossy, so the values it loses are taken from the JVM objects (`catalyst_values`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError

from indextables.core.predicate.like import like
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    Call,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
    over,
)
from indextables.core.predicate.regex import matches
from indextables.core.types import (
    DecimalType,
    Field,
    PrimitiveType,
    StructType,
    can_widen,
    is_float,
    is_orderable,
    path_text,
    schema_from_json,
)
from indextables.engines.spark.scan.functions import cast_of, function_of, interval_of
from indextables.engines.spark.scan.literals import (
    literal_of,
    tuple_of,
    tuples_of_set,
    values_of_set,
)
from indextables.engines.spark.scan.parts import (
    Column,
    Part,
    Tuple,
    columns_in,
    condition_of,
    is_truth,
    side_of,
    text_of,
    type_of,
    value_of,
)
from indextables.errors import SchemaError

_BOOLEAN: Final = PrimitiveType("boolean")
_STRING: Final = PrimitiveType("string")
_COMPARISONS: Final[Mapping[str, CompareOp]] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_PREFIX: Final = "org.apache.spark.sql.catalyst.expressions."
_TEXT_LIMIT: Final = 200


Node: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)
class _Frame:
    """A node whose children are still being read."""

    node: Node
    index: int
    kind: str
    missing: int
    parts: list[Part] = field(default_factory=list)


def to_predicate(expression: Any) -> Predicate:
    """Returns the condition of a Catalyst expression.

    Its And, Or and Not are kept around opaque parts.
    """
    try:
        nodes = json.loads(expression.toJSON())
    except (Py4JError, ValueError) as e:
        return Opaque(str(expression.toString())[:_TEXT_LIMIT], why=f"Spark cannot print it: {e}")
    return condition_of(_read(nodes, expression))


def has_subquery(nodes: Sequence[Node]) -> bool:
    """Returns True if a node holds a whole plan: a subquery, or a filter that waits for one."""
    kinds = (str(node["class"]).rpartition(".")[2] for node in nodes)
    return any(
        "Subquery" in kind or kind in {"ListQuery", "Exists", "DynamicPruningExpression"}
        for kind in kinds
    )


def _read(nodes: Sequence[Node], expression: Any) -> Part:
    """Returns one pass over the pre-order list with a stack of open nodes: no tree is too deep."""
    if has_subquery(nodes):
        # Catalyst counts the nodes of a subquery's plan too; the JSON does not.
        expression = None
    stack: list[_Frame] = []
    for index, node in enumerate(nodes):
        kind = str(node["class"]).removeprefix(_PREFIX)
        if stack and kind in {"And", "Or"} and stack[-1].kind == kind:
            # A chain of ten thousand ORs is one OR of ten thousand: its links add to the open node.
            stack[-1].missing += node["num-children"] - 1
            continue
        stack.append(_Frame(node, index, kind, node["num-children"]))
        while stack[-1].missing == 0:
            frame = stack.pop()
            part = _combine(frame, expression)
            if not stack:
                return part
            stack[-1].parts.append(part)
            stack[-1].missing -= 1
    return Opaque("an expression that ends too early")


def _combine(frame: _Frame, expression: Any) -> Part:
    """Returns the meaning of a node whose children are read; Opaque where there is none for us."""
    try:
        part = _READERS.get(frame.kind, _function)(frame, expression)
        if part is None and frame.kind in _CHOICES:
            part = _function(frame, expression)
    except (Py4JError, LookupError, ValueError, TypeError, SchemaError):
        part = None
    return _opaque(frame) if part is None else part


# --- functions

_CHOICES: Final = frozenset({"If", "CaseWhen", "Coalesce"})


def _function(frame: _Frame, expression: Any) -> Part | None:
    """Returns a function of the table; None where this is none, or stands on what is not understood."""
    parts = [value_of(part) for part in frame.parts]
    if any(part is None or isinstance(part, Unknown) for part in parts):
        return None
    types = [type_of(part) for part in frame.parts]
    jvm = lambda: _jvm_node(frame, expression)  # noqa: E731
    return function_of(frame.kind, frame.node, parts, types, jvm)  # type: ignore[arg-type]


def _opaque(frame: _Frame) -> Opaque:
    inner = ", ".join(text_of(part) for part in frame.parts)
    text = f"{frame.kind.lower()}({inner})"[:_TEXT_LIMIT]
    columns = columns_in(frame.parts)
    inner_why = next((part.why for part in frame.parts if isinstance(part, Opaque) and part.why), None)
    if inner_why is not None:
        return Opaque(text, columns, inner_why)
    why = f"statistics cannot answer {frame.kind.rpartition('.')[2].lower()}"
    if columns:
        names = " and ".join(map(path_text, columns))
        why += f"; a condition on {names} beside it, or a column that holds its result, skips files"
    return Opaque(text, columns, why)


# --- columns and values


@lru_cache(maxsize=4096)
def _field_from_json(text: str) -> Field:
    return schema_from_json(f'{{"type":"struct","fields":[{text}]}}').fields[0]


# Fields of `_metadata`. A filter on one arrives under its bare name, and a table may have such a column.
_FILE_METADATA: Final = frozenset(
    {
        *("file_path", "file_name", "file_size", "file_block_start", "file_block_length"),
        *("file_modification_time", "row_index", "_metadata", "_tmp_metadata_row_index"),
    }
)


def _attribute(frame: _Frame, expression: Any) -> Part | None:
    node = frame.node
    # Every column of such a relation is nullable, and JSON does not show an attribute's metadata.
    is_suspect = not node["nullable"] or node["name"].lower() in _FILE_METADATA
    if is_suspect and "metadata_col" in _jvm_node(frame, expression).metadata().json():
        return None
    field_json = {"name": node["name"], "type": node["dataType"]}
    found = _field_from_json(json.dumps(field_json))
    return Column(Ref((found.name,)), found)


def _struct_field(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [Column(Ref(path), Field(type=StructType(fields)), cast=None)]:
            # The ordinal counts the fields of this (pruned) struct, not those of the table's.
            found = fields[frame.node["ordinal"]]
            return Column(Ref((*path, found.name)), found)
        case _:
            return None


# A long becomes the nearest double: order is kept, but several longs are equal to one double.
_LONG_AS_DOUBLE: Final = (PrimitiveType("long"), PrimitiveType("double"))


def _cast(frame: _Frame, expression: Any) -> Part | None:
    """Returns a column under a cast that keeps its order, or the function `cast` of any other value."""
    simple = _simple_cast(frame)
    if simple is not None:
        return simple
    target = _field_from_json(json.dumps({"name": "cast", "type": frame.node["dataType"]}))
    value = side_of(frame.parts[0])
    if value is None or target.metadata:
        return None
    jvm = lambda: _jvm_node(frame, expression)  # noqa: E731
    return cast_of(value, type_of(frame.parts[0]), target.type, frame.node, jvm)  # type: ignore[return-value]


def _simple_cast(frame: _Frame) -> Column | None:
    """Returns a column under a cast that keeps its order; the cast stays known.

    What is compared with it decides: constants are of the type cast to, and two columns that are rounded
    are not equal where their values are.
    """
    match frame.parts:
        # A type with metadata is text under a collation, or CHAR: equal there is not equal bytes.
        case [Column(ref, Field(metadata=meta) as source, None)] if not meta:
            target = _field_from_json(json.dumps({"name": "cast", "type": frame.node["dataType"]}))
        case _:
            return None
    is_simple = isinstance(source.type, PrimitiveType | DecimalType) and not target.metadata
    keeps_order = can_widen(source.type, target.type) or (source.type, target.type) == _LONG_AS_DOUBLE
    return Column(ref, source, target.type) if is_simple and keeps_order else None


def _literal(frame: _Frame, expression: Any) -> Part | None:
    if (interval := interval_of(frame.node)) is not None:
        return interval
    if isinstance(frame.node["dataType"], dict):
        literals = tuple_of(_jvm_node(frame, expression))
        return None if literals is None else Tuple(literals)
    return literal_of(frame.node, lambda: _jvm_node(frame, expression))


def _struct(frame: _Frame, _: Any) -> Part | None:
    """Returns the values of a struct that the query makes; its names are every other part."""
    return Tuple(tuple(frame.parts[1::2]))


def _jvm_node(frame: _Frame, expression: Any) -> Any:
    """Returns the object behind a node: Catalyst numbers its nodes in the order of the JSON."""
    if expression is None:
        raise LookupError(frame.kind)
    found = expression.apply(frame.index)
    if found.getClass().getName() != frame.node["class"]:
        raise LookupError(frame.kind)
    return found


# --- comparisons


def _is_comparable(column: Column) -> bool:
    return is_orderable(column.field.type, column.field.metadata)


def _is_exact(column: Column) -> bool:
    """Returns whether the value that is compared is the stored one, for columns that are compared with others."""
    return _is_comparable(column) and (column.field.type, column.cast) != _LONG_AS_DOUBLE


def _is_among(column: Column, constant: Literal) -> bool:
    """Returns whether the constant is of the very type that the column is compared in."""
    return constant.type == column.type and _is_comparable(column)


def _compare(frame: _Frame, _: Any) -> Part | None:
    op = _COMPARISONS[frame.kind]
    match frame.parts:
        case [Tuple(), Tuple()] if op in {"=", "<=>"}:
            return _equal_tuples(*frame.parts)
        case [Column() as left, Column() as right] if _is_exact(left) and _is_exact(right):
            return Compare(op, left.ref, right.ref) if left.type == right.type else None
        case [Column() | Call() as left, Column() | Call() as right]:
            return _compare_values(op, left, right)
        case [Call() as left, Literal() as right] | [Literal() as right, Call() as left]:
            return _compare_values(op, *frame.parts)
        case [Column() as left, Literal() as right] if _is_among(left, right):
            return Compare(op, left.ref, right)
        case [Literal() as left, Column() as right] if _is_among(right, left):
            return Compare(op, left, right.ref)
        case [Column() | Literal() | Opaque(), _] | [_, Column() | Opaque()]:
            return None
        case [condition, Literal(True)] if op == "<=>":  # what is left of CASE WHEN p THEN true …
            return IsTrue(condition_of(condition))
        case [condition, Literal(False)] if op == "<=>":
            return IsTrue(Not(condition_of(condition)))
        case _:
            return None


def _compare_values(op: CompareOp, left: Part, right: Part) -> Predicate | None:
    one, two = side_of(left), side_of(right)
    return None if one is None or two is None else Compare(op, one, two)


def _equal_tuples(one: Part, two: Part) -> Predicate | None:
    """Returns whether tuples are the same: a NULL in one is equal to a NULL in the other."""
    if not (isinstance(one, Tuple) and isinstance(two, Tuple)) or len(one.parts) != len(two.parts):
        return None
    pairs = zip(one.parts, two.parts, strict=True)
    same = [_equal(a, b, "EqualNullSafe") for a, b in pairs]
    return None if any(part is None for part in same) else And(tuple(same))  # type: ignore[arg-type]


def _equal(one: Part, two: Part, kind: str = "EqualTo") -> Predicate | None:
    """Returns whether a value equals one of a list."""
    frame = _Frame({}, 0, kind, 0, [one, two])
    found = _compare(frame, None)
    return None if found is None else condition_of(found)


def _in(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [Call() as value, *values] if all(isinstance(v, Literal) for v in values):
            return over(value, lambda ref: IsIn(ref, tuple(values)))  # type: ignore[arg-type]
        case [value, *values] if not all(isinstance(v, Literal) for v in values):
            equal = [_equal(value, other) for other in values]
            return None if any(part is None for part in equal) else Or(tuple(equal))  # type: ignore[arg-type]
        case [Column() as column, *values]:
            literals = tuple(v for v in values if isinstance(v, Literal) and _is_among(column, v))
            return IsIn(column.ref, literals) if len(literals) == len(values) else None
        case _:
            return None


def _in_set(frame: _Frame, expression: Any) -> Part | None:
    match frame.parts:
        case [Tuple() as value]:
            rows = tuples_of_set(_jvm_node(frame, expression))
            return None if rows is None else _in(replace(frame, parts=[value, *map(Tuple, rows)]), None)
        case [Call() as value]:
            in_set = _jvm_node(frame, expression)
            kind = _field_from_json(f'{{"name": "set", "type": {in_set.child().dataType().json()}}}')
            members = None if kind.metadata else values_of_set(in_set, kind.type)
            return None if members is None else over(value, lambda ref: IsIn(ref, members))
        case [Column() as column] if _is_comparable(column):
            # The members are of the type cast to: a time among them is no day of a date.
            values = values_of_set(_jvm_node(frame, expression), column.type)
            return None if values is None else IsIn(column.ref, values)
        case _:
            return None


def _starts_with(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [Call() as value, Literal(str() as prefix)]:
            return over(value, lambda ref: StartsWith(ref, prefix))
        case [Column(ref, cast=None) as column, Literal(str() as prefix)] if column.type == _STRING:
            return StartsWith(ref, prefix) if _is_comparable(column) else None
        case _:
            return None


def _like(frame: _Frame, expression: Any) -> Part | None:
    match frame.parts:
        case [Call() as value, Literal(str() as pattern)]:
            found = like(RESULT, pattern, _jvm_node(frame, expression).escapeChar())
            return None if found is None else over(value, lambda ref: replace(found, ref=ref))
        case [Column(ref, cast=None) as column, Literal(str() as pattern)] if column.type == _STRING:
            # JSON shows no escape character even where the query names one.
            escape = _jvm_node(frame, expression).escapeChar()
            return like(ref, pattern, escape) if _is_comparable(column) else None
        case _:
            return None


def _rlike(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [value, Literal(str() as pattern)] if matches(RESULT, pattern) is not None:
            side = side_of(value)
            if not isinstance(side, Ref | Call):
                return None
            return over(side, lambda ref: matches(ref, pattern))  # type: ignore[arg-type,return-value]
        case _:
            return None


def _is_nan(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [Column(ref, Field(type=kind))] if is_float(kind):
            return IsNan(ref)
        case [Call() as value]:
            return over(value, IsNan)
        case _:
            return None


def _is_null(frame: _Frame, _: Any) -> Part | None:
    match frame.parts:
        case [Column(ref, cast=None)]:
            return IsNull(ref)
        case [Call() as value]:
            return over(value, IsNull)
        case _:
            return None


# --- logic


def _is_not_null(frame: _Frame, expression: Any) -> Part | None:
    part = _is_null(frame, expression)
    return None if part is None else Not(condition_of(part))


def _and(frame: _Frame, _: Any) -> Part:
    return And(tuple(condition_of(part) for part in frame.parts))


def _or(frame: _Frame, _: Any) -> Part:
    return Or(tuple(condition_of(part) for part in frame.parts))


def _not(frame: _Frame, _: Any) -> Part:
    return Not(condition_of(frame.parts[0]))


def _choice(test: Predicate, then: Predicate, otherwise: Predicate) -> Predicate:
    """Returns IF as AND and OR; exact in three-valued logic, because IS TRUE is never NULL."""
    chosen = IsTrue(test)
    return Or((And((chosen, then)), And((Not(chosen), otherwise))))


def _conditional(frame: _Frame, _: Any) -> Part | None:
    """Returns IF and CASE over conditions: pairs of test and value, then what holds otherwise."""
    if not all(map(is_truth, (*frame.parts[1::2], *frame.parts[len(frame.parts) // 2 * 2 :]))):
        return None
    parts = [condition_of(part) for part in frame.parts]
    otherwise = parts.pop() if len(parts) % 2 else Constant(None)
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    return reduce(lambda rest, pair: _choice(pair[0], pair[1], rest), reversed(pairs), otherwise)


def _coalesce(frame: _Frame, _: Any) -> Part | None:
    """Returns `coalesce(p, false)` as `p IS TRUE`; None over anything but conditions."""
    match frame.parts:
        case [condition, Literal(bool() as default)]:
            inner = condition_of(condition)
            return Not(IsTrue(Not(inner))) if default else IsTrue(inner)
        case _:
            return None


def _dynamic_pruning(_frame: _Frame, _expression: Any) -> Part:
    return Constant(value=True)  # Spark applies it itself, to the partitions we return


_READERS: Final[Mapping[str, Callable[[_Frame, Any], Part | None]]] = {
    "AttributeReference": _attribute,
    "GetStructField": _struct_field,
    "Cast": _cast,
    "Literal": _literal,
    "CreateNamedStruct": _struct,
    **dict.fromkeys(_COMPARISONS, _compare),
    "In": _in,
    "InSet": _in_set,
    "StartsWith": _starts_with,
    "Like": _like,
    "RLike": _rlike,
    "IsNaN": _is_nan,
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "And": _and,
    "Or": _or,
    "Not": _not,
    "If": _conditional,
    "CaseWhen": _conditional,
    "Coalesce": _coalesce,
    "DynamicPruningExpression": _dynamic_pruning,
}
