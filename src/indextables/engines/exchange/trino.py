"""Presto's and Trino's `TupleDomain` as JSON, in both directions (the first way of RFC-58).

Presto writes ranges of markers, each with a block of one value. Trino writes all ends of the ranges in one
block, beside a list that says which ends belong to their range. Both are read, and either can be written.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.domain.domain import Bound, Domain, Marker, Range
from indextables.core.types import (
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    StructType,
    parse_path,
    path_text,
    resolve,
    type_name,
)
from indextables.engines.exchange.blocks import Raw, decode_block, encode_block
from indextables.errors import PredicateError

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  Trino's timestamp has no zone
_DAY_ZERO: Final = dt.date(1970, 1, 1)
_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")


@dataclass(frozen=True, slots=True)
class _Codec:
    """How values of one of their types are written and read."""

    encoding: str
    write: Callable[[Any], Raw]
    read: Callable[[Any], Any]
    is_float: bool = False


def _same(value: Any) -> Any:
    return value


def _double_bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _real_bits(value: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", value))[0])


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _real(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


def _micros(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(microseconds=1)


_TEXT: Final = _Codec("VARIABLE_WIDTH", lambda value: value.encode(), lambda raw: raw.decode())
_CODECS: Final[dict[str, _Codec]] = {
    "bigint": _Codec("LONG_ARRAY", _same, _same),
    "integer": _Codec("INT_ARRAY", _same, _same),
    "smallint": _Codec("SHORT_ARRAY", _same, _same),
    "tinyint": _Codec("BYTE_ARRAY", _same, _same),
    "boolean": _Codec("BYTE_ARRAY", int, bool),
    "double": _Codec("LONG_ARRAY", _double_bits, _double, is_float=True),
    "real": _Codec("INT_ARRAY", _real_bits, _real, is_float=True),
    "date": _Codec(
        "INT_ARRAY", lambda day: (day - _DAY_ZERO).days, lambda days: _DAY_ZERO + dt.timedelta(days)
    ),
    "timestamp(6)": _Codec("LONG_ARRAY", _micros, lambda us: _EPOCH + dt.timedelta(microseconds=us)),
    "timestamp(3)": _Codec("LONG_ARRAY", _micros, lambda us: _EPOCH + dt.timedelta(microseconds=us)),
    # Presto's own timestamp counts milliseconds
    "timestamp": _Codec(
        "LONG_ARRAY", lambda at: _micros(at) // 1000, lambda ms: _EPOCH + dt.timedelta(milliseconds=ms)
    ),
    "varchar": _TEXT,
    "varbinary": _Codec("VARIABLE_WIDTH", _same, _same),
}
_NAMES: Final = {
    "long": "bigint",
    "integer": "integer",
    "short": "smallint",
    "byte": "tinyint",
    "boolean": "boolean",
    "double": "double",
    "float": "real",
    "date": "date",
    "timestamp_ntz": "timestamp(6)",
    "string": "varchar",
    "binary": "varbinary",
}


def to_tuple_domain(
    domain: ColumnDomain, schema: StructType, form: Literal["presto", "trino"] = "trino"
) -> dict[str, Any]:
    """Returns the domain as their JSON. It never holds less, and the same wherever their form can say so.

    They have no state for NaN, which is only in a domain of all values; so a domain with NaN grows.
    """
    if domain.domains is None:
        return {"columnDomains": None}
    columns = [_column_json(path, each, schema, form) for path, each in domain.domains.items()]
    return {"columnDomains": columns}


def from_tuple_domain(json: Mapping[str, Any]) -> ColumnDomain:
    """Returns the domain in their JSON; a column of an unknown type may have any value."""
    columns = json.get("columnDomains")
    if columns is None:
        return ColumnDomain.none()
    found: dict[FieldPath, Domain] = {}
    for each in columns:
        path = _path(each["column"])
        domain = _domain(each["domain"])
        found[path] = found[path].intersect(domain) if path in found else domain
    return ColumnDomain(found)


def _path(column: Any) -> FieldPath:
    """Returns the column that a handle means.

    The form of a handle is the connector's own, but all known ones have the name in one of two places.
    """
    name = column if isinstance(column, str) else column.get("name", column.get("columnName"))
    if not isinstance(name, str):
        raise PredicateError("a column handle has no name", hint='write {"column": {"name": "a"}}')
    return parse_path(name)


def _column_json(path: FieldPath, domain: Domain, schema: StructType, form: str) -> dict[str, Any]:
    found, dtype = resolve(schema, path, case_sensitive=True)
    name = _type_name(dtype)
    codec = _codec(name)
    assert codec is not None
    # only a domain of all values holds NaN
    ranges = [Range.all()] if codec.is_float and domain.nan_allowed else list(domain.ranges)
    values = (_presto if form == "presto" else _trino)(ranges, name, codec)
    return {
        "column": {"name": path_text(found), "type": name},
        "domain": {
            "values": {"@type": "sortable", "type": name, **values},
            "nullAllowed": domain.null_allowed,
        },
    }


def _type_name(dtype: DataType) -> str:
    match dtype:
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case PrimitiveType(name) if name in _NAMES:
            return _NAMES[name]
        case _:
            raise PredicateError(
                f"Trino's form of {type_name(dtype)} is not known",
                hint="leave the column out: domain.only([...])",
            )


def _codec(name: str) -> _Codec | None:
    if (decimal := _DECIMAL.fullmatch(name)) is not None:
        return _decimal_codec(int(decimal[1]), int(decimal[2]))
    return _TEXT if name.startswith("varchar") else _CODECS.get(name)


def _decimal_codec(precision: int, scale: int) -> _Codec:
    def write(value: Decimal) -> Raw:
        sign, digits, exponent = Decimal(value).as_tuple()
        assert isinstance(exponent, int)
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + scale)
        return int(-unscaled if sign else unscaled)

    def read(unscaled: int) -> Decimal:
        # scaleb would round to the context's 28 digits
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    return _Codec("LONG_ARRAY" if precision <= 18 else "INT128_ARRAY", write, read)


def _presto(ranges: list[Range], name: str, codec: _Codec) -> dict[str, Any]:
    def marker(end: Marker) -> dict[str, Any]:
        values = [] if end.value is None else [codec.write(end.value)]
        block = encode_block(codec.encoding, values, "presto") if values else None
        return {"type": name, "valueBlock": block, "bound": end.bound.name}

    return {"ranges": [{"low": marker(r.low), "high": marker(r.high)} for r in ranges]}


def _trino(ranges: list[Range], _name: str, codec: _Codec) -> dict[str, Any]:
    ends = [end for r in ranges for end in (r.low, r.high)]
    values = [None if end.value is None else codec.write(end.value) for end in ends]
    inclusive = [end.bound is Bound.EXACTLY for end in ends]
    return {"inclusive": inclusive, "sortedRanges": encode_block(codec.encoding, values)}


def _domain(json: Mapping[str, Any]) -> Domain:
    values, null_allowed = json["values"], bool(json["nullAllowed"])
    codec = _codec(values["type"]) if isinstance(values.get("type"), str) else None
    if codec is None or values.get("@type", "sortable") != "sortable":
        return Domain([Range.all()], null_allowed, nan_allowed=True)
    ranges = _presto_ranges(values, codec) if "ranges" in values else _trino_ranges(values, codec)
    # versions differ in whether NaN is above a lower bound, so it may be there
    open_above = any(r.high.value is None for r in ranges)
    return Domain(ranges, null_allowed, nan_allowed=open_above)


def _presto_ranges(values: Mapping[str, Any], codec: _Codec) -> list[Range]:
    def marker(json: Mapping[str, Any]) -> Marker:
        block = json.get("valueBlock")
        raw = None if block is None else decode_block(block)[0]
        return Marker(None if raw is None else codec.read(raw), Bound[json["bound"]])

    return [Range(marker(each["low"]), marker(each["high"])) for each in values["ranges"]]


def _trino_ranges(values: Mapping[str, Any], codec: _Codec) -> list[Range]:
    ends = [None if raw is None else codec.read(raw) for raw in decode_block(values["sortedRanges"])]
    inclusive = values["inclusive"]
    if len(inclusive) != len(ends) or len(ends) % 2:
        raise PredicateError(
            "there are not as many ends of ranges as flags that include them",
            hint="pass the JSON as the engine wrote it",
        )
    pairs = zip(ends[::2], ends[1::2], inclusive[::2], inclusive[1::2], strict=True)
    return [_range(low, high, takes_low, takes_high) for low, high, takes_low, takes_high in pairs]


def _range(low: Any, high: Any, takes_low: bool, takes_high: bool) -> Range:
    start = Bound.EXACTLY if takes_low and low is not None else Bound.ABOVE
    end = Bound.EXACTLY if takes_high and high is not None else Bound.BELOW
    return Range(Marker(low, start), Marker(high, end))
