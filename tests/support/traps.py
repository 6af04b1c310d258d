"""The traps: small tables on which a careless pruner loses or keeps a split, each with its reason.

`tests/core/cases/traps.json` is a list of objects:

    name, why       what goes wrong elsewhere
    schema          column -> Spark's JSON name of its type ("long", "decimal(5,2)", or a nested object)
    metadata        column -> Spark's metadata of it (collation, CHAR), optional
    partition_by    partition columns, optional
    properties      spark.indextables.* settings in force for all writes, optional
    splits          one per split, each a list of rows (values in the schema's order), or an object
                      rows        the rows
                      columns     the columns the table had then, in order (others came later)
                      types       types that columns had then
                      properties  settings for this write
                      stats       a patch on the statistics in the log: null removes, an object merges
                      dropped     columns of the table that only share their name with the split's
    where           the condition, in SQL
    timezone        the session's, UTC if not given
    keeps           the splits that must be kept, no more and no fewer
    rows            the matching rows as [split, row]; null where only an engine can evaluate the condition

Values: NaN and infinities are strings, so are dates, timestamps and decimals; binary is hexadecimal.
A trap with `stats` or `dropped` is about a log that our own writer would not produce.
"""

import datetime as dt
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from indextables.config import Config
from indextables.core.stats.collect import stats_columns
from indextables.core.stats import collect_stats, to_wire
from indextables.core.stats.truncate import TruncationOptions, truncate_stats
from indextables.core.types import (
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    schema_from_json,
    schema_to_arrow,
)

FILE = Path(__file__).parent.parent / "core" / "cases" / "traps.json"


@dataclass(frozen=True)
class TrapSplit:
    """One split: its data under the schema the table had when it was written."""

    schema: StructType
    data: pa.Table
    properties: dict
    stats: dict
    dropped: frozenset


@dataclass(frozen=True)
class Trap:
    """One case."""

    name: str
    why: str
    schema: StructType
    partition_by: tuple
    splits: tuple
    where: str
    keeps: list
    rows: list | None
    timezone: str = "UTC"
    properties: dict = field(default_factory=dict)

    @property
    def is_foreign(self) -> bool:
        """Its log is one that our own writer would not produce."""
        return any(split.stats or split.dropped for split in self.splits)


def load_traps():
    """All of them, in the file's order."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return [_trap(case) for case in found]


def _trap(case):
    metadata = case.get("metadata", {})
    return Trap(
        name=case["name"],
        why=case["why"],
        schema=_schema(case["schema"], metadata),
        partition_by=tuple(case.get("partition_by", ())),
        splits=tuple(_split(split, case["schema"], metadata, case) for split in case["splits"]),
        where=case["where"],
        keeps=case["keeps"],
        rows=case["rows"],
        timezone=case.get("timezone", "UTC"),
        properties=case.get("properties", {}),
    )


def _split(split, types, metadata, case):
    given = split if isinstance(split, dict) else {"rows": split}
    columns = given.get("columns", list(types))
    schema = _schema(
        {name: given.get("types", {}).get(name, types[name]) for name in columns}, metadata
    )
    values = [[_value(row[i], f.type) for row in given["rows"]] for i, f in enumerate(schema)]
    arrow = schema_to_arrow(schema)
    data = pa.table([pa.array(v, t) for v, t in zip(values, arrow.types, strict=True)], schema=arrow)
    properties = case.get("properties", {}) | given.get("properties", {})
    dropped = frozenset((name,) for name in given.get("dropped", ()))
    return TrapSplit(schema, data, properties, given.get("stats", {}), dropped)


def _schema(types, metadata):
    fields = [
        {"name": name, "type": dtype, "nullable": True, "metadata": metadata.get(name, {})}
        for name, dtype in types.items()
    ]
    return schema_from_json(json.dumps({"type": "struct", "fields": fields}))


def _value(value, dtype):
    """The Python value of what the file holds."""
    match dtype:
        case _ if value is None:
            return None
        case PrimitiveType("float" | "double"):
            return float(value)
        case PrimitiveType("date"):
            return dt.date.fromisoformat(value)
        case PrimitiveType("timestamp"):
            return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
        case PrimitiveType("timestamp_ntz"):
            return dt.datetime.fromisoformat(value)
        case PrimitiveType("binary"):
            return bytes.fromhex(value)
        case DecimalType():
            return Decimal(value)
        case ListType(element):
            return [_value(v, element) for v in value]
        case MapType(_, inner):
            return [(key, _value(v, inner)) for key, v in value.items()]
        case StructType(fields):
            return {f.name: _value(value[f.name], f.type) for f in fields}
        case _:
            return value


def wire_statistics(split, trap):
    """The `stats` of a split as its writer left them in the log, patched as the trap says."""
    config = Config.of(write=split.properties)
    columns = stats_columns(split.schema, trap.partition_by, config)
    found = collect_stats(split.data, split.schema, columns)
    found, _ = truncate_stats(
        found, split.schema, TruncationOptions.from_config(config), trap.partition_by
    )
    return _merged(json.loads(json.dumps(to_wire(found, split.schema))), split.stats)


def _merged(value, patch):
    """RFC 7386: null removes, an object merges, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), part)
    return result
