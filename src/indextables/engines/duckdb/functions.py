"""DuckDB's bound expressions as ours, node to node.

They come typed, as DuckDB serialises a plan: each node has the type of its result, casts are nodes of their
own, constants are folded. A name is not a meaning: what DuckDB computes otherwise than Spark is another entry
of the function table, and what is in neither is Unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from indextables.core.bind.bound import unless_null
from indextables.core.expr.nodes import Condition, Expression, Mode, call, refs_of
from indextables.core.expr.zones import UTC, Zone
from indextables.core.predicate.like import escape_like, like, unescaped_like
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
    StartsWith,
    Unknown,
    over,
)
from indextables.core.predicate.regex import matches
from indextables.core.predicate.tree import columns_of
from indextables.core.types import (
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    is_float,
    is_orderable,
)

Node: TypeAlias = Mapping[str, Any]

_WHY: Final = "only DuckDB can evaluate it"
_TYPES: Final = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INTEGER": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
_BOOLEAN, _LONG, _DOUBLE, _INT, _DATE, _NTZ, _TZ, _STRING = (
    PrimitiveType(name)
    for name in ("boolean", "long", "double", "integer", "date", "timestamp_ntz", "timestamp", "string")
)
_INTEGERS: Final = tuple(PrimitiveType(name) for name in ("byte", "short", "integer", "long"))
_TIMES: Final = (_DATE, _NTZ, _TZ)
_COMPARISONS: Final[Mapping[str, CompareOp]] = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
}
_CONDITIONS: Final = frozenset(
    {
        *("CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_NOT", "OPERATOR_IS_NULL"),
        *("OPERATOR_IS_NOT_NULL", "COMPARE_DISTINCT_FROM", "COMPARE_BETWEEN"),
        *("COMPARE_IN", "COMPARE_NOT_IN", *_COMPARISONS),
    }
)
_BYTE: Final = re.compile(r"\\x([0-9A-Fa-f]{2})")
_DAY: Final = 86_400_000_000


def type_of(described: Mapping[str, Any]) -> DataType | None:
    """Returns the type DuckDB describes; None for one that no column of a table has, or without an order."""
    if described["id"] == "DECIMAL":
        sizes = described["type_info"]
        return DecimalType(sizes["width"], sizes.get("scale", 0))
    name = _TYPES.get(described["id"])
    return None if name is None else PrimitiveType(name)  # type: ignore[arg-type]


def literal_of(value: Mapping[str, Any]) -> Literal | None:
    """Returns a constant with its type; None for one of a type that is not known."""
    dtype = type_of(value["type"])
    if dtype is None or value["is_null"]:
        return None if dtype is None else Literal(None, dtype)
    found = value["value"]
    if isinstance(dtype, DecimalType):
        if isinstance(found, Mapping):
            found = (found.get("upper", 0) << 64) + found.get("lower", 0)
        digits = tuple(map(int, str(abs(found))))
        return Literal(Decimal((int(found < 0), digits, -dtype.scale)), dtype)
    if dtype == PrimitiveType("binary"):
        return Literal(_bytes(found), dtype)
    return Literal(found, dtype)


def _bytes(text: str) -> bytes:
    return _BYTE.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions over the columns of an operator, which are `columns`."""

    columns: Sequence[Expression]
    zone_of: Callable[[], Zone | None]

    @property
    def zone(self) -> Zone | None:
        """Returns the connection's time zone; its rules are looked up where a condition needs them."""
        return self.zone_of()

    # Conditions

    def condition(self, node: Node) -> Predicate:
        """Returns a boolean expression as a condition; Opaque where nothing is known of it."""
        kind, parts = node["type"], node.get("children", ())
        match kind:
            case "CONJUNCTION_AND":
                return And(tuple(map(self.condition, parts)))
            case "CONJUNCTION_OR":
                return Or(tuple(map(self.condition, parts)))
            case "OPERATOR_NOT":
                return Not(self.condition(parts[0]))
            case "OPERATOR_IS_NULL":
                return self._is_null(parts[0])
            case "OPERATOR_IS_NOT_NULL":
                return Not(self._is_null(parts[0]))
            case "COMPARE_DISTINCT_FROM":
                return Not(self._compare("<=>", *parts))
            case "COMPARE_BETWEEN":
                ends = node["function_data"]
                low, high = ends.get("lower_inclusive"), ends.get("upper_inclusive")
                least = self._compare(">=" if low else ">", parts[0], parts[1])
                return And((least, self._compare("<=" if high else "<", parts[0], parts[2])))
            case "COMPARE_IN" | "COMPARE_NOT_IN":
                equal = Or(tuple(self._compare("=", parts[0], other) for other in parts[1:]))
                return equal if kind == "COMPARE_IN" else Not(equal)
            case _ if kind in _COMPARISONS:
                return self._compare(_COMPARISONS[kind], *parts)
            case "BOUND_FUNCTION" if (read := _TESTS.get(_name(node))) is not None:
                found = read(self, parts)
                return self._opaque(node) if found is None else found
            case _:
                truth = as_condition(self.value(node))
                return self._opaque(node) if truth is None else truth

    def _is_row(self, row: Node, constant: Node) -> Predicate | None:
        """Returns what is known where a row equals a constant one: each of its values equals, or both are NULL."""
        described = constant["value"]["type"]["type_info"]["child_types"]
        values = constant["value"].get("value", {}).get("children", ())
        if constant["value"]["is_null"] or len(values) != len(row["children"]):
            return None
        parts = [
            {"type": "VALUE_CONSTANT", "value": {**value, "type": each["second"]}}
            for value, each in zip(values, described, strict=True)
        ]
        pairs = zip(row["children"], parts, strict=True)
        equal = tuple(self._compare("<=>", one, two) for one, two in pairs)
        return And((*equal, Opaque("rows are equal", self._columns(row), _WHY)))

    def _compare(self, op: CompareOp, left: Node, right: Node) -> Predicate:
        if op == "=" and _name(left) == "row" and right["type"] == "VALUE_CONSTANT":
            found = self._is_row(left, right)
            return self._opaque(left) if found is None else found
        one, two = self.value(left), self.value(right)
        for side, other in ((one, two), (two, one)):
            if isinstance(side, Condition) and op in {"=", "<=>"} and isinstance(other, Literal):
                return _compared_with_truth(side, op, other.value)  # type: ignore[arg-type]
        columns = tuple({*self._columns(left), *self._columns(right)})
        unknown = Opaque(f"{_text(left)} {op} {_text(right)}", columns, _WHY)
        # the two have one type, or it is no comparison that a plan has
        if _described(left) != _described(right) or isinstance(one, Condition):
            return unknown
        if isinstance(two, Condition) or (isinstance(one, Literal) and isinstance(two, Literal)):
            return unknown
        return Compare(op, _plain(one), _plain(two))  # type: ignore[arg-type]

    def _is_null(self, node: Node) -> Predicate:
        value = self.value(node)
        if isinstance(value, Ref | Call):
            return over(value, IsNull)
        return Opaque(f"{_text(node)} IS NULL", self._columns(node), _WHY)

    def _opaque(self, node: Node) -> Opaque:
        return Opaque(_text(node), self._columns(node), _WHY)

    # Values

    def value(self, node: Node) -> Expression:
        """Returns an expression as a value; a condition where it is one."""
        kind, parts = node["type"], node.get("children", ())
        match kind:
            case "BOUND_REF":
                return self.columns[node.get("index", 0)]
            case "VALUE_CONSTANT":
                return literal_of(node["value"]) or Unknown(_text(node), (), _WHY)
            case "OPERATOR_CAST":
                return self._cast(node, parts[0]) or self._unknown(node)
            case "OPERATOR_COALESCE":
                return self._known(node, "coalesce", [self.value(part) for part in parts])
            case "CASE_EXPR":
                return self._case(node)
            case "BOUND_FUNCTION" if _name(node) in {"struct_extract", "array_extract"}:
                parent = self.value(parts[0])
                if isinstance(parent, Ref) and _described(parts[0])["id"] == "STRUCT":
                    place = _constant_text(parts[1])
                    return self._unknown(node) if place is None else Ref((*parent.path, place))
                return self._unknown(node)
            case "BOUND_FUNCTION" if (read := _FUNCTIONS.get(_name(node))) is not None:
                return self._function(node, read, parts) or self._unknown(node)
            case _ if kind in _CONDITIONS or (kind == "BOUND_FUNCTION" and _name(node) in _TESTS):
                return self.condition(node)
            case _:
                return self._unknown(node)

    def _function(
        self, node: Node, read: Callable[..., Expression | None], parts: Sequence[Node]
    ) -> Expression | None:
        types = [type_of(_described(part)) for part in parts]
        values = [self.value(part) for part in parts]
        is_interval = [_described(part)["id"] == "INTERVAL" for part in parts]
        if any(kind is None and not size for kind, size in zip(types, is_interval, strict=True)):
            return None
        if any(
            isinstance(value, Unknown | Condition) and not size
            for value, size in zip(values, is_interval, strict=True)
        ):
            return None
        return read(_Site(self, parts, types, values, type_of(_described(node))))

    def _known(self, node: Node, function: str, values: Sequence[Expression]) -> Expression:
        if any(isinstance(value, Unknown) for value in values):
            return self._unknown(node)
        return call(function, *values)

    def _case(self, node: Node) -> Expression:
        parts: list[Expression] = []
        for check in node["case_checks"]:
            parts += [self.condition(check["when_expr"]), self.value(check["then_expr"])]
        parts.append(self.value(node["else_expr"]))
        return self._known(node, "case", parts)

    def _cast(self, node: Node, part: Node) -> Expression | None:
        source, target = type_of(_described(part)), type_of(_described(node))
        value = self.value(part)
        if source is None or target is None or isinstance(value, Unknown | Condition):
            return None
        mode = Mode.TRY if node["function_data"].get("try_cast") else Mode.ANSI
        if source in _TIMES or target in _TIMES:
            return self.time_cast(value, source, target)
        name = _cast_name(source, target)
        return None if name is None else call(name, value, type=target, mode=mode)

    def time_cast(self, value: Expression, source: DataType, target: DataType) -> Expression | None:
        """Returns a date or time as another one; None where it is not known how."""
        if source not in _TIMES or target not in _TIMES or target == source:
            return value if target == source else None
        zone = self.zone if _TZ in {source, target} else UTC
        # of a local time that is skipped or comes twice DuckDB makes another instant than we
        if zone is None or (target == _TZ and zone != UTC):
            return None
        return call("cast", call("in calendar", value), type=target, zone=zone)

    def _unknown(self, node: Node) -> Unknown:
        return Unknown(_text(node), self._columns(node), _WHY)

    def _columns(self, node: Node) -> tuple[FieldPath, ...]:
        """Returns the columns that an expression reads, whatever it does with them."""
        found: set[FieldPath] = set()
        todo: list[Any] = [node]
        while todo:
            match todo.pop():
                case {"type": "BOUND_REF"} as ref:
                    found.update(_paths(self.columns[ref.get("index", 0)]))
                case {"type": "VALUE_CONSTANT"}:
                    pass
                case Mapping() as inner:
                    todo.extend(inner.values())
                case list() as inner:
                    todo.extend(inner)
        return tuple(sorted(found))


