"""PyArrow's expressions as conditions, by PyArrow's own rules or by those of SQL."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from indextables.core.bind.bound import unless_null
from indextables.core.expr.nodes import Expression, call
from indextables.core.expr.zones import UTC
from indextables.core.predicate.like import escape_like, like
from indextables.core.predicate.nodes import (
    BoolRef,
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
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.types import (
    FieldPath,
    PrimitiveType,
    StructType,
    is_float,
    leaves,
    path_text,
    resolve,
)
from indextables.engines.arrow.expression_tree import Call, FieldRef, Tree, Value, take_apart
from indextables.errors import UnknownColumnError

# Arrow scalars as literals of conditions.

_PER_MICROSECOND: Final = {"s": 1_000_000, "ms": 1000, "us": 1}


def literal_of(scalar: Any) -> Literal | None:
    """Returns the constant an Arrow scalar is.

    None for a type, or a nanosecond, that no column can hold.
    """
    kind = scalar.type
    if pa.types.is_dictionary(kind):
        return literal_of(scalar.value)
    if not scalar.is_valid:
        return Literal(None)
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind)
    if pa.types.is_date32(kind):
        return Literal(scalar.value, PrimitiveType("date"))
    if pa.types.is_date64(kind):
        days, rest = divmod(scalar.value, 86_400_000)
        return Literal(days, PrimitiveType("date")) if rest == 0 else None
    return Literal(scalar.as_py()) if _is_plain(kind) else None


def _timestamp(value: int, kind: Any) -> Literal | None:
    dtype = PrimitiveType("timestamp" if kind.tz else "timestamp_ntz")
    if kind.unit == "ns":
        micros, rest = divmod(value, 1000)
        return Literal(micros, dtype) if rest == 0 else None
    return Literal(value * _PER_MICROSECOND[kind.unit], dtype)


def _is_plain(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


_COMPARISONS: Final[dict[str, CompareOp]] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


class Rules(Enum):
    """What a filter in PyArrow's form means; the two differ for NaN, and for NULL in `is_in`."""

    SQL = "sql"
    """NaN is above every number, and `NULL IN (…)` is NULL: every engine means that, whatever it hands over."""
    ARROW = "arrow"
    """No comparison with NaN holds, and `is_in` is FALSE for NULL."""

    @property
    def nan(self) -> NanRule:
        """Returns how NaN compares."""
        return NanRule.SPARK if self is Rules.SQL else NanRule.IEEE


_TIMES: Final = tuple(PrimitiveType(name) for name in ("date", "timestamp_ntz", "timestamp"))
_OF_TEXT: Final = {"utf8_lower": "lower in some way", "utf8_upper": "upper in some way"}
_OF_DATE: Final = {
    **{name: name for name in ("year", "quarter", "month", "day")},
    "day_of_year": "dayofyear",
}
_UNREADABLE: Final = "only Arrow can evaluate it"
# null_matching_behavior of is_in, by Arrow's numbers
_MATCH, _SKIP = 0, 1


def predicate_of(
    expression: Any, rules: Rules = Rules.ARROW, schema: StructType | None = None
) -> Predicate:
    """Returns the condition an expression is; what statistics cannot answer is Opaque.

    Functions are read if the schema says what they are of.
    """
    taken = take_apart(expression)
    if taken is None:
        return Opaque(str(expression), (), "PyArrow spells it in an unknown way")
    return _Reader(rules, schema).condition(taken.tree)


def fields_of(expression: Any) -> frozenset[str] | None:
    """Returns the top-level columns an expression reads; None if that cannot be told."""
    taken = take_apart(expression)
    paths = None if taken is None else _paths(taken.tree)
    return None if paths is None else frozenset(path[0] for path in paths)


def _paths(tree: Tree) -> set[FieldPath] | None:
    match tree:
        case FieldRef(path):
            return {path} if path else None
        case Value():
            return set()
        case Call(_, arguments):
            found: set[FieldPath] = set()
            for paths in map(_paths, arguments):
                if paths is None:
                    return None
                found |= paths
            return found


