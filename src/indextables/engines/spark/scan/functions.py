"""Catalyst's functions as ours, node to node: a name is a meaning only with its types, mode and zone.

Mode and zone belong to the node: a view keeps those it was made with. The zone is in the JSON, the mode of
arithmetic and casts only in the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyspark

from indextables.core.expr.functions import FUNCTIONS
from indextables.core.expr.nodes import Call, Expression, Literal, Mode, Unknown, call
from indextables.core.types import DataType, DecimalType, PrimitiveType, can_widen
from indextables.engines.spark.jvm.zones import zone_of_jvm

Node = Mapping[str, Any]

_BY_EVAL_MODE: Final[Mapping[str, str]] = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "Pmod": "pmod",
    "IntegralDivide": "div",
}
_BY_FLAG: Final[Mapping[str, tuple[str, str]]] = {
    "UnaryMinus": ("negative", "failOnError"),
    "Abs": ("abs", "failOnError"),
    "Floor": ("floor", "failOnError"),
    "Ceil": ("ceil", "failOnError"),
    "Round": ("round", "ansiEnabled"),
}
_CHOICES: Final[Mapping[str, str]] = {
    "Coalesce": "coalesce",
    "Greatest": "greatest",
    "Least": "least",
    "If": "if",
    "CaseWhen": "case",
}
_PLAIN: Final[Mapping[str, str]] = {
    **{entry.catalyst: name for name, entry in FUNCTIONS.items() if entry.catalyst},
    **_CHOICES,
}
_BEFORE_4_3: Final = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3)
_OF_DAYS: Final = frozenset(["YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"])
"""Units whose beginning, where its midnight comes twice, was the first one before Spark 4.3."""
_MODES: Final = {"ANSI": Mode.ANSI, "LEGACY": Mode.LEGACY, "TRY": Mode.TRY}
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True)
class Interval:
    """A constant interval: months, or microseconds."""

    months: int | None
    micros: int | None


def interval_of(node: Node) -> Interval | None:
    """Returns the interval a Literal node holds; None for any other constant."""
    kind = node["dataType"]
    if not isinstance(kind, str) or not kind.startswith("interval ") or node["value"] is None:
        return None
    number = int(node["value"])
    is_months = kind.split()[1] in {"year", "month"}
    return Interval(number, None) if is_months else Interval(None, number)


def cast_of(
    value: Expression, source: DataType | None, target: DataType, node: Node, jvm: Any
) -> Expression:
    """Returns a cast; its mode is asked of the JVM where a value may have no result."""
    is_sure = source is not None and (can_widen(source, target) or _is_time(source, target))
    mode = Mode.LEGACY if is_sure else _mode(jvm())
    return call("cast", value, type=target, mode=mode, zone=_zone(node))


def _is_time(source: DataType, target: DataType) -> bool:
    return all(isinstance(kind, PrimitiveType) and kind.name in _TIMES for kind in (source, target))


def function_of(
    kind: str,
    node: Node,
    parts: Sequence[Expression | Interval],
    types: Sequence[DataType | None],
    jvm: Callable[[], Any],
) -> Call | Unknown | None:
    """Returns the function of a node; None where it is none of the table's."""
    match kind, parts:
        case (("TimestampAddInterval" | "TimeAdd"), [value, Interval(None, int(micros))]):
            size = Literal(micros, PrimitiveType("long"))
            return call("add_micros", value, size, zone=_zone(node))  # type: ignore[arg-type]
        case "TimestampAddYMInterval", [value, Interval(int(months), None)]:
            number = Literal(months, PrimitiveType("integer"))
            return call("add_months_to_time", value, number, zone=_zone(node))  # type: ignore[arg-type]
        case "DateAddYMInterval", [value, Interval(int(months), None)]:
            return call("add_months", value, Literal(months, PrimitiveType("integer")))  # type: ignore[arg-type]
        case (("UnixTimestamp" | "ToUnixTimestamp"), [value, _]) if types[0] == PrimitiveType(
            "timestamp"
        ):
            return call("unix_timestamp", value)  # type: ignore[arg-type]
        case _ if any(isinstance(part, Interval) for part in parts):
            return None
        case "TruncTimestamp", [Literal(value=str(unit)), _] if (
            _BEFORE_4_3 and unit.upper() in _OF_DAYS
        ):
            return None
    values: Sequence[Any] = parts
    name = _name(kind)
    if name is None:
        return None
    mode = Mode.ANSI
    if kind in _BY_EVAL_MODE:
        mode = _mode(jvm())
    elif kind in _BY_FLAG:
        mode = Mode.ANSI if node[_BY_FLAG[kind][1]] else Mode.LEGACY
    result = None
    if any(isinstance(dtype, DecimalType) for dtype in types):
        # the type of a decimal's result depends on settings, and is in no field
        result = _decimal(jvm().dataType().typeName())
        if result is None and name not in {"if", "case", "coalesce"}:
            return None
    return call(
        name,
        *values,
        type=result if kind in {*_BY_EVAL_MODE, *_BY_FLAG} else None,
        mode=mode,
        zone=_zone(node),
    )


def _name(kind: str) -> str | None:
    if kind in _BY_FLAG:
        return _BY_FLAG[kind][0]
    return _BY_EVAL_MODE.get(kind) or _PLAIN.get(kind)


def _mode(node: Any) -> Mode:
    return _MODES[str(node.evalMode().toString())]


def _zone(node: Node) -> Any:
    name = node.get("timeZoneId")
    return None if name is None else zone_of_jvm(str(name))


def _decimal(name: str) -> DecimalType | None:
    if not name.startswith("decimal("):
        return None
    precision, scale = name[8:-1].split(",")
    return DecimalType(int(precision), int(scale))
