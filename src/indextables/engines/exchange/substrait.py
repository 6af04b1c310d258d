"""Substrait's extended expressions as conditions.

PyArrow reads and checks the message and tells the schema it is about; its expression then has lost
the names of columns, so the tree itself is read here from the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.types import PrimitiveType
from indextables.engines.exchange.protobuf import Message, double, message, signed
from indextables.errors import PredicateError

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "equal": "=",
    "not_equal": "<>",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "is_not_distinct_from": "<=>",
}
_MICROS: Final = {0: 1_000_000, 3: 1000, 6: 1}


def from_substrait(data: bytes) -> dict[str, Predicate]:
    """Returns the conditions of an ExtendedExpression, by their names.

    What statistics cannot answer is Opaque.
    """
    import pyarrow.substrait as arrow_substrait  # noqa: PLC0415 - few need it, and PyArrow may lack it

    try:
        bound = arrow_substrait.deserialize_expressions(data)
        whole = message(bytes(data))
        reader = _Reader(bound.schema, _functions(whole))
        found = [message(_bytes(each)) for each in whole.get(3, [])]
        return {_bytes(e[3][0]).decode(): reader.condition(message(_bytes(e[1][0]))) for e in found}
    except (pa.ArrowException, ValueError, KeyError, IndexError) as error:
        raise PredicateError(
            f"it is no extended expression of Substrait: {error}",
            hint="pass the bytes of an ExtendedExpression, as pyarrow.substrait.serialize_expressions makes them",
        ) from error


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number where a message belongs")
    return value


def _functions(whole: Message) -> dict[int, str]:
    """Returns names of functions by the number the expressions use."""
    found: dict[int, str] = {}
    for extension in whole.get(2, []):
        for declared in message(_bytes(extension)).get(3, []):
            function = message(_bytes(declared))
            number = function.get(2, [0])[0]
            assert isinstance(number, int)
            found[number] = _bytes(function[3][0]).decode().partition(":")[0]
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    schema: Any
    functions: Mapping[int, str]

    def condition(self, tree: Message) -> Predicate:
        match self._operand(tree):
            case Ref() as ref:
                return BoolRef(ref)
            case Literal(None | True | False as value):
                return Constant(value)
        if 3 in tree:
            return self._function(message(_bytes(tree[3][0])))
        if 8 in tree:
            return self._one_of(message(_bytes(tree[8][0])))
        return Opaque("a Substrait expression", (), "its form is not known")

    def _function(self, call: Message) -> Predicate:
        number = call.get(1, [0])[0]
        assert isinstance(number, int)
        name = self.functions.get(number, "")
        arguments = [message(_bytes(each)) for each in call.get(4, [])]
        parts = [message(_bytes(each[3][0])) for each in arguments if 3 in each]
        match name, parts:
            case "and", _:
                return And(tuple(map(self.condition, parts)))
            case "or", _:
                return Or(tuple(map(self.condition, parts)))
            case "not", [part]:
                return Not(self.condition(part))
            case "is_null" | "is_not_null" | "is_nan", [part] if isinstance(
                ref := self._operand(part), Ref
            ):
                tests: dict[str, Predicate] = {"is_null": IsNull(ref), "is_nan": IsNan(ref)}
                return tests.get(name, Not(IsNull(ref)))
            case _, [left, right] if name in _COMPARISONS:
                one, two = self._operand(left), self._operand(right)
                if one is not None and two is not None and Ref in {type(one), type(two)}:
                    return Compare(_COMPARISONS[name], one, two)
        return Opaque(f"{name}(…)", (), "only an engine can evaluate it")

    def _one_of(self, tree: Message) -> Predicate:
        ref = self._operand(message(_bytes(tree[1][0])))
        values = [self._operand(message(_bytes(each))) for each in tree.get(2, [])]
        literals = tuple(value for value in values if isinstance(value, Literal))
        if not isinstance(ref, Ref) or len(literals) < len(values):
            return Opaque("a list", (), "not all of it are values")
        return IsIn(ref, literals)

    def _operand(self, tree: Message) -> Ref | Literal | None:
        if 1 in tree:
            return _literal(message(_bytes(tree[1][0])))
        if 2 in tree:
            selected = message(_bytes(tree[2][0]))
            return self._reference(message(_bytes(selected[1][0]))) if 1 in selected else None
        return None

    def _reference(self, segment: Message) -> Ref | None:
        path, fields = [], list(self.schema)
        while True:
            if 2 not in segment:
                return None
            place = message(_bytes(segment[2][0]))
            index = place.get(1, [0])[0]
            assert isinstance(index, int)
            field = fields[index]
            path.append(field.name)
            if 2 not in place:
                return Ref(tuple(path))
            segment, fields = message(_bytes(place[2][0])), list(field.type)


def _literal(tree: Message) -> Literal | None:
    for number, values in tree.items():
        value = values[-1]
        match number, value:
            case 1, int():
                return Literal(bool(value))
            case 2 | 3 | 5 | 7, int():
                return Literal(signed(value))
            case 10 | 11, bytes():
                return Literal(double(value))
            case 12, bytes():
                return Literal(value.decode())
            case 13, bytes():
                return Literal(value)
            case 14 | 27, int():
                return Literal(
                    signed(value), PrimitiveType("timestamp_ntz" if number == 14 else "timestamp")
                )
            case 16, int():
                return Literal(signed(value), PrimitiveType("date"))
            case 24, bytes():
                return _decimal(message(value))
            case 29, bytes():
                return Literal(None)
            case 34 | 35, bytes():
                return _precise(message(value), "timestamp_ntz" if number == 34 else "timestamp")
    return None


def _decimal(tree: Message) -> Literal:
    unscaled = int.from_bytes(_bytes(tree[1][0]), "little", signed=True)
    scale = tree.get(3, [0])[0]
    assert isinstance(scale, int)
    return Literal(Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)))


def _precise(tree: Message, name: Any) -> Literal | None:
    precision, count = tree.get(1, [0])[0], tree.get(2, [0])[0]
    assert isinstance(precision, int)
    assert isinstance(count, int)
    unit = _MICROS.get(precision)
    return None if unit is None else Literal(signed(count) * unit, PrimitiveType(name))