class _Reader:
    def __init__(self, rules: Rules, schema: StructType | None) -> None:
        self._rules, self._schema = rules, schema

    def condition(self, tree: Tree) -> Predicate:
        match tree:
            case FieldRef(path) if path:
                return BoolRef(Ref(path))
            case Value(scalar) if pa.types.is_boolean(scalar.type) or pa.types.is_null(scalar.type):
                return Constant(scalar.as_py())
            case Call("and_kleene", (left, right)):
                return self.condition(left) & self.condition(right)
            case Call("or_kleene", (left, right)):
                return self.condition(left) | self.condition(right)
            case Call("invert", (child,)):
                return Not(self.condition(child))
            case Call(name, (left, right)) if op := _COMPARISONS.get(name):
                return self._compare(op, left, right, tree)
            case Call("if_else", (Call("is_valid" | "is_null"), _, _) as parts):
                return self._if_else(*map(self.condition, parts))
            case Call(_, (FieldRef(path),)) if path:
                return self._of_field(tree, Ref(path))
            case _:
                return self._opaque(tree)

    def _compare(self, op: CompareOp, left: Tree, right: Tree, tree: Tree) -> Predicate:
        one: Any = _operand(left)
        two = _operand(right)
        if isinstance(left, Call) and isinstance(two, Literal):
            one = self._function(left, two)
        if one is None or two is None or (isinstance(one, Literal) and isinstance(two, Literal)):
            return self._opaque(tree)
        return Compare(op, one, two, self._rules.nan)

    def _function(self, asked: Call, compared: Literal) -> Expression | None:
        """Returns a function of a column, if it is known of the column's type and of the other side's kind."""
        column = asked.arguments[0] if len(asked.arguments) == 1 else None
        if self._schema is None or not isinstance(column, FieldRef) or not column.path:
            return None
        try:
            _, dtype = resolve(self._schema, column.path, case_sensitive=True)
        except UnknownColumnError:
            return None
        is_text = dtype == PrimitiveType("string")
        if asked.name in _OF_TEXT and is_text and isinstance(compared.value, str):
            return call(_OF_TEXT[asked.name], Ref(column.path))
        if type(compared.value) is not int or compared.type is not None:
            return None
        if asked.name == "utf8_length" and is_text:
            return call("length", Ref(column.path))
        if dtype not in _TIMES or asked.options is not None:
            return None
        known = call("in calendar", Ref(column.path))
        if asked.name in _OF_DATE:
            date = known if dtype == _TIMES[0] else call("cast", known, type=_TIMES[0], zone=UTC)
            return call(_OF_DATE[asked.name], date)
        on_clock = asked.name in {"hour", "minute", "second"} and dtype != _TIMES[0]
        return call(asked.name, known, zone=UTC) if on_clock else None

    def _if_else(self, test: Predicate, then: Predicate, otherwise: Predicate) -> Predicate:
        # the test is never NULL
        return (test & then) | (Not(test) & otherwise)

    def _of_field(self, asked: Call, ref: Ref) -> Predicate:
        options = asked.options
        match asked.name:
            case "is_valid":
                return Not(IsNull(ref))
            case "is_null":
                nan_too = options is not None and options["nan_is_null"].as_py()
                return Or((IsNull(ref), IsNan(ref))) if nan_too else IsNull(ref)
            case "is_nan":  # NULL for NULL, where SQL's is FALSE
                return Or((IsNan(ref), unless_null(ref, value=False)))
            case "starts_with" if not options["ignore_case"].as_py():
                # bytes that are no text come in a scalar of text, too
                return _starts_with(ref, options["pattern"].as_buffer().to_pybytes())
            case "is_in":
                return self._is_in(ref, asked)
            case "ends_with" | "match_substring" | "match_like" if not options["ignore_case"].as_py():
                return self._like(ref, asked)
            case _:
                return self._opaque(asked)

    def _like(self, ref: Ref, asked: Call) -> Predicate:
        text = asked.options["pattern"].as_buffer().to_pybytes().decode("utf-8", "replace")
        if "\ufffd" in text or (asked.name == "match_like" and "\\" in text):
            return self._opaque(asked)
        form = {"ends_with": "%{}", "match_substring": "%{}%"}.get(asked.name)
        found = like(ref, text if form is None else form.format(escape_like(text)))
        return self._opaque(asked) if found is None else found

    def _is_in(self, ref: Ref, asked: Call) -> Predicate:
        values = [literal_of(scalar) for scalar in _values(asked.options["value_set"])]
        behaviour = asked.options["null_matching_behavior"].as_py()
        listed = tuple(value for value in values if value is not None)
        if len(listed) < len(values) or behaviour not in {_MATCH, _SKIP}:
            return self._opaque(asked)
        known = tuple(value for value in listed if value.value is not None)
        if self._rules is Rules.SQL:
            return IsIn(ref, listed) if behaviour == _MATCH else IsIn(ref, known)
        if any(isinstance(v.value, float) and (v.value == 0 or math.isnan(v.value)) for v in known):
            return self._opaque(asked)  # Arrow finds them by their bits: of two zeros one, of NaN some
        # never NULL: a NULL is in a list that has one, or it is not
        found = IsTrue(IsIn(ref, known, NanRule.SPARK))
        has_null = len(known) < len(listed) and behaviour == _MATCH
        return Or((IsNull(ref), found)) if has_null else found

    def _opaque(self, tree: Tree) -> Opaque:
        return Opaque(_text(tree), tuple(sorted(_paths(tree) or ())), _UNREADABLE)


