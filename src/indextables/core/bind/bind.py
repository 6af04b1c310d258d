"""A condition bound to a table: names in the table's spelling, literals in the column's domain.

Semantics are Spark SQL's with ANSI mode on. What statistics of the column itself cannot answer
becomes `Opaque`; its `why` says the reason. In a bound condition

* a comparison has its column on the left, and on the right a column or a value the column can hold;
* `Literal.type` is the column's type and `Literal.value` its physical value, never NULL but in IN;
* a literal that the column's type cannot hold is rewritten exactly: on an int, `c < 5.5` is `c <= 5`
  and `c = 5.5` is never TRUE, but still NULL for a NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Final, TypeAlias, assert_never

from indextables.core.bind.bound import compare_cut, unless_null, within
from indextables.core.bind.coerce import (
    Cut,
    Exact,
    Incomparable,
    coerce,
    digits_of,
    is_valid_text,
    kind_of,
)
from indextables.core.bind.values import (
    Values,
    common_type,
    compare_constants,
    is_nan_value,
    on_values,
    typed,
)
from indextables.core.expr.datetimes import session_zone
from indextables.core.expr.nodes import Unknown, refs_of
from indextables.core.expr.zone_rules import zone_of
from indextables.core.predicate.like import is_like, whole_text
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Over,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import distinct, flatten, fold, gather_lists, rebuild
from indextables.core.types import (
    INTEGERS,
    DataType,
    DecimalType,
    Field,
    FieldPath,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    path_text,
    resolve,
    type_name,
)
from indextables.errors import UnknownColumnError

# IN lists: Spark compares column and list in one common type, which can change what a value means.


def plain_values(dtype: DataType, values: tuple[Literal, ...]) -> tuple[Literal, ...] | None:
    """Returns the usual list, integers or text of the column's own type, bound in one quick pass."""
    if any([literal.type is not None for literal in values]):  # noqa: C419  a generator takes twice as long
        return None
    listed = [literal.value for literal in values]
    kinds = set(
        map(type, listed)
    )  # not of the distinct values: 1.0, which is the same key as 1, counts
    raw = dict.fromkeys(listed)
    match dtype:
        case PrimitiveType(name) if name in INTEGERS and kinds == {int}:
            limit = 2 ** (INTEGERS[name] - 1)
            fits = -limit <= min(raw) and max(raw) < limit
        case PrimitiveType("string") if kinds == {str}:
            fits = is_valid_text("".join(raw))
        case _:
            return None
    return tuple(map(Literal, raw, repeat(dtype))) if fits else None


def as_double(literal: Literal) -> Literal:
    """Returns one double in an IN list makes Spark compare the whole list as doubles."""
    if kind_of(literal) not in {"integer", "decimal"} or abs(literal.value) > 10**38:
        return literal
    return Literal(float(literal.value))


_LIST_KINDS: Final[dict[str, tuple[frozenset[str], ...]]] = {
    "date": (frozenset({"date", "string"}), frozenset({"timestamp"}), frozenset({"timestamp_ntz"})),
    "timestamp": (frozenset({"timestamp", "timestamp_ntz", "date", "string"}),),
    "timestamp_ntz": (frozenset({"timestamp_ntz", "date", "string"}), frozenset({"timestamp"})),
}


def one_common_type(dtype: DataType, kinds: set[str], values: tuple[Literal, ...]) -> bool:
    """Returns whether Spark's common type for column and list gives each value the meaning it has alone."""
    match dtype:
        case PrimitiveType(name) if name in _LIST_KINDS:
            return any(kinds <= allowed for allowed in _LIST_KINDS[name])
        case PrimitiveType(name) if name in INTEGERS:
            # text next to integers is read as bigint, next to anything else it moves the type
            exact = "decimal" not in kinds or "double" in kinds or _list_fits_38(dtype, values)
            return exact and ("string" not in kinds or kinds <= {"string", "integer"})
        case DecimalType():
            exact = "double" in kinds or kinds == {"string"} or _list_fits_38(dtype, values)
            return exact and ("string" not in kinds or kinds == {"string"})
        case _:
            return True


def _list_fits_38(dtype: DataType, values: tuple[Literal, ...]) -> bool:
    """Returns whether one decimal type of at most 38 digits holds the column and every number of the list."""
    sizes = [_decimal_size(value) for value in values if kind_of(value) in {"integer", "decimal"}]
    match dtype:
        case DecimalType(precision, scale):
            sizes.append((precision - scale, scale))
        case _:
            sizes.append((20, 0))
    return max(whole for whole, _ in sizes) + max(after for _, after in sizes) <= 38


