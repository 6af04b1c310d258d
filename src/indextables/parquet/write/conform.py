"""Converts data of users to the table's schema, or raises one error that names every difference.

Names match without regard to case, and the table's spelling is kept. Values may be widened, but never cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.core.types import (
    DataType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    can_widen,
    schema_from_arrow,
    schema_to_arrow,
    type_name,
)
from indextables.core.types.arrow import check_arrow_levels
from indextables.errors import SchemaMismatchError, UnsupportedTypeError
from indextables.parquet.read.split import align

if TYPE_CHECKING:
    import pandas as pd


def as_reader(data: object) -> pa.RecordBatchReader:
    """Returns a stream of record batches over Arrow, pandas or Polars data; nothing is copied or read yet.

    NaN becomes NULL in data from pandas, where it means a missing number, and stays NaN in data from Arrow or
    Polars. Levels of a pandas index that have a name become columns, and other levels are left out.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if (pandas := sys.modules.get("pandas")) and isinstance(data, pandas.DataFrame):
        # The frame's own Arrow stream would also add an index without a name as a column.
        data = _from_pandas(data)
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise UnsupportedTypeError(
        f"cannot read rows from a {type(data).__module__}.{type(data).__qualname__}",
        hint="pass a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or a Polars DataFrame "
        "(a LazyFrame after .collect())",
    )


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    try:
        # Columns that set_index and groupby moved to the index are data, too.
        unnamed = [i for i, name in enumerate(frame.index.names) if name is None]
        whole = frame.reset_index(unnamed, drop=True) if unnamed else frame
        return pa.Table.from_pandas(whole, preserve_index=len(unnamed) < frame.index.nlevels)
    except (ValueError, TypeError, NotImplementedError) as error:
        reasons = error.args or (error,)
        raise SchemaMismatchError(
            f"the pandas frame cannot be read as columns: {'; '.join(map(str, reasons))}",
            hint="give every column a different name and values of one type",
        ) from error


def source_schema(schema: pa.Schema) -> StructType:
    """Returns the schema of a table of this data, in which nanosecond timestamps have microseconds."""
    check_arrow_levels(schema)
    return schema_from_arrow(pa.schema([_in_micros(field) for field in schema]))


def check_fits(source: pa.Schema, target: StructType, *, merge: bool = False) -> None:
    """Raises SchemaMismatchError with every difference; with `merge` a column may be left out."""
    problems = list(_differences(source, target, merge=merge))
    if problems:
        raise SchemaMismatchError(
            "the data does not fit the table:\n" + "\n".join(f"  - {problem}" for problem in problems),
            hint="cast, add or drop these columns; merge_schema=True adds new columns to the table and "
            "fills the ones the data leaves out with NULL",
            differences=tuple(problems),
        )


