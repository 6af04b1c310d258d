"""Values of functions in a condition: their types, as Spark's SQL finds them, and choices as formulas.

What comes out is a condition on values that are computed in one way: coalesce, CASE, IF and their like are
gone, since a function that chooses is an AND and an OR over what it chooses from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa

from indextables.core.bind.coerce import digits_of, kind_of
from indextables.core.expr.datetimes import DAY
from indextables.core.expr.evaluate import rows_of
from indextables.core.expr.functions import FUNCTIONS, VARYING
from indextables.core.expr.functions.number_types import as_decimal, common_number
from indextables.core.expr.nodes import (
    Call,
    Condition,
    Expression,
    Literal,
    Mode,
    Ref,
    Unknown,
    refs_of,
)
from indextables.core.expr.vectors import column_of
from indextables.core.expr.zones import Zone
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    Constant,
    IsNull,
    IsTrue,
    Not,
    Opaque,
    Or,
    Predicate,
    over,
)
from indextables.core.predicate.tree import fold
from indextables.core.stats.values import to_physical
from indextables.core.types import DataType, DecimalType, PrimitiveType, type_to_arrow

_MOST_BRANCHES: Final = 64
_BOOLEAN: Final = PrimitiveType("boolean")
_TIMES: Final = ("date", "timestamp_ntz", "timestamp")


@dataclass(frozen=True, slots=True)
class If:
    """The first value where the test is TRUE, else the second."""

    test: Predicate
    then: Value
    otherwise: Value


Value: TypeAlias = Ref | Literal | Call | Unknown | If


@dataclass(frozen=True, slots=True)
class Values:
    """Binds values: `find` resolves a column, `condition` binds a condition inside a function."""

    find: Callable[[Ref], Ref | Unknown]
    condition: Callable[[Predicate], Predicate]
    zone: Zone

    def bind(self, expression: Expression) -> Value:
        """Returns the value with its types; Unknown where a function or its types are not known."""
        match expression:
            case Ref():
                return self.find(expression)
            case Literal():
                return typed(expression)
            case Unknown():
                return expression
            case Call(function) if function in _CHOICES:
                return self._choice(expression)
            case Call(arguments=arguments):
                return lifted(
                    lambda parts: self._call(expression, parts), [self.bind(a) for a in arguments]
                )
            case _:
                return self._truth(expression)

    def _truth(self, condition: Condition) -> Value:
        """Returns a condition as a value: TRUE, FALSE or NULL."""
        bound = self.condition(condition)  # type: ignore[arg-type]
        if isinstance(bound, BoolRef):
            return Ref(bound.ref.path, _BOOLEAN)
        if fold(bound, lambda node, inner: isinstance(node, Opaque) or any(inner)):
            return Unknown("a condition", (), "a part of it is not understood")
        yes, no, null = (Literal(value, _BOOLEAN) for value in (True, False, None))
        return If(bound, yes, If(Not(bound), no, null))

    def _choice(self, call: Call) -> Value:
        arguments = call.arguments
        if call.function in {"if", "case"}:
            tests = [
                self.condition(_as_condition(test)) for test in arguments[: len(arguments) // 2 * 2 : 2]
            ]
            values = [self.bind(value) for value in arguments[1::2]]
            last = self.bind(arguments[-1]) if len(arguments) % 2 else Literal(None)
            found = self._alike([*values, last])
            if isinstance(found, Unknown):
                return found
            *values, last = found
            pairs = list(zip(tests, values, strict=True))
            return reduce(lambda rest, pair: If(pair[0], pair[1], rest), reversed(pairs), last)
        return self._of_values(call.function, [self.bind(value) for value in arguments])

    def _of_values(self, function: str, values: list[Value]) -> Value:
        found = self._alike(values)
        if isinstance(found, Unknown):
            return found
        if function == "coalesce":
            return reduce(
                lambda rest, value: If(Not(is_null(value)), value, rest), found[-2::-1], found[-1]
            )
        if function == "nullif":
            one, two = found
            null = Literal(None, type_of(one))
            # the first argument keeps its own type
            return If(self._compared("=", one, two), null, values[0])
        op = ">=" if function == "greatest" else "<="
        return reduce(lambda one, two: self._extreme(op, one, two), found[1:], found[0])

    def _extreme(self, op: Any, one: Value, two: Value) -> Value:
        wins = self._compared(op, one, two)
        return If(is_null(one), two, If(is_null(two), one, If(wins, one, two)))

    def _compared(self, op: Any, one: Value, two: Value) -> Predicate:
        def compare(parts: Sequence[Any]) -> Predicate:
            left, right = parts
            if isinstance(left, Unknown) or isinstance(right, Unknown):
                return Opaque("a comparison", (), "of a value that is not known")
            if isinstance(left, Literal) and isinstance(right, Literal):
                return compare_constants(op, left, right)
            return self.condition(Compare(op, left, right))

        return on_values(compare, [one, two])

    def _alike(self, values: Sequence[Value]) -> list[Value] | Unknown:
        """Returns the values in their common type."""
        unknown = next((found for value in values if (found := _unknown_in(value))), None)
        if unknown is not None:
            return unknown
        types = {kind for value in values if (kind := type_of(value)) is not None}
        common = common_type(list(types)) if types else None
        if common is None:
            return Unknown("a choice", (), "its values have no common type that we know")
        return [self.cast(value, common) for value in values]

    def cast(self, value: Value, to: DataType) -> Value:
        """Returns the value as another type, as Spark casts it on its own."""
        if type_of(value) == to:
            return value
        if isinstance(value, Literal) and value.value is None:
            return Literal(None, to)
        node = Call("cast", (), to, Mode.ANSI, self.zone)
        return lifted(lambda parts: self._call(node, parts), [value])

    def _call(self, call: Call, parts: Sequence[Any]) -> Value:
        """Returns the function of values without choices in them."""
        if call.function == "interval":
            return self._moved(parts)
        if call.type is None and (moved := _DATE_ARITHMETIC.get(_shape(call, parts))):
            call = replace(call, function=moved)
        unknown = next((part for part in parts if isinstance(part, Unknown)), None)
        if unknown is not None:
            return Unknown(f"{call.function}({unknown.text})", unknown.columns, unknown.why)
        columns = tuple(dict.fromkeys(path for part in parts for path in refs_of(part)))
        function = FUNCTIONS.get(call.function)
        if function is None:
            return Unknown(f"{call.function}(…)", columns, "the function is not known")
        types = [type_of(part) for part in parts]
        signature = None
        if all(kind is not None for kind in types):
            known = call.type
            if known is None and function.result is not None:
                known = function.result(types, [_value_of(part) for part in parts])  # type: ignore[arg-type]
            signature = function.signature(types, known)  # type: ignore[arg-type]
        elif any(isinstance(part, Literal) and part.value is None for part in parts):
            return Literal(None, call.type)
        is_typed = call.type is not None and call.function != "cast"
        if signature is None or (
            is_typed and (signature[1] != call.type or list(signature[0]) != types)
        ):
            return Unknown(f"{call.function}(…)", columns, "not of these types")
        wanted, result = signature
        cast = [self.cast(part, kind) for part, kind in zip(parts, wanted, strict=True)]
        if any(isinstance(part, Unknown | If) for part in cast):
            return Unknown(f"{call.function}(…)", columns, "a cast of its arguments is not known")
        if any(isinstance(part, Literal) and part.value is None for part in cast):
            return Literal(None, result)
        bound = Call(call.function, tuple(cast), result, call.mode, call.zone or self.zone)  # type: ignore[arg-type]
        return bound if columns else constant_of(bound)

    def _moved(self, parts: Sequence[Any]) -> Value:
        """Returns a date or time moved by an interval: whole days and months of a date make a date."""
        value, months, micros, whole_days = parts
        kind = type_of(value)
        if kind == PrimitiveType("date") and months.value:
            return self._call(Call("add_months", ()), [value, months])
        if kind == PrimitiveType("date") and whole_days.value:
            return self._call(Call("date_add", ()), [value, typed(Literal(micros.value // DAY))])
        if months.value:
            number = Literal(months.value, PrimitiveType("integer"))
            return self._call(Call("add_months_to_time", ()), [value, number])
        if kind == PrimitiveType("date"):
            value = self.cast(value, PrimitiveType("timestamp"))
        return self._call(Call("add_micros", ()), [value, Literal(micros.value, PrimitiveType("long"))])


def _value_of(part: Value) -> Any:
    return part.value if isinstance(part, Literal) else VARYING


def _shape(call: Call, parts: Sequence[Any]) -> tuple[str, str]:
    kinds = [type_of(part) for part in parts]
    first = kinds[0].name if kinds and isinstance(kinds[0], PrimitiveType) else ""
    return call.function, first


_DATE_ARITHMETIC: Final = {("+", "date"): "date_add", ("-", "date"): "date_sub"}
_CHOICES: Final = frozenset({"if", "case", "coalesce", "nullif", "greatest", "least"})


def _as_condition(test: Expression) -> Predicate:
    match test:
        case Condition():
            return test  # type: ignore[return-value]
        case Ref() | Call() | Unknown():
            return over(test, BoolRef)
        case Literal(None | bool() as value):
            return Constant(value)
        case _:
            return Opaque("a condition", (), "it is none")


def lifted(call: Callable[[Sequence[Any]], Value], parts: Sequence[Value]) -> Value:
    """Returns a function of values, choices moved out of it: f(IF(p, a, b)) is IF(p, f(a), f(b))."""
    if sum(map(branches, parts)) - len(parts) > _MOST_BRANCHES:
        return Unknown("a choice", (), "it has too many branches")
    at = next((i for i, part in enumerate(parts) if isinstance(part, If)), None)
    if at is None:
        return call(parts)
    chosen = parts[at]
    assert isinstance(chosen, If)
    one, two = ([*parts[:at], side, *parts[at + 1 :]] for side in (chosen.then, chosen.otherwise))
    return If(chosen.test, lifted(call, one), lifted(call, two))


def branches(value: Value) -> int:
    """Returns of how many values this is a choice."""
    return branches(value.then) + branches(value.otherwise) if isinstance(value, If) else 1


def on_values(condition: Callable[[Sequence[Any]], Predicate], parts: Sequence[Value]) -> Predicate:
    """Returns a condition on values, choices in them as AND and OR: exact, because IS TRUE is never NULL."""
    if sum(map(branches, parts)) - len(parts) > _MOST_BRANCHES:
        return Opaque("a choice", (), "it has too many branches")
    at = next((i for i, part in enumerate(parts) if isinstance(part, If)), None)
    if at is None:
        return condition(parts)
    chosen = parts[at]
    assert isinstance(chosen, If)
    one, two = ([*parts[:at], side, *parts[at + 1 :]] for side in (chosen.then, chosen.otherwise))
    then, otherwise, test = on_values(condition, one), on_values(condition, two), IsTrue(chosen.test)
    return Or((And((test, then)), And((Not(test), otherwise))))


def is_null(value: Value) -> Predicate:
    """Returns whether a bound value is NULL."""

    def leaf(parts: Sequence[Any]) -> Predicate:
        (part,) = parts
        if isinstance(part, Literal):
            return Constant(part.value is None)
        return over(part, IsNull)

    return on_values(leaf, [value])


def _unknown_in(value: Value) -> Unknown | None:
    if isinstance(value, If):
        return _unknown_in(value.then) or _unknown_in(value.otherwise)
    return value if isinstance(value, Unknown) else None


def type_of(value: Value) -> DataType | None:
    """Returns the type of a bound value; None for NULL without one."""
    match value:
        case If(_, then, otherwise):
            return type_of(then) or type_of(otherwise)
        case Ref(type=found) | Literal(type=found) | Call(type=found):
            return found
        case _:
            return None


def common_type(types: Sequence[DataType]) -> DataType | None:
    """Returns the type Spark compares and chooses among values of these types in; None where we do not know."""
    if len(set(types)) == 1:
        return types[0]
    names = [kind.name for kind in types if isinstance(kind, PrimitiveType)]
    if len(names) == len(types) and all(name in _TIMES for name in names):
        return PrimitiveType(max(names, key=_TIMES.index))
    if (number := common_number(types)) is not None:
        return number
    decimals = [as_decimal(kind) for kind in types]
    if any(kind is None for kind in decimals):
        return None
    scale = max(kind.scale for kind in decimals if kind)
    whole = max(kind.precision - kind.scale for kind in decimals if kind)
    return DecimalType(whole + scale, scale) if whole + scale <= 38 else None


def typed(literal: Literal) -> Literal:
    """Returns a constant with its type, and its physical value."""
    dtype = literal.type or _literal_type(literal)
    if dtype is None or literal.value is None:
        return Literal(literal.value, dtype)
    if isinstance(literal.value, int) and not isinstance(literal.value, bool):
        if isinstance(dtype, DecimalType):
            return Literal(Decimal(literal.value), dtype)
        return (
            Literal(float(literal.value), dtype) if dtype in _FLOATS else Literal(literal.value, dtype)
        )
    return Literal(to_physical(literal.value, dtype), dtype)


_FLOATS: Final = (PrimitiveType("float"), PrimitiveType("double"))


def _literal_type(literal: Literal) -> DataType | None:
    match kind_of(literal), literal.value:
        case "integer", int() as value:
            return PrimitiveType("integer" if -(2**31) <= value < 2**31 else "long")
        case "decimal", Decimal() as value if value.is_finite():
            whole, scale = digits_of(value)
            return DecimalType(max(whole + scale, 1), scale) if whole + scale <= 38 else None
        case (
            "double" | "string" | "binary" | "boolean" | "date" | "timestamp" | "timestamp_ntz"
        ) as name, _:
            return PrimitiveType(name)
        case _:
            return None


def constant_of(call: Call) -> Literal | Unknown:
    """Returns the value of a function of constants; Unknown where it has none."""
    unknown = Unknown(f"{call.function}(…)", (), "of constants it has no result we know")
    for at, part in enumerate(call.arguments):
        assert isinstance(part, Literal)
        assert part.type is not None
        array = _array_of_one(part)
        column = Ref(("",), part.type)
        arguments = (*call.arguments[:at], column, *call.arguments[at + 1 :])
        varied = Call(call.function, arguments, call.type, call.mode, call.zone)
        vector = rows_of(varied, lambda _, array=array: array, 1)  # type: ignore[misc]
        if vector is not None:
            if vector.error[0]:
                return unknown
            if vector.null[0]:
                return Literal(None, call.type)
            return _constant(vector, call.type)
    return unknown


def _constant(vector: Any, dtype: DataType | None) -> Literal:
    assert dtype is not None
    if isinstance(dtype, PrimitiveType) and dtype.name in {*_TIMES, "byte", "short", "integer", "long"}:
        return Literal(int(vector.values[0]), dtype)
    return Literal(to_physical(column_of(vector)[0].as_py(), dtype), dtype)


def _array_of_one(literal: Literal) -> Any:
    assert literal.type is not None
    target = type_to_arrow(literal.type)
    if isinstance(literal.type, PrimitiveType) and literal.type.name == "date":
        return pa.array([literal.value], pa.int32()).cast(target)
    return pa.array([literal.value], target)


def compare_constants(op: str, left: Literal, right: Literal) -> Predicate:
    """Returns what comparing two constants of one type gives."""
    if left.value is None or right.value is None:
        return Constant(left.value is right.value) if op == "<=>" else Constant(None)
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b,
        "<=>": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    if left.type != right.type:
        return Opaque("a comparison", (), "of two constants")
    one, two = ((is_nan_value(side), 0 if is_nan_value(side) else side.value) for side in (left, right))
    return Constant(bool(tests[op](one, two)))


def is_nan_value(literal: Literal) -> bool:
    """Returns whether a constant is NaN, which is equal to itself and above every number."""
    return isinstance(literal.value, float) and math.isnan(literal.value)