def _cast_name(source: DataType, target: DataType) -> str | None:
    """Returns the entry that is DuckDB's cast between two types without a time."""
    match source, target:
        case _ if target in _INTEGERS and (is_float(source) or isinstance(source, DecimalType)):
            return "rounded cast"
        case _ if source in _INTEGERS:
            return None if target == PrimitiveType("binary") else "cast"
        case (PrimitiveType("float"), PrimitiveType("double")) | (DecimalType(), DecimalType()):
            return "cast"
        case (DecimalType(precision=digits), PrimitiveType("double")) if digits <= 15:
            return "cast"
        case (PrimitiveType("boolean"), _) if target in _INTEGERS:
            return "cast"
        case _:
            return None


def as_condition(value: Expression) -> Predicate | None:
    """Returns a boolean value as a condition; None for what is not understood."""
    match value:
        case Ref() | Call():
            return over(value, BoolRef)
        case Literal(None | bool() as truth):
            return Constant(truth)
        case Condition():
            return value  # type: ignore[return-value]
        case _:
            return None


def _compared_with_truth(condition: Predicate, op: str, truth: bool | None) -> Predicate:
    if op == "=":
        return Constant(None) if truth is None else condition if truth else Not(condition)
    if truth is None:
        return Opaque("a condition IS NULL", columns_of(condition), _WHY)
    return IsTrue(condition) if truth else IsTrue(Not(condition))


