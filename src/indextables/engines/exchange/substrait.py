"""Substrait's extended expressions as conditions.

PyArrow reads and checks the message and tells the schema it is about; its expression then has lost
the names of columns, so the tree itself is read here from the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from indextables.core.bind.bound import unless_null
from indextables.core.expr.nodes import Condition, Expression, call, refs_of
from indextables.core.predicate.nodes import (
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
    Unknown,
    over,
)
from indextables.core.predicate.tree import columns_of
from indextables.core.types import DataType, FieldPath, PrimitiveType, is_float
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
_SAME: Final = "is_not_distinct_from"
_TRUTHS: Final = frozenset({"is_true", "is_false", "is_not_true", "is_not_false"})
_MICROS: Final = {0: 1_000_000, 3: 1000, 6: 1}


def from_substrait(data: bytes) -> dict[str, Predicate]:
    """Returns the conditions of an ExtendedExpression, by their names.

    What statistics cannot answer is Opaque.
    """
    import pyarrow.substrait as arrow_substrait  # noqa: PLC0415 - few need it, and PyArrow may lack it

    try:
        bound = arrow_substrait.deserialize_expressions(data)
        whole = message(bytes(data))
        columns = [Typed(Ref((name,)), None) for name in bound.schema.names]
        reader = Reader(columns, functions_of(whole), bound.schema)
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


def functions_of(whole: Message) -> dict[int, str]:
    """Returns names of functions by the number the expressions use."""
    found: dict[int, str] = {}
    for extension in whole.get(2, []):
        for declared in message(_bytes(extension)).get(3, []):
            function = message(_bytes(declared))
            number = function.get(2, [0])[0]
            assert isinstance(number, int)
            found[number] = _bytes(function[3][0]).decode().partition(":")[0]
    return found


class Typed(NamedTuple):
    """A value, and the type of its result where it is known."""

    value: Expression
    type: DataType | None


Read: TypeAlias = Callable[[str, Sequence[Typed]], Typed | Predicate | None]
"""What a producer's function of values means: a value, a condition, or nothing that is known."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions over columns; a producer's own functions by `read`, its casts by `cast`."""

    columns: Sequence[Typed]
    functions: Mapping[int, str]
    fields: Any = None
    """The Arrow schema of the columns, by which fields of structs are found."""
    read: Read = lambda _name, _parts: None
    cast: Callable[[Typed, Message, int], Typed | None] = lambda _part, _type, _failure: None

    def condition(self, tree: Message) -> Predicate:
        """Returns a boolean expression as a condition; Opaque where nothing is known of it."""
        if 3 in tree:
            found = self._function(message(_bytes(tree[3][0])))
            if isinstance(found, Condition):
                return found
            value = found.value
        elif 8 in tree:
            return self._one_of(message(_bytes(tree[8][0])))
        else:
            value = self.value(tree).value
        match value:
            case Ref() | Call():
                return over(value, BoolRef)
            case Literal(None | True | False as truth):
                return Constant(truth)
            case Condition():
                return value  # type: ignore[return-value]
            case Unknown(text, columns, why):
                return Opaque(text, columns, why)
            case _:
                return Opaque("a Substrait expression", (), "its form is not known")

    def _function(self, asked: Message) -> Typed | Predicate:
        number = asked.get(1, [0])[0]
        assert isinstance(number, int)
        name = self.functions.get(number, "")
        arguments = [message(_bytes(each)) for each in asked.get(4, [])]
        parts = [message(_bytes(each[3][0])) for each in arguments if 3 in each]
        if name in {"and", "or", "not"}:
            inner = tuple(map(self.condition, parts))
            return And(inner) if name == "and" else Or(inner) if name == "or" else Not(inner[0])
        if name in _TRUTHS and len(parts) == 1:
            test = self.condition(parts[0])
            found_truth = IsTrue(test if name.endswith("true") else Not(test))
            return Not(found_truth) if "_not_" in name else found_truth
        values = [self.value(part) for part in parts]
        found: Typed | Predicate | None = self._test(name, values)
        if found is None and not any(isinstance(part.value, Unknown | Condition) for part in values):
            found = self.read(name, values)
        if found is not None:
            return found
        columns = tuple(dict.fromkeys(path for part in values for path in _paths(part.value)))
        return Typed(Unknown(f"{name}(…)", columns, "only an engine can evaluate it"), None)

    def _test(self, name: str, values: Sequence[Typed]) -> Predicate | None:
        match name, [part.value for part in values]:
            case "is_null", [Ref() | Call() as value]:
                return over(value, IsNull)
            case "is_not_null", [Ref() | Call() as value]:
                return Not(over(value, IsNull))
            case "is_nan", [Ref() | Call() as value]:
                # NULL for NULL, where SQL's isnan is FALSE
                return over(value, lambda ref: Or((IsNan(ref), unless_null(ref, value=False))))
            case _, [Condition() as test, Literal(bool() as truth)] if name in {"equal", _SAME}:
                side: Predicate = test if truth else Not(test)  # type: ignore[assignment,arg-type]
                return side if name == "equal" else IsTrue(side)
            case "is_distinct_from", [left, right]:
                found = self._compare("<=>", left, right, values)
                return None if found is None else Not(found)
            case _, [left, right] if name in _COMPARISONS:
                return self._compare(_COMPARISONS[name], left, right, values)
            case _:
                return None

    def _compare(
        self, op: CompareOp, left: Any, right: Any, values: Sequence[Typed]
    ) -> Predicate | None:
        floats = any(part.type is not None and is_float(part.type) for part in values)
        # DataFusion takes the two zeros for different numbers
        if floats and not _is_beside_zero(left, right):
            return None
        if isinstance(left, Ref | Literal) and isinstance(right, Ref | Literal):
            return Compare(op, left, right) if Ref in {type(left), type(right)} else None
        alike = values[0].type is not None and values[0].type == values[1].type
        known = all(isinstance(side, Ref | Call | Literal) for side in (left, right))
        return Compare(op, left, right) if alike and known else None

    def _one_of(self, tree: Message) -> Predicate:
        side = self.value(message(_bytes(tree[1][0])))
        values = [self.value(message(_bytes(each))) for each in tree.get(2, [])]
        literals = tuple(part.value for part in values if isinstance(part.value, Literal))
        alike = isinstance(side.value, Ref) or all(part.type == side.type for part in values)
        if not isinstance(side.value, Ref | Call) or len(literals) < len(values) or not alike:
            return Opaque("a list", (), "not all of it are values")
        if side.type is not None and is_float(side.type) and not all(part.value for part in literals):
            return Opaque("a list", tuple(refs_of(side.value)), "of the two zeros")
        return over(side.value, lambda ref: IsIn(ref, literals))

    def value(self, tree: Message) -> Typed:
        """Returns an expression as a value."""
        found: Typed | None = None
        if 1 in tree:
            found = _typed_literal(message(_bytes(tree[1][0])))
        elif 2 in tree:
            selected = message(_bytes(tree[2][0]))
            found = self._reference(message(_bytes(selected[1][0]))) if 1 in selected else None
        elif 3 in tree:
            result = self._function(message(_bytes(tree[3][0])))
            found = Typed(result, _BOOLEAN) if isinstance(result, Condition) else result
        elif 6 in tree:
            found = self._choice(message(_bytes(tree[6][0])))
        elif 11 in tree:
            cast = message(_bytes(tree[11][0]))
            failure = cast.get(3, [0])[0]
            assert isinstance(failure, int)
            part = self.value(message(_bytes(cast[2][0])))
            if not isinstance(part.value, Unknown | Condition):
                found = self.cast(part, message(_bytes(cast[1][0])), failure)
        return found or Typed(Unknown("a Substrait expression", (), "its form is not known"), None)

    def _choice(self, tree: Message) -> Typed | None:
        parts: list[Expression] = []
        kinds: list[DataType | None] = []
        for each in tree.get(1, []):
            clause = message(_bytes(each))
            then = self.value(message(_bytes(clause[2][0])))
            parts += [self.condition(message(_bytes(clause[1][0]))), then.value]
            kinds.append(then.type)
        last = self.value(message(_bytes(tree[2][0]))) if 2 in tree else Typed(Literal(None), None)
        parts.append(last.value)
        kinds += [last.type] if 2 in tree else []
        if None in kinds or len(set(kinds)) > 1 or any(isinstance(part, Unknown) for part in parts):
            return None
        return Typed(call("case", *parts), kinds[0])

    def _reference(self, segment: Message) -> Typed | None:
        place = message(_bytes(segment[2][0])) if 2 in segment else None
        if place is None:
            return None
        index = place.get(1, [0])[0]
        assert isinstance(index, int)
        found = self.columns[index]
        fields = None if self.fields is None else self.fields[index].type
        while 2 in place:
            segment = message(_bytes(place[2][0]))
            if 2 not in segment or not isinstance(found.value, Ref) or fields is None:
                return None
            place = message(_bytes(segment[2][0]))
            index = place.get(1, [0])[0]
            assert isinstance(index, int)
            inner = fields.field(index)
            found, fields = Typed(Ref((*found.value.path, inner.name)), None), inner.type
        return found


def _paths(value: Expression) -> Sequence[FieldPath]:
    return columns_of(value) if isinstance(value, Condition) else tuple(refs_of(value))  # type: ignore[arg-type]


def _is_beside_zero(left: Any, right: Any) -> bool:
    """Returns whether one side is a constant, and not zero."""
    constants = [side.value for side in (left, right) if isinstance(side, Literal)]
    return len(constants) == 1 and bool(constants[0])


_BOOLEAN: Final = PrimitiveType("boolean")
_LITERAL_TYPES: Final = {
    1: "boolean",
    2: "byte",
    3: "short",
    5: "integer",
    7: "long",
    10: "float",
    11: "double",
    12: "string",
    13: "binary",
    16: "date",
}


def _typed_literal(tree: Message) -> Typed | None:
    literal = _literal(tree)
    if literal is None:
        return None
    name = next((_LITERAL_TYPES[number] for number in tree if number in _LITERAL_TYPES), None)
    return Typed(literal, literal.type if name is None else PrimitiveType(name))  # type: ignore[arg-type]


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
