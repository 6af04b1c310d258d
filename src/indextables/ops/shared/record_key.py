"""The columns that identify a row: which can, and how a table's properties say so."""

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
    """Returns what the properties say of the key, from the arguments or, as SQL gives them, from themselves."""
    _refuse_misspelled(given)
    names = record_key or _names(given.get(RECORD_KEY, ""))
    mode = merge_mode or given.get(MERGE_MODE)
    if mode not in {None, *map(str, (MergeMode.RECORD, MergeMode.COLUMNS))}:
        raise ConfigError(
            f"there is no merge mode {mode!r}", hint="choose 'record' or 'columns'", value=mode
        )
    if not names:
        if mode is not None:
            raise ConfigError(
                "the merge mode says how rows with one key are merged, and there is no key",
                hint="give a record key too, or leave the merge mode out",
            )
        return {}
    key = _key_columns(schema, names, partition_columns)
    return {RECORD_KEY: json.dumps(key), MERGE_MODE: mode or MergeMode.RECORD.value}


def _refuse_misspelled(given: Mapping[str, str]) -> None:
    """A property that means the key but is not called so would be kept, and rows be there twice."""
    for name in given:
        for meant in (RECORD_KEY, MERGE_MODE):
            if name != meant and name.replace("_", "").replace("-", "").lower() == meant.lower():
                raise ConfigError(
                    f"there is no property {name!r}", hint=f"did you mean {meant!r}?", key=name
                )


def _names(text: str) -> list[str]:
    """Returns the columns of a key as a property spells them: a JSON list, or names between commas."""
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
            "every column of the record key is a partition column, so a partition could hold one row",
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
    """Returns the column in the table's spelling and its type.

    SchemaError for a variant, which has no values to compare.
    """
    (*_, spelled), kind = resolve(schema, (name,))
    if isinstance(kind, PrimitiveType) and kind.name == "variant":
        raise SchemaError(f"column {name!r} is a variant and cannot be a {role} column", column=name)
    return spelled, kind