def _plain(value: Expression) -> Expression:
    """Returns a constant whose Python value says its type without that type: lists of such are bound quickly."""
    if isinstance(value, Literal) and type(value.value) in {int, str} and value.type not in _TIMES:
        return Literal(value.value)
    return value


def _paths(value: Expression) -> Sequence[FieldPath]:
    if isinstance(value, Condition):
        return columns_of(value)  # type: ignore[arg-type]
    return tuple(refs_of(value))


def _described(node: Node) -> Mapping[str, Any]:
    if node["type"] == "VALUE_CONSTANT":
        return node["value"]["type"]  # type: ignore[no-any-return]
    return node.get("return_type", {"id": "BOOLEAN"})  # type: ignore[no-any-return]


def _name(node: Node) -> str:
    path = node.get("qname", {}).get("path", ("",))
    # a function of the user's own may have any name
    return path[-1] if path[:2] == ["system", "main"] else ""


def _text(node: Node) -> str:
    match node["type"]:
        case "VALUE_CONSTANT":
            return str(node["value"].get("value"))
        case "BOUND_REF":
            return str(node.get("alias", "#"))
        case kind:
            inner = ", ".join(map(_text, node.get("children", ())))
            name = node.get("qname", {}).get("path", (kind.lower(),))[-1]
            return f"{name}({inner})"[:200]