def conform(batches: Iterable[pa.RecordBatch], target: StructType) -> Iterator[pa.RecordBatch]:
    """Yields the rows with the table's columns, in its order, spelling and types; call `check_fits` first."""
    wanted = schema_to_arrow(target)
    for batch in batches:
        by_name = {name.lower(): i for i, name in enumerate(batch.schema.names)}
        columns = []
        for field in target:
            found = by_name.get(field.name.lower())
            column = pa.nulls(batch.num_rows) if found is None else batch.column(found)
            columns.append(_column(column, field))
            _check_text(columns[-1], field)
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _check_text(column: pa.Array, field: Field) -> None:
    """Raises SchemaMismatchError for text that is not UTF-8: Arrow writes any bytes, but other engines refuse the file."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column {field.name!r} has text that is not UTF-8: {error}",
            hint="decode it, or keep it in a column of binary data",
            column=field.name,
        ) from error


def _column(column: pa.Array, field: Field) -> pa.Array:
    try:
        aligned = align(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r} has a value that does not fit {type_name(field.type)}: {error}",
            hint="round or cast the column before writing",
            column=field.name,
        ) from error
    for path in _forbidden_nulls(aligned, field, field.name):
        raise SchemaMismatchError(
            f"column {path!r} contains NULL, but is NOT NULL in the table",
            hint="fill or filter these rows before writing",
            column=path,
        )
    return aligned


def _forbidden_nulls(array: pa.Array, field: Field, path: str) -> Iterator[str]:
    """Yields the paths of NOT NULL fields that contain NULL; values under a NULL parent do not count."""
    if not field.nullable and array.null_count:
        yield path
    match field.type:
        case StructType(fields=fields) if any(map(_is_strict, fields)):
            present = array.drop_null()
            for i, child in enumerate(fields):
                yield from _forbidden_nulls(present.field(i), child, f"{path}.{child.name}")
        case ListType(element=element, contains_null=nullable):
            child = Field("element", element, nullable)
            if _is_strict(child):
                yield from _forbidden_nulls(array.flatten(), child, f"{path}.element")
        case MapType(value=value, value_contains_null=nullable):
            child = Field("value", value, nullable)
            if _is_strict(child):
                yield from _forbidden_nulls(_items(array), child, f"{path}.value")


def _items(array: pa.Array) -> pa.Array:
    # .items ignores that the array may be a slice of another.
    present = array.drop_null()
    first, last = present.offsets[0].as_py(), present.offsets[-1].as_py()
    return present.items.slice(first, last - first)


def _is_strict(field: Field) -> bool:
    match field.type:
        case StructType(fields=fields):
            return not field.nullable or any(map(_is_strict, fields))
        case ListType(element=element, contains_null=nullable):
            return not field.nullable or _is_strict(Field("", element, nullable))
        case MapType(value=value, value_contains_null=nullable):
            return not field.nullable or _is_strict(Field("", value, nullable))
        case _:
            return not field.nullable


def _differences(source: pa.Schema, target: StructType, *, merge: bool) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for name in source.names:
        names.setdefault(name.lower(), []).append(name)
    known = {field.name.lower() for field in target}
    for folded, spellings in names.items():
        if len(spellings) > 1:
            yield f"columns {', '.join(map(repr, spellings))} have the same name"
        elif folded not in known:
            yield f"column {spellings[0]!r} is not in the table{_meant(spellings[0], target)}"
    for field in target:
        found = names.get(field.name.lower())
        if found is None:
            if not (merge and field.nullable):
                yield f"column {field.name!r} ({type_name(field.type)}) is missing"
        elif len(found) == 1:
            yield from _type_differences(source.field(found[0]), field)


def _type_differences(source: pa.Field, target: Field) -> Iterator[str]:
    if pa.types.is_null(source.type):
        return
    try:
        found = source_schema(pa.schema([source])).fields[0]
    except UnsupportedTypeError as error:
        yield f"column {target.name!r}: {error.message}"
        return
    yield from _misfits(found.type, target.type, target.name)


def _misfits(source: DataType, target: DataType, path: str) -> Iterator[str]:
    match source, target:
        case StructType(), StructType():
            theirs = {field.name.lower(): field for field in source}
            if len(theirs) < len(source.fields):
                yield f"struct {path!r} has two fields of the same name: {', '.join(source.names)}"
            for field in target:
                child = theirs.pop(field.name.lower(), None)
                if child is not None:
                    yield from _misfits(child.type, field.type, f"{path}.{field.name}")
                elif not field.nullable:
                    yield f"field '{path}.{field.name}' ({type_name(field.type)}) is missing"
            for extra in theirs.values():
                yield f"field '{path}.{extra.name}' is not in the table"
        case ListType(), ListType():
            yield from _misfits(source.element, target.element, f"{path}.element")
        case MapType(), MapType():
            yield from _misfits(source.key, target.key, f"{path}.key")
            yield from _misfits(source.value, target.value, f"{path}.value")
        case StructType(), PrimitiveType("variant") if sorted(source.names) == ["metadata", "value"]:
            return
        case _ if not can_widen(source, target):
            yield f"column {path!r} is {type_name(source)}, the table has {type_name(target)}"


def _meant(name: str, target: StructType) -> str:
    close = get_close_matches(name.lower(), [n.lower() for n in target.names], n=1)
    spelled = {n.lower(): n for n in target.names}
    return f" (did you mean {spelled[close[0]]!r}?)" if close else ""


def _in_micros(field: pa.Field) -> pa.Field:
    return field.with_type(_micros_type(field.type))


def _micros_type(kind: pa.DataType) -> pa.DataType:
    # Values that are not whole microseconds are refused later, when they are cast.
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([_in_micros(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_micros_type(kind.key_type), _in_micros(kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_in_micros(kind.value_field))
    return kind
