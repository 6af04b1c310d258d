"""Polars' expressions as conditions, node to node.

What the optimiser hands over is typed: casts are nodes of their own and a constant has the type it is computed
in, so with the table's schema the type of each value is known. Without it only columns and constants are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from indextables.core.bind.bound import unless_null
from indextables.core.expr.nodes import Condition, call, refs_of
from indextables.core.predicate.like import escape_like, like
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
from indextables.core.types import PrimitiveType, StructType, is_float, resolve
from indextables.engines.arrow.conditions import literal_of
from indextables.engines.polars.functions import (
    INTEGERS,
    Duration,
    Typed,
    cast_of,
    dtype_of,
    function_of,
    operation_of,
)
from indextables.errors import UnknownColumnError

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "Eq": "=",
    "NotEq": "<>",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_AS_THEY_ARE: Final = {
    "Int8": "byte",
    "Int16": "short",
    "Int32": "integer",
    "Int64": "long",
    "String": "string",
    "Boolean": "boolean",
}
_UNSIGNED: Final = {"UInt8", "UInt16", "UInt32"}
_CLOSED: Final[dict[str, tuple[CompareOp, CompareOp]]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_WHY: Final = "only Polars can evaluate it"


def predicate_of(expression: pl.Expr, schema: StructType | None = None) -> Predicate:
    """Returns the condition an expression is; what statistics cannot answer is Opaque.

    The shape is read from Polars' JSON. Most literals are not: there NaN and infinities are null, and a
    list is one number per byte; Polars itself evaluates them.
    """
    try:
        tree = json.loads(expression.meta.serialize(format="json"))
        return _Reader(schema).condition(tree, expression)
    except (
        RecursionError,
        ValueError,
        LookupError,
        TypeError,
        pl.exceptions.PolarsError,
    ) as error:  # other versions spell some of it in other ways
        return Opaque("a Polars expression", (), f"it cannot be read: {type(error).__name__}")


@dataclass(frozen=True, slots=True)
class _Reader:
    schema: StructType | None

    # Conditions

    def condition(self, tree: Any, expression: pl.Expr) -> Predicate:
        match tree:
            case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _LOGIC:
                two, one = expression.meta.pop()  # the last operand comes first
                sides = self.condition(left, one), self.condition(right, two)
                return sides[0] & sides[1] if op.endswith("And") else sides[0] | sides[1]
            case {"BinaryExpr": {"left": left, "op": op, "right": right}} if (
                op in _COMPARISONS or op == "NotEqValidity"
            ):
                two, one = expression.meta.pop()
                found = self._compare(
                    _COMPARISONS.get(op, "<=>"), self._value(left, one), self._value(right, two)
                )
                if found is None:
                    return _opaque(expression)
                return Not(found) if op == "NotEqValidity" else found
            case {"Function": {"input": inputs, "function": {"Boolean": "Not"}}}:
                return Not(self.condition(inputs[0], expression.meta.pop()[0]))
            case {"Function": {"input": inputs, "function": function}} if inputs:
                found = self._test(function, inputs, list(reversed(expression.meta.pop())))
                return self._truth(tree, expression) if found is None else found
            case _:
                return self._truth(tree, expression)

    def _truth(self, tree: Any, expression: pl.Expr) -> Predicate:
        """Returns a boolean value as a condition."""
        match self._value(tree, expression).value:
            case Ref() | Call() as value:
                return over(value, BoolRef)
            case Literal(None | bool() as value):
                return Constant(value)
            case _:
                return _opaque(expression)

    def _compare(self, op: CompareOp, one: Typed, two: Typed) -> Predicate | None:
        left, right = one.value, two.value
        if any(isinstance(side, Unknown | Condition) for side in (left, right)):
            return None
        if isinstance(left, Literal) and isinstance(right, Literal):
            return None
        # a function is of the type that Polars computes it in, and so must the other side be
        if isinstance(left, Call) or isinstance(right, Call):
            both = {one.type, two.type}
            if len(both) > 1 and not (both <= {*INTEGERS, None} and None not in both):
                return None
        return Compare(op, left, right)  # type: ignore[arg-type]

    def _test(self, function: Any, inputs: list[Any], parts: list[pl.Expr]) -> Predicate | None:
        """Returns a function whose result is a truth; None where it is none that is known."""
        read = _TESTS.get(_key(function))
        if read is None:
            return None
        typed = self._value(inputs[0], parts[0])
        if not isinstance(typed.value, Ref | Call):
            return None
        return read(self, function, typed, inputs[1:], parts[1:])

    # Values

    def _value(self, tree: Any, expression: pl.Expr) -> Typed:
        found: Typed | None = None
        match tree:
            case {"Column": _} | {"Function": {"function": {"StructExpr": _}}}:
                found = self._column(_path(tree))
            case {"Literal": literal}:
                found = _exact(literal) or _evaluated(expression)
            case {"Cast": {"expr": inner, "dtype": dtype, "options": options}}:
                (part,) = expression.meta.pop()
                found = cast_of(self._value(inner, part), dtype_of(dtype), options)
            case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op not in _TRUTHS:
                two, one = expression.meta.pop()
                found = operation_of(op, self._value(left, one), self._value(right, two))
            case {"Ternary": {"predicate": test, "truthy": then, "falsy": otherwise}}:
                tests, last, first = expression.meta.pop()
                found = self._choice(
                    self.condition(test, tests), self._value(then, first), self._value(otherwise, last)
                )
            case {"Function": {"input": inputs, "function": function}}:
                parts = list(reversed(expression.meta.pop()))
                values = [self._value(i, part) for i, part in zip(inputs, parts, strict=True)]
                found = function_of(function, values)
        return found or Typed(_unknown(expression), None)

    def _column(self, path: tuple[str, ...] | None) -> Typed | None:
        if path is None:
            return None
        if self.schema is None:
            return Typed(Ref(path), None)
        try:
            _, dtype = resolve(self.schema, path, case_sensitive=True)
        except UnknownColumnError:
            return None
        return Typed(Ref(path), dtype)

    def _choice(self, test: Predicate, then: Typed, otherwise: Typed) -> Typed | None:
        constants = all(isinstance(side.value, Literal) for side in (then, otherwise))
        if then.type != otherwise.type or (then.type is None and not constants):
            return None
        if isinstance(then.value, Unknown) or isinstance(otherwise.value, Unknown):
            return None
        return Typed(call("case", test, then.value, otherwise.value), then.type)


_LOGIC: Final = frozenset({"And", "LogicalAnd", "Or", "LogicalOr"})
_TRUTHS: Final = frozenset({*_LOGIC, *_COMPARISONS, "NotEqValidity", "Xor"})


def _path(tree: Any) -> tuple[str, ...] | None:
    match tree:
        case {"Column": str(name)}:
            return (name,)
        case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
            parent = _path(inner)
            return None if parent is None else (*parent, name)
        case _:
            return None


# Constants


def _exact(literal: Any) -> Typed | None:
    """Returns integers, texts and truth values, which JSON has as they are.

    To evaluate them takes Polars longer.
    """
    match literal:
        case {"Dyn": {"Int": int(value)}} if -(2**63) <= value < 2**63:
            return Typed(Literal(value), None)
        case {"Scalar": dict(scalar)}:
            ((kind, value),) = scalar.items()
            if kind == "Duration" and value[1] == "Microseconds":
                return Typed(Literal(Duration(value[0])), None)
            if kind in _UNSIGNED:
                return Typed(Literal(value), None)
            name = _AS_THEY_ARE.get(kind)
            return None if name is None else Typed(Literal(value), PrimitiveType(name))  # type: ignore[arg-type]
        case _:
            return None


def _evaluated(expression: pl.Expr) -> Typed | None:
    values = pl.select(expression).to_series()
    if len(values) != 1 or isinstance(values.dtype, pl.Enum):  # an Enum has an order of its own
        return None
    found = literal_of(values.to_arrow()[0])
    return None if found is None else Typed(found, dtype_of(values.dtype))


# Tests

_Read = Callable[[_Reader, Any, Typed, Sequence[Any], Sequence[pl.Expr]], Predicate | None]


def _key(function: Any) -> str:
    """Returns the name of a function, whatever it is set to."""
    match function:
        case {"Boolean": str(name)} | {"StringExpr": str(name)}:
            return name
        case {"Boolean": Mapping() as named} | {"StringExpr": Mapping() as named}:
            return str(next(iter(named)))
        case _:
            return ""


def _each(test: Callable[[Ref], Predicate]) -> _Read:
    return lambda _reader, _function, side, _inputs, _parts: over(side.value, test)  # type: ignore[arg-type]


def _of_float(test: Callable[[Ref], Predicate]) -> _Read:
    def read(_r: Any, _f: Any, side: Typed, _i: Any, _p: Any) -> Predicate | None:
        known = isinstance(side.value, Ref) or (side.type is not None and is_float(side.type))
        return over(side.value, test) if known else None  # type: ignore[arg-type]

    return read


def _is_nan(ref: Ref) -> Predicate:
    # NULL for NULL, where SQL's isnan is FALSE
    return Or((IsNan(ref), unless_null(ref, value=False)))


def _between(
    reader: _Reader, function: Any, side: Typed, inputs: Sequence[Any], parts: Sequence[pl.Expr]
) -> Predicate | None:
    ops = _CLOSED.get(function["Boolean"]["IsBetween"]["closed"])
    if ops is None:
        return None
    ends = [reader._value(tree, part) for tree, part in zip(inputs, parts, strict=True)]  # noqa: SLF001
    found = [reader._compare(op, side, end) for op, end in zip(ops, ends, strict=True)]  # noqa: SLF001
    return None if None in found else And(tuple(found))  # type: ignore[arg-type]


def _is_in(
    reader: _Reader, function: Any, side: Typed, inputs: Sequence[Any], parts: Sequence[pl.Expr]
) -> Predicate | None:
    del reader
    if "Literal" not in inputs[0]:
        return None
    column = pl.select(parts[0]).to_series()
    listed = column.explode() if isinstance(column.dtype, pl.List | pl.Array) else column
    if isinstance(column.dtype, pl.List) and column.list.len().to_list() == [0]:
        listed = listed.clear()  # an empty list explodes to one NULL
    if isinstance(side.value, Call) and dtype_of(listed.dtype) != side.type:
        return None
    values = [literal_of(scalar) for scalar in listed.to_arrow()]
    known = tuple(value for value in values if value is not None and value.value is not None)
    if any(value is None for value in values):
        return None
    if function["Boolean"]["IsIn"]["nulls_equal"]:
        has_null = len(known) < len(values)

        def test(ref: Ref) -> Predicate:
            found = IsTrue(IsIn(ref, known))
            return Or((IsNull(ref), found)) if has_null else found

        return over(side.value, test)  # type: ignore[arg-type]
    # a NULL in the list matches nothing, and makes nothing unknown
    never = lambda ref: unless_null(ref, value=False)  # noqa: E731
    return over(side.value, (lambda ref: IsIn(ref, known)) if known else never)  # type: ignore[arg-type]


def _text(inputs: Sequence[Any]) -> str | None:
    match list(inputs):
        case [{"Literal": {"Scalar": {"String": str(text)}}}]:
            return text
        case _:
            return None


def _like(pattern: Callable[[str], str]) -> _Read:
    def read(_r: Any, _f: Any, side: Typed, inputs: Sequence[Any], _p: Any) -> Predicate | None:
        text = _text(inputs)
        if text is None:
            return None
        found = like(RESULT, pattern(escape_like(text)))
        assert found is not None
        test = lambda ref: StartsWith(ref, found.prefix, found.exact, found.pattern)  # noqa: E731
        return over(side.value, test)  # type: ignore[arg-type]

    return read


def _contains(
    reader: _Reader, function: Any, side: Typed, inputs: Sequence[Any], parts: Sequence[pl.Expr]
) -> Predicate | None:
    text = _text(inputs)
    if function["StringExpr"]["Contains"]["literal"]:
        return _like(lambda found: f"%{found}%")(reader, function, side, inputs, parts)
    pattern = None if text is None else matches(RESULT, text)
    if pattern is None:
        return None
    # what matches begins so; which of these match, only Polars knows
    begins = over(side.value, lambda ref: StartsWith(ref, pattern.prefix, exact=False))  # type: ignore[arg-type]
    return And((begins, Opaque(f"a match of {text!r}", tuple(refs_of(side.value)), _WHY)))


_INFINITIES: Final = (Literal(float("inf")), Literal(float("-inf")))
_TESTS: Final[Mapping[str, _Read]] = {
    "IsNull": _each(IsNull),
    "IsNotNull": _each(lambda ref: Not(IsNull(ref))),
    "IsNan": _of_float(_is_nan),
    "IsNotNan": _of_float(lambda ref: Not(_is_nan(ref))),
    "IsInfinite": _of_float(lambda ref: IsIn(ref, _INFINITIES)),
    "IsFinite": _of_float(lambda ref: Not(IsIn(ref, (*_INFINITIES, Literal(float("nan")))))),
    "IsBetween": _between,
    "IsIn": _is_in,
    "StartsWith": _like(lambda text: f"{text}%"),
    "EndsWith": _like(lambda text: f"%{text}"),
    "Contains": _contains,
}


def _opaque(expression: pl.Expr) -> Opaque:
    found = _unknown(expression)
    return Opaque(found.text, found.columns, found.why)


def _unknown(expression: pl.Expr) -> Unknown:
    columns = tuple((name,) for name in dict.fromkeys(expression.meta.root_names()))
    return Unknown(str(expression), columns, _WHY)