# Tests: functions whose result is a truth.


def _begins(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    return _like(reader, parts[0], parts[1], lambda text: escape_like(text) + "%")


def _ends(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    return _like(reader, parts[0], parts[1], lambda text: "%" + escape_like(text))


def _contains(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    return _like(reader, parts[0], parts[1], lambda text: f"%{escape_like(text)}%")


def _is_like(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    return _like(reader, parts[0], parts[1], unescaped_like)


def _is_like_with_escape(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    escape = _constant_text(parts[2])
    if escape is None or len(escape) != 1:
        return None
    return _like(reader, parts[0], parts[1], lambda text: text, escape)


def _like(
    reader: Reader,
    value: Node,
    constant: Node,
    pattern: Callable[[str], str],
    escape: str = "\\",
) -> Predicate | None:
    text, side = _constant_text(constant), reader.value(value)
    if not text or not isinstance(side, Ref | Call) or type_of(_described(value)) != _STRING:
        return None
    found = like(_RESULT, pattern(text), escape)
    return None if found is None else over(side, lambda ref: _at(found, ref))


_RESULT: Final = Ref(("",))


def _at(found: StartsWith, ref: Ref) -> StartsWith:
    return StartsWith(ref, found.prefix, found.exact, found.pattern, found.regex)


def _constant_text(node: Node) -> str | None:
    if node["type"] != "VALUE_CONSTANT" or node["value"]["is_null"]:
        return None
    found = node["value"]["value"]
    return found if isinstance(found, str) and _described(node)["id"] == "VARCHAR" else None


def _is_ilike(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    """Returns what is known of ILIKE: how the text begins, in some case."""
    text, side = _constant_text(parts[1]), reader.value(parts[0])
    if text is None or not isinstance(side, Ref | Call):
        return None
    head = re.match(r"[\x00-\x24\x26-\x5e\x60-\x7f]*", text)
    assert head is not None
    lowered = call("lower in some way", side)
    begins = over(lowered, lambda ref: StartsWith(ref, head[0].lower(), exact=False))
    return And((begins, Opaque(f"ILIKE {text!r}", tuple(refs_of(side)), _WHY)))


def _matches(whole: bool) -> Callable[[Reader, Sequence[Node]], Predicate | None]:
    def read(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
        """Returns what is known of a regular expression: how what it matches begins."""
        text, side = _constant_text(parts[1]), reader.value(parts[0])
        if text is None or not isinstance(side, Ref | Call) or len(parts) > 2:
            return None
        if whole and "|" in text:
            return None
        pattern = matches(_RESULT, "^" + text.removeprefix("^") if whole else text)
        if pattern is None:
            return None
        begins = over(side, lambda ref: StartsWith(ref, pattern.prefix, exact=False))
        return And((begins, Opaque(f"a match of {text!r}", tuple(refs_of(side)), _WHY)))

    return read


def _nan_test(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    # NULL for NULL, where SQL's isnan is FALSE
    return _of_float(reader, parts, lambda ref: Or((IsNan(ref), unless_null(ref, value=False))))


def _infinity_test(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    return _of_float(reader, parts, lambda ref: IsIn(ref, _INFINITIES))


def _finite_test(reader: Reader, parts: Sequence[Node]) -> Predicate | None:
    listed = (*_INFINITIES, Literal(float("nan")))
    return _of_float(reader, parts, lambda ref: Not(IsIn(ref, listed)))


def _of_float(
    reader: Reader, parts: Sequence[Node], test: Callable[[Ref], Predicate]
) -> Predicate | None:
    value, kind = reader.value(parts[0]), type_of(_described(parts[0]))
    known = isinstance(value, Ref | Call) and kind is not None and is_float(kind)
    return over(value, test) if known else None  # type: ignore[arg-type]


_INFINITIES: Final = (Literal(float("inf")), Literal(float("-inf")))
_TESTS: Final[Mapping[str, Callable[[Reader, Sequence[Node]], Predicate | None]]] = {
    **dict.fromkeys(("prefix", "starts_with", "^@"), _begins),
    **dict.fromkeys(("suffix", "ends_with"), _ends),
    "contains": _contains,
    "~~": _is_like,
    "!~~": lambda reader, parts: _denied(_is_like(reader, parts)),
    "like_escape": _is_like_with_escape,
    "~~*": _is_ilike,
    "!~~*": lambda reader, parts: _denied(_is_ilike(reader, parts)),
    "regexp_matches": _matches(whole=False),
    "regexp_full_match": _matches(whole=True),
    "isnan": _nan_test,
    "isinf": _infinity_test,
    "isfinite": _finite_test,
}


def _denied(found: Predicate | None) -> Predicate | None:
    return None if found is None else Not(found)


# Functions of values


@dataclass(frozen=True, slots=True)
class _Site:
    """A function and what it stands over: nodes, their types and values, and the type of its result."""

    reader: Reader
    nodes: Sequence[Node]
    types: Sequence[DataType | None]
    values: Sequence[Expression]
    result: DataType | None

    def as_result(self, found: Expression, own: DataType) -> Expression:
        """Returns a value of another type than DuckDB gives as that type; every value of it fits."""
        return (
            found
            if own == self.result or self.result is None
            else call("cast", found, type=self.result)
        )

    @property
    def date(self) -> Expression | None:
        """Returns the first argument as a date."""
        value = self.values[0]
        return self.reader.time_cast(call("in calendar", value), self.types[0], _DATE)  # type: ignore[arg-type]

    @property
    def is_local(self) -> bool:
        """Returns whether the first argument is a time without a zone."""
        return self.types[0] == _NTZ


def _arithmetic(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        kinds, numbers = site.types, (*_INTEGERS, PrimitiveType("float"), _DOUBLE)
        if len(kinds) == 1:
            return call("negative", site.values[0]) if name == "-" and kinds[0] in numbers else None
        if any(kind in _TIMES or kind is None for kind in kinds):
            return _moved(site, 1 if name == "+" else -1) if name in {"+", "-"} else None
        if all(isinstance(kind, DecimalType) for kind in kinds):
            return call(name, *site.values, type=site.result)
        return call(name, *site.values) if kinds[0] == kinds[1] and kinds[0] in numbers else None

    return read


def _moved(site: _Site, sign: int) -> Expression | None:
    """Returns a date or time with days or an interval added or taken away."""
    nodes, types, values = site.nodes, list(site.types), list(site.values)
    if sign == 1 and types[0] not in _TIMES:
        nodes, types, values = nodes[::-1], types[::-1], values[::-1]
    if types == [_DATE, _DATE]:
        days = call("datediff", *(call("in calendar", value) for value in values))
        return site.as_result(days, _INT) if sign == -1 else None
    constant = nodes[1]["value"] if nodes[1]["type"] == "VALUE_CONSTANT" else None
    if types[0] not in _TIMES or constant is None or constant["is_null"]:
        return None
    size = constant["value"]
    if types == [_DATE, _INT]:
        return _days_added(values[0], sign * size)
    if types[1] is not None or not isinstance(size, Mapping):
        return None
    return _interval_added(
        site, values[0], *(sign * size.get(unit, 0) for unit in ("months", "days", "micros"))
    )


def _days_added(date: Expression, days: int) -> Expression | None:
    known = call("in calendar", date)
    return call("date_add", known, Literal(days, _INT)) if abs(days) < 1_000_000 else None


def _interval_added(
    site: _Site, value: Expression, months: int, days: int, micros: int
) -> Expression | None:
    kind = site.types[0] if site.types[0] in _TIMES else site.types[1]
    if kind == _DATE:
        moved: Any = call("in calendar", value)
        if months:
            moved = call("add_months", moved, Literal(months, _INT))
        moved = _days_added(moved, days) if days else moved
        if moved is None or abs(months) > 12_000:
            return None
        local = call("cast", moved, type=_NTZ, zone=UTC)
        return call("add_micros", local, Literal(micros, _LONG), zone=UTC) if micros else local
    # days are days on a clock, and only a clock without changes has none of another length
    is_plain = kind == _NTZ or (site.reader.zone == UTC)
    if months or (days and not is_plain):
        return None
    size = Literal(days * _DAY + micros, _LONG)
    return call("add_micros", call("in calendar", value), size, zone=UTC)


def _quotient(site: _Site) -> Expression | None:
    divisor = site.values[1]
    if (
        not isinstance(divisor, Literal)
        or not divisor.value
        or site.types[0]
        not in (
            *_INTEGERS,
            PrimitiveType("float"),
            _DOUBLE,
        )
    ):
        return None
    return call("/", *site.values) if is_float(site.types[0]) else None


def _whole_quotient(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        divisor, kind = site.values[1], site.types[0]
        if not isinstance(divisor, Literal) or not divisor.value or kind not in _INTEGERS:
            return None
        if divisor.value == -1:  # an overflow of the column's own type
            return call("negative", site.values[0]) if name == "div" else None
        # `div` is of bigints; a quotient is no larger than what is divided
        found = call(name, *site.values)
        return site.as_result(call("cast", found, type=kind), kind) if name == "div" else found

    return read


def _of_number(of_float: str, of_decimal: str | None) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        kind = site.types[0]
        if len(site.values) == 1 and kind is not None and is_float(kind):
            return call(of_float, *site.values)
        if isinstance(kind, DecimalType) and of_decimal is not None:
            return call(of_decimal, *site.values, type=site.result)
        return None

    return read


def _absolute(site: _Site) -> Expression | None:
    known = site.types[0] in (*_INTEGERS, PrimitiveType("float"), _DOUBLE)
    return call("abs", site.values[0]) if known else None


def _part_of_date(
    name: str, change: Callable[[Expression], Expression] = lambda found: found
) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        date = site.date if site.types[0] in _TIMES else None
        return None if date is None else site.as_result(change(call(name, date)), _INT)

    return read


def _part_of_time(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        zone = UTC if site.is_local else site.reader.zone
        if site.types[0] not in {_NTZ, _TZ} or zone is None:
            return None
        found = call(name, call("in calendar", site.values[0]), zone=zone)
        return site.as_result(found, _INT)

    return read


def _truncated(site: _Site) -> Expression | None:
    unit, kind = site.values[0], site.types[1]
    if not isinstance(unit, Literal) or str(unit.value).upper() not in _UNITS or kind not in _TIMES:
        return None
    # in an hour that comes twice DuckDB has rules of its own
    if kind == _TZ and site.reader.zone != UTC:
        return None
    value = call("in calendar", site.values[1])
    instant = value if kind == _TZ else call("cast", value, type=_TZ, zone=UTC)
    found = call("date_trunc", Literal(str(unit.value).upper(), _STRING), instant, zone=UTC)
    return found if site.result == _TZ else call("cast", found, type=site.result, zone=UTC)


_UNITS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def _difference(site: _Site) -> Expression | None:
    unit, one, two = site.values
    if not (isinstance(unit, Literal) and unit.value == "day" and site.types[1:] == [_DATE, _DATE]):
        return None
    found = call("datediff", call("in calendar", two), call("in calendar", one))
    return site.as_result(found, _INT)


def _last_day(site: _Site) -> Expression | None:
    date = site.date if site.types[0] in _TIMES else None
    return None if date is None else call("last_day", date)


def _epoch(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        if site.types[0] not in {_NTZ, _TZ}:
            return None
        value = call("in calendar", site.values[0])
        instant = value if site.types[0] == _TZ else call("cast", value, type=_TZ, zone=UTC)
        if name != "epoch":
            return call(name, instant)
        micros = call("cast", call("unix_micros", instant), type=_DOUBLE)
        return call("/", micros, Literal(1e6, _DOUBLE))

    return read


def _of_text(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        if len(site.values) != 1 or site.types[0] != _STRING:
            return None
        found = call(name, site.values[0])
        return site.as_result(found, _INT) if name == "length" else found

    return read


def _part_of_text(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        places = site.values[1:]
        if site.types[0] != _STRING or not all(isinstance(p, Literal) and p.value for p in places):
            return None
        numbers = [part.value for part in places]  # type: ignore[union-attr]
        if min(numbers) < 1 or max(numbers) >= 2**31:
            return None
        return call(name, site.values[0], *(Literal(number, _INT) for number in numbers))

    return read


def _joined(site: _Site) -> Expression | None:
    return call("concat", *site.values) if all(kind == _STRING for kind in site.types) else None


def _joined_without_nulls(site: _Site) -> Expression | None:
    if not all(kind == _STRING for kind in site.types):
        return None
    empty = Literal("", _STRING)
    return call("concat", *(call("coalesce", value, empty) for value in site.values))


def _extreme(name: str) -> Callable[[_Site], Expression | None]:
    def read(site: _Site) -> Expression | None:
        alike = all(kind == site.types[0] for kind in site.types)
        return call(name, *site.values) if alike and is_orderable(site.types[0]) else None  # type: ignore[arg-type]

    return read


_FUNCTIONS: Final[Mapping[str, Callable[[_Site], Expression | None]]] = {
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "/": _quotient,
    "//": _whole_quotient("div"),
    "%": _whole_quotient("%"),
    "abs": _absolute,
    "floor": _of_number("floor of float", None),
    "ceil": _of_number("ceil of float", None),
    "ceiling": _of_number("ceil of float", None),
    "trunc": _of_number("trunc of float", None),
    "round": _of_number("round of float", "round"),
    "sqrt": _of_number("square root", None),
    **{name: _part_of_date(name) for name in ("year", "month", "quarter", "day", "dayofyear")},
    "dayofmonth": _part_of_date("day"),
    "isodow": _part_of_date("weekday", lambda found: call("+", found, Literal(1, _INT))),
    "dayofweek": _part_of_date("dayofweek", lambda found: call("-", found, Literal(1, _INT))),
    "weekday": _part_of_date("dayofweek", lambda found: call("-", found, Literal(1, _INT))),
    **{name: _part_of_time(name) for name in ("hour", "minute", "second")},
    **dict.fromkeys(("date_trunc", "datetrunc"), _truncated),
    **dict.fromkeys(("datediff", "date_diff"), _difference),
    "last_day": _last_day,
    "epoch": _epoch("epoch"),
    "epoch_us": _epoch("unix_micros"),
    **dict.fromkeys(("lower", "lcase"), _of_text("lower in some way")),
    **dict.fromkeys(("upper", "ucase"), _of_text("upper in some way")),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), _of_text("length")),
    **{name: _of_text(name) for name in ("trim", "ltrim", "rtrim")},
    **dict.fromkeys(("substring", "substr"), _part_of_text("substring")),
    "left": _part_of_text("left"),
    "||": _joined,
    "concat": _joined_without_nulls,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