def _text(tree: Tree) -> str:
    match tree:
        case FieldRef(path):
            return path_text(path)
        case Value(scalar):
            return str(scalar)
        case Call(name, arguments):
            return f"{name}({', '.join(map(_text, arguments))})"


def _values(value_set: Any) -> Any:
    """Returns the list as scalars; a chunked or a plain array, inside the scalar of a list."""
    return value_set.values if isinstance(value_set, pa.ListScalar) else value_set


def _operand(tree: Tree) -> Ref | Literal | None:
    match tree:
        case FieldRef(path) if path:
            return Ref(path)
        case Value(scalar):
            return literal_of(scalar)
        case _:
            return None


def _starts_with(ref: Ref, pattern: bytes) -> Predicate:
    text = pattern.decode("utf-8", "replace")
    if "\ufffd" in text:
        return Opaque("starts_with", (ref.path,), "its prefix is no text")
    return StartsWith(ref, text)


def by_sql_rules(expression: Any, schema: StructType) -> Any:
    """Returns the expression under SQL's rules, so that Arrow filters by them.

    `d > 2` becomes `d > 2 OR is_nan(d)`, for every float field that is compared with a value, and
    `is_in` becomes NULL for NULL and finds both zeros.
    """
    taken = take_apart(expression)
    if taken is None:
        return expression
    floats = {leaf.path for leaf in leaves(schema) if is_float(leaf.type)}
    changed = _by_sql_rules(taken.tree, floats, taken.null)
    return expression if changed is taken.tree else taken.expression(changed)


def _by_value(tree: Call, column: Tree) -> Call:
    """Returns the list of a float column with both zeros and every NaN, if it has one: Arrow finds them by their bits."""
    listed = _values(tree.options["value_set"]).to_pylist()
    if any(value == 0 for value in listed):  # a number that is its own negative
        is_zero = Call("equal", (column, Call("negate", (column,), None)), None)
        tree = Call("or_kleene", (tree, is_zero), None)
    if any(isinstance(value, float) and math.isnan(value) for value in listed):
        tree = Call("or_kleene", (tree, Call("is_nan", (column,), None)), None)
    return tree


def _by_sql_rules(tree: Tree, floats: set[FieldPath], null: Value) -> Tree:
    if not isinstance(tree, Call):
        return tree
    match tree.name, tree.arguments:
        case ("greater" | "greater_equal", (FieldRef(path) as column, Value())) if path in floats:
            return Call("or_kleene", (tree, Call("is_nan", (column,), None)), None)
        case ("less" | "less_equal", (Value(), FieldRef(path) as column)) if path in floats:
            return Call("or_kleene", (tree, Call("is_nan", (column,), None)), None)
        case ("is_in", (column,)):
            known = Call("or_kleene", (Call("is_valid", (column,), None), null), None)
            path = column.path if isinstance(column, FieldRef) else ()
            found = _by_value(tree, column) if path in floats else tree
            return Call("and_kleene", (found, known), None)
    inner = tuple(_by_sql_rules(argument, floats, null) for argument in tree.arguments)
    if all(new is old for new, old in zip(inner, tree.arguments, strict=True)):
        return tree
    return Call(tree.name, inner, tree.options, tree.options_pair)