def _decimal_size(literal: Literal) -> tuple[int, int]:
    if isinstance(literal.value, int):  # here Spark goes by the type, not by the digits
        return (10 if abs(literal.value) < 2**31 else 20), 0
    return digits_of(literal.value) if literal.value.is_finite() else (39, 0)


BoundPredicate: TypeAlias = Predicate

_FLIPPED: Final[dict[CompareOp, CompareOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Bare words that Spark takes for a call where there is no column of that name.
_CALLS: Final = frozenset(
    {"current_date", "current_timestamp", "current_time", "current_user", "user", "session_user"}
)
_ENGINE_ONLY: Final = "only an engine can evaluate it"
_ORDERINGS: Final = frozenset(_FLIPPED)


def bind(
    predicate: Predicate, schema: StructType, *, timezone: str = "UTC", case_sensitive: bool = False
) -> BoundPredicate:
    """Returns the same condition over the table's own columns and values.

    UnknownColumnError for other names.
    """
    binder = _Binder(schema, session_zone(timezone), case_sensitive, timezone)
    return gather_lists(flatten(fold(flatten(predicate), binder.bind_node)))


@dataclass(frozen=True, slots=True)
class _Column:
    """A name found in the schema; `comparable` unless its order is not ours to know."""

    ref: Ref
    type: DataType
    comparable: bool


@dataclass(frozen=True)
class _Binder:
    schema: StructType
    zone: dt.tzinfo
    case_sensitive: bool
    timezone: str
    found: dict[FieldPath, _Column | None] = field(default_factory=dict)

    def bind_node(self, node: Predicate, inner: tuple[Predicate, ...]) -> Predicate:
        match node:
            case Compare():
                return self._compare(node)
            case IsNull(ref):
                return self._with(node, ref, lambda column: IsNull(column.ref))
            case IsNan(ref):
                return self._with(node, ref, lambda column: _is_nan(node, column))
            case BoolRef(ref):
                return self._with(node, ref, lambda column: _bool_ref(node, column))
            case StartsWith(ref):
                return self._with(node, ref, lambda column: _starts_with(node, column))
            case IsIn(ref):
                return self._with(node, ref, lambda column: self._is_in(node, column))
            case Opaque():
                return self._opaque(node)
            case Over():
                return self._over(node)
            case And() | Or() | Not() | IsTrue() | Constant():
                return rebuild(node, inner)
            case _:
                assert_never(node)

    def find(self, path: FieldPath) -> _Column | None:
        """Returns the column, or None for what only an engine knows: part of a map or list, the current date."""
        if path not in self.found:
            self.found[path] = self._find(path)
        return self.found[path]

    def _find(self, path: FieldPath) -> _Column | None:
        try:
            found, dtype = resolve(self.schema, path, case_sensitive=self.case_sensitive)
        except UnknownColumnError:
            if path[0].lower() in _CALLS or self._reaches_into_container(path):
                return None
            raise
        return _Column(Ref(found), dtype, is_orderable(dtype, _metadata(self.schema, found)))

    def _reaches_into_container(self, path: FieldPath) -> bool:
        for end in range(1, len(path)):
            try:
                _, dtype = resolve(self.schema, path[:end], case_sensitive=self.case_sensitive)
            except UnknownColumnError:
                return False
            if isinstance(dtype, MapType | ListType) or dtype == PrimitiveType("variant"):
                return True
        return False

    def _with(self, node: Predicate, ref: Ref, then: Callable[[_Column], Predicate]) -> Predicate:
        column = self.find(ref.path)
        if column is None:
            return self._opaque(Opaque(to_sql(node), (ref.path,), _ENGINE_ONLY))
        return then(column)

    def _opaque(self, node: Opaque) -> Opaque:
        columns = tuple(dict.fromkeys(filter(None, map(self._known_part, node.columns))))
        return Opaque(node.text, columns, node.why, node.condition)

    def _known_part(self, path: FieldPath) -> FieldPath:
        """Returns as much of a path as the schema has: `m.key` reads the map m."""
        for end in range(len(path), 0, -1):
            try:
                return resolve(self.schema, path[:end], case_sensitive=self.case_sensitive)[0]
            except UnknownColumnError:
                if end == 1 and path[0].lower() not in _CALLS:
                    raise
        return ()

    @cached_property
    def values(self) -> Values:
        """Returns what binds the values of functions."""
        return Values(self._value, self.bind, zone_of(self.timezone))

    def bind(self, predicate: Predicate) -> Predicate:
        """Returns a condition inside a function; one that is bound already stays as it is."""
        return flatten(fold(flatten(predicate), self.bind_node))

    def _value(self, ref: Ref) -> Ref | Unknown:
        if ref.type is not None:
            return ref
        column = self.find(ref.path)
        if column is None:
            return Unknown(path_text(ref.path), (), _ENGINE_ONLY)
        if not column.comparable:
            return Unknown(
                path_text(column.ref.path), (column.ref.path,), "its values have no order we know"
            )
        return Ref(column.ref.path, column.type)

    def _over(self, node: Over) -> Predicate:
        """Returns a condition on the value of a function: what it says of the result as if that were a column."""

        def leaf(parts: Sequence[Any]) -> Predicate:
            return self._on_result(node, parts[0], node.condition)

        return on_values(leaf, [self.values.bind(node.expression)])

    def _on_result(self, node: Predicate, value: Any, condition: Predicate) -> Predicate:
        match value:
            case Unknown(text, columns, why):
                shown = f"{text}: {why}" if why else text
                return self._opaque(Opaque(to_sql(node), columns, shown))
            case Literal():
                return self._of_constant(node, value, condition)
            case _:
                pass
        if isinstance(value, Ref):
            return self.bind(fold(condition, lambda leaf, inner: _with_column(leaf, inner, value)))
        result = StructType((Field(RESULT.path[0], value.type),))
        bound = gather_lists(flatten(fold(condition, replace(self, schema=result, found={}).bind_node)))
        opaque: Opaque | None = fold(bound, _first_opaque)
        if opaque is not None:
            columns = tuple(dict.fromkeys(refs_of(value)))
            return Opaque(to_sql(node), columns, opaque.why)
        return Over(value, bound)

    def _of_constant(self, node: Predicate, value: Literal, condition: Predicate) -> Predicate:
        """Returns what a condition on a constant is: NULL, TRUE or FALSE, where that is sure."""
        match condition:
            case IsNull():
                return Constant(value.value is None)
            case _ if value.value is None and isinstance(
                condition, IsIn | StartsWith | BoolRef | Compare
            ):
                return (
                    Constant(None)
                    if getattr(condition, "op", "") != "<=>"
                    else self._null_safe(condition)
                )
            case BoolRef() if isinstance(value.value, bool):
                return Constant(value.value)
            case IsNan():
                return Constant(is_nan_value(value))
            case StartsWith(prefix=str()) if isinstance(value.value, str) and condition.regex is None:
                return Constant(is_like(value.value, condition))
            case Compare(op, _, Literal() as other):
                return self._constants(op, value, other, node)
            case IsIn(_, values):
                parts = [self._constants("=", value, other, node) for other in values]
                return Or(tuple(parts))
            case _:
                return Opaque(to_sql(node), (), "it is about a constant")

    def _null_safe(self, condition: Predicate) -> Predicate:
        assert isinstance(condition, Compare)
        other = condition.right
        return Constant(isinstance(other, Literal) and other.value is None)

    def _constants(self, op: CompareOp, one: Literal, two: Literal, node: Predicate) -> Predicate:
        two = typed(two)
        if one.value is None or two.value is None:
            return Constant(one.value is two.value) if op == "<=>" else Constant(None)
        common = common_type([one.type, two.type]) if one.type and two.type else None
        if common is not None:
            left, right = self.values.cast(one, common), self.values.cast(two, common)
            if isinstance(left, Literal) and isinstance(right, Literal):
                return compare_constants(op, left, right)
        return Opaque(to_sql(node), (), "it compares two constants")

    def _compare_values(self, node: Compare) -> Predicate:
        """Returns a comparison of which one side at least is a function."""

        def leaf(parts: Sequence[Any]) -> Predicate:
            left, right = parts
            if isinstance(left, Literal) and isinstance(right, Literal):
                return self._constants(node.op, left, right, node)
            if isinstance(right, Literal):
                return self._on_result(node, left, Compare(node.op, RESULT, right, node.nan))
            if isinstance(left, Literal):
                op = _FLIPPED.get(node.op, node.op)
                return self._on_result(node, right, Compare(op, RESULT, left, node.nan))
            return self._two_values(node, left, right)

        return on_values(leaf, [self.values.bind(side) for side in (node.left, node.right)])

    def _two_values(self, node: Compare, left: Any, right: Any) -> Predicate:
        for side in (left, right):
            if isinstance(side, Unknown):
                return self._on_result(node, side, node)
        columns = tuple(dict.fromkeys((*refs_of(left), *refs_of(right))))
        common = common_type([left.type, right.type])
        if common is None or common == PrimitiveType("float"):
            return Opaque(to_sql(node), columns, "the two sides have no common type that we know")
        one, two = self.values.cast(left, common), self.values.cast(right, common)
        if not (isinstance(one, Ref | Call) and isinstance(two, Ref | Call)):
            return Opaque(to_sql(node), columns, "a cast of one side is not known")
        return Compare(node.op, one, two, node.nan)

    def _compare(self, node: Compare) -> Predicate:
        if any(isinstance(side, Call | Unknown) for side in (node.left, node.right)):
            return self._compare_values(node)
        match node.left, node.right:
            case Ref() as left, Ref() as right:
                return self._compare_columns(node, left, right)
            case Literal() as left, Ref() as right:
                return self._compare(Compare(_FLIPPED.get(node.op, node.op), right, left, node.nan))
            case Ref() as left, Literal() as right:
                return self._with(node, left, lambda column: self._compare_literal(node, column, right))
            case _:
                return Opaque(to_sql(node), why="it compares two constants")

    def _compare_literal(self, node: Compare, column: _Column, literal: Literal) -> Predicate:
        if literal.value is None:
            return IsNull(column.ref) if node.op == "<=>" else Constant(None)
        if not column.comparable:
            return _opaque_column(node, column)
        if node.nan is NanRule.IEEE and is_nan_value(literal):
            return unless_null(column.ref, node.op == "<>")
        found = coerce(literal, column.type, self.zone, ordering=node.op in _ORDERINGS)
        match found:
            case Incomparable(why):
                bare = Compare(node.op, column.ref, literal, node.nan)
                rows = bare if _text_against_numbers(column.type, {kind_of(literal)}) else None
                return Opaque(to_sql(bare), (column.ref.path,), why, rows)
            case Exact(value):
                return Compare(node.op, column.ref, Literal(value, column.type), node.nan)
            case Cut():
                return compare_cut(node.op, column.ref, column.type, found, node.nan)
            case _:
                assert_never(found)

    def _is_in(self, node: IsIn, column: _Column) -> Predicate:
        if column.comparable and (points := plain_values(column.type, node.values)) is not None:
            return IsIn(column.ref, points, node.nan)
        kinds = set(map(kind_of, node.values))
        has_null = "null" in kinds
        kinds.discard("null")
        if not kinds:
            return Constant(None) if has_null else IsIn(column.ref, ())
        if not column.comparable:
            return _opaque_column(node, column)
        bare = IsIn(column.ref, node.values, node.nan)
        if not one_common_type(column.type, kinds, node.values):
            why = "Spark casts the column to the common type of the list"
            return Opaque(to_sql(bare), (column.ref.path,), why)
        if _text_against_numbers(column.type, kinds):
            return Opaque(to_sql(bare), (column.ref.path,), "Spark casts the column to a number", bare)
        return self._points_and_ranges(bare, column, as_doubles="double" in kinds)

    def _points_and_ranges(self, node: IsIn, column: _Column, *, as_doubles: bool) -> Predicate:
        points: list[Literal] = []
        ranges: list[Predicate] = []
        for value in map(as_double, node.values) if as_doubles else node.values:
            if value.value is None:
                points.append(Literal(None, column.type))
                continue
            if node.nan is NanRule.IEEE and is_nan_value(value):
                ranges.append(unless_null(column.ref, value=False))
                continue
            match coerce(value, column.type, self.zone, ordering=False):
                case Exact(point):
                    points.append(Literal(point, column.type))
                case Cut() as cut:
                    ranges.append(within(column.ref, column.type, cut, node.nan))
                case Incomparable(why):
                    return Opaque(to_sql(node), (column.ref.path,), why)
        if not points:
            return Or(tuple(dict.fromkeys(ranges)))
        never = unless_null(column.ref, value=False)  # says nothing beside a list
        others = (part for part in dict.fromkeys(ranges) if part != never)
        return Or((IsIn(column.ref, distinct(points), node.nan), *others))

    def _compare_columns(self, node: Compare, left: Ref, right: Ref) -> Predicate:
        one, two = self.find(left.path), self.find(right.path)
        if one is None or two is None:
            return self._opaque(Opaque(to_sql(node), (left.path, right.path), _ENGINE_ONLY))
        bare = Compare(node.op, one.ref, two.ref, node.nan)
        for column in (one, two):
            if not column.comparable:
                return _opaque_column(bare, column)
        if _same_order(one.type, two.type):
            return bare
        why = f"Spark casts one of the columns: {type_name(one.type)} and {type_name(two.type)}"
        rows = bare if _arrow_can_compare(one.type, two.type) else None
        return Opaque(to_sql(bare), (one.ref.path, two.ref.path), why, rows)


def _with_column(leaf: Predicate, inner: tuple[Predicate, ...], ref: Ref) -> Predicate:
    """Returns a condition on a result as one on a column."""
    match leaf:
        case Compare(op, Ref() as left, right, nan) if left == RESULT:
            return Compare(op, Ref(ref.path), right, nan)
        case IsNull() | IsNan() | IsIn() | StartsWith() | BoolRef() if leaf.ref == RESULT:
            return replace(leaf, ref=Ref(ref.path))
        case _:
            return rebuild(leaf, inner)


def _first_opaque(leaf: Predicate, inner: tuple[Opaque | None, ...]) -> Opaque | None:
    return leaf if isinstance(leaf, Opaque) else next(filter(None, inner), None)


def _metadata(schema: StructType, path: FieldPath) -> Mapping[str, Any]:
    """Returns what is noted about the field at a path that is known to exist."""
    current: Any = schema
    metadata: Mapping[str, Any] = {}
    for name in path:
        found = next(f for f in current if f.name == name)
        current, metadata = found.type, found.metadata
    return metadata


def _opaque_column(node: Predicate, column: _Column) -> Opaque:
    kind = type_name(column.type)
    why = f"column {column.ref.path[-1]!r} ({kind}) is not ordered by its stored value"
    return Opaque(to_sql(node), (column.ref.path,), why)


def _is_nan(node: IsNan, column: _Column) -> Predicate:
    if is_float(column.type):
        return IsNan(column.ref)
    if isinstance(column.type, DecimalType) or _is_integer(column.type):
        return Constant(value=False)  # isnan(NULL) is FALSE as well
    return Opaque(to_sql(node), (column.ref.path,), "Spark casts the column to double")


def _bool_ref(node: BoolRef, column: _Column) -> Predicate:
    if column.type == PrimitiveType("boolean"):
        return BoolRef(column.ref)
    why = f"column {column.ref.path[-1]!r} is {type_name(column.type)}, not boolean"
    return Opaque(to_sql(node), (column.ref.path,), why)


def _starts_with(node: StartsWith, column: _Column) -> Predicate:
    wanted = PrimitiveType("string" if isinstance(node.prefix, str) else "binary")
    if column.type == wanted and column.comparable and is_valid_text(node.prefix):
        text = whole_text(node.pattern) if node.pattern is not None else None
        if text is not None:
            return Compare("=", column.ref, Literal(text, column.type))
        return replace(node, ref=column.ref)
    return Opaque(to_sql(node), (column.ref.path,), f"Spark casts the column to {wanted.name}")


def _is_integer(dtype: DataType) -> bool:
    return isinstance(dtype, PrimitiveType) and dtype.name in INTEGERS


def _same_order(one: DataType, two: DataType) -> bool:
    """Returns whether stored values of the two types compare as Spark compares the columns."""
    match one, two:
        case DecimalType(p, s), DecimalType(q, r):
            return max(p - s, q - r) + max(s, r) <= 38
        case _ if _is_integer(one) and _is_integer(two):
            return True
        case _ if is_float(one) and is_float(two):
            return True
        case _:
            return one == two


def _text_against_numbers(dtype: DataType, kinds: set[str]) -> bool:
    return dtype == PrimitiveType("string") and kinds <= {"integer", "double", "decimal"}


def _arrow_can_compare(one: DataType, two: DataType) -> bool:
    """Returns whether rows can be compared in Spark's common type although bounds cannot."""
    match one, two:
        case (DecimalType(), DecimalType()):  # too wide: Spark rounds both
            return False
        case (DecimalType(precision, scale), other) | (other, DecimalType(precision, scale)):
            whole = max(precision - scale, 20)
            return is_float(other) or (_is_integer(other) and whole + scale <= 38)
        case _:
            numbers = all(is_float(dtype) or _is_integer(dtype) for dtype in (one, two))
            return numbers or {one, two} == {PrimitiveType("date"), PrimitiveType("timestamp_ntz")}
