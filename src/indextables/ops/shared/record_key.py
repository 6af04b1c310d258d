"""The columns that identify a row: which columns can, and how a table's properties name them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from indextables.core.types import (
    DataType,
    Field,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    resolve,
    type_name,
)
from indextables.errors import ConfigError, SchemaError
from indextables.plan.merge_rule import MERGE_MODE, RECORD_KEY, MergeMode, MergeRule


def key_properties(
    given: Mapping[str, str],
    schema: StructType,
    record_key: Sequence[str],
    merge_mode: str | None,
    partition_columns: Sequence[str],
) -> dict[str, str]:
    """Returns the properties for a record key, given as arguments or, as SQL does, in the properties."""
    refuse_misspelled(given)
    names = record_key or _names(given.get(RECORD_KEY, ""))
    mode = merge_mode or given.get(MERGE_MODE)
    if mode not in {None, *map(str, (MergeMode.RECORD, MergeMode.COLUMNS))}:
        raise ConfigError(
            f"there is no merge mode {mode!r}", hint="choose 'record' or 'columns'", value=mode
        )
    if not names:
        if mode is not None:
            raise ConfigError(
                "a merge mode says how rows with one key are merged, but there is no record key",
                hint="give a record key too, or leave the merge mode out",
            )
        return {}
    key = _key_columns(schema, names, partition_columns)
    return {RECORD_KEY: json.dumps(key), MERGE_MODE: mode or MergeMode.RECORD.value}


def refuse_misspelled(given: Mapping[str, str]) -> None:
    """Raises ConfigError for a property that looks like the key's but is misspelled.

    It would be kept as it is, and a row could be there twice.
    """
    for name in given:
        for meant in (RECORD_KEY, MERGE_MODE):
            if name != meant and name.replace("_", "").replace("-", "").lower() == meant.lower():
                raise ConfigError(
                    f"there is no property {name!r}", hint=f"did you mean {meant!r}?", key=name
                )


def _names(text: str) -> list[str]:
    """Returns the columns of a key as a property spells them: a JSON list, or names separated by commas."""
    if text.startswith("["):
        return list(MergeRule.of({RECORD_KEY: text}).key)
    return [name.strip() for name in text.split(",") if name.strip()]


def _key_columns(
    schema: StructType, names: Sequence[str], partition_columns: Sequence[str]
) -> list[str]:
    found = [top_level(schema, name, "key") for name in names]
    fields = {field.name: field for field in schema}
    for name, _ in found:
        if reason := key_problem(fields[name]):
            raise SchemaError(
                f"column {name!r} {reason}, so it cannot identify a row",
                hint="use NOT NULL columns of integers, decimals, dates, timestamps, texts or bytes",
                column=name,
            )
    columns = [name for name, _ in found]
    if len(set(columns)) < len(columns):
        raise SchemaError(f"record key {list(names)} repeats a column")
    if columns and set(columns) <= set(partition_columns):
        raise SchemaError(
            "every column of the record key is a partition column, so each partition could hold only one row",
            hint="add the column that tells the rows of a partition apart",
        )
    return columns


def key_problem(field: Field) -> str | None:
    """Returns why this column cannot be part of a record key; None if it can."""
    if field.nullable:
        return "may be NULL"
    if is_float(field.type):
        return "is a float, and NaN has no identity"
    if not is_orderable(field.type, field.metadata):
        return f"is {type_name(field.type)}, which has no order of its own"
    return None


def top_level(schema: StructType, name: str, role: str) -> tuple[str, DataType]:
    """Returns the column's name in the table's spelling and its type.

    SchemaError for a variant, whose values cannot be compared.
    """
    (*_, spelled), kind = resolve(schema, (name,))
    if isinstance(kind, PrimitiveType) and kind.name == "variant":
        raise SchemaError(f"column {name!r} is a variant and cannot be a {role} column", column=name)
    return spelled, kind
