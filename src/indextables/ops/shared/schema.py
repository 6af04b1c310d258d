"""How a schema may change: columns are added and types widened, and changes that would lose data are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from indextables.core.types import DataType, ListType, MapType, StructType, can_widen, type_name
from indextables.core.types.arrow import check_levels
from indextables.errors import SchemaError, SchemaEvolutionError, SchemaMismatchError
from indextables.log.wire.actions import Add, Metadata
from indextables.ops.shared.record_key import key_problem
from indextables.plan.merge_rule import MergeRule


def evolved(metadata: Metadata, wanted: StructType) -> Metadata:
    """Returns the metadata with this schema as its newest; the same object if nothing changes.

    Splits keep the id of the schema they were written with, so older schemas stay known.
    """
    problems = list(_problems(metadata.schema, wanted, "", metadata.partition_columns))
    problems += _key_problems(metadata, wanted)
    problems += _name_problems(wanted)
    if problems:
        raise SchemaEvolutionError(
            "the schema cannot change in this way:\n" + "\n".join(f"  - {p}" for p in problems),
            hint="columns can be added (nullable) and types widened; to drop, rename or narrow, write a new table",
            differences=tuple(problems),
        )
    schema = _merged(metadata.schema, wanted)
    if schema == metadata.schema:
        return metadata
    past = {**metadata.past_schemas, metadata.schema_id: metadata.schema}
    return replace(metadata, schema=schema, schema_id=max(past) + 1, past_schemas=past)


def _key_problems(metadata: Metadata, wanted: StructType) -> Iterator[str]:
    """Yields what would keep the columns of the record key from identifying a row."""
    key = set(MergeRule.of(metadata.properties).key)
    asked = {field.name.lower(): field for field in wanted}
    for field in metadata.schema:
        if field.name in key and field.name.lower() in asked:
            reason = key_problem(asked[field.name.lower()])
            if reason:
                yield f"column {field.name!r} is part of the record key and would be one that {reason}"


def _name_problems(wanted: StructType) -> Iterator[str]:
    """Yields what is wrong with names and nesting, by the same rules as for a new table."""
    try:
        check_names(wanted)
        check_levels(wanted)
    except SchemaError as error:
        yield error.message


def merged_schema(current: StructType, incoming: StructType) -> StructType:
    """Returns the schema for `append(..., merge_schema=True)`: the table's, with what the data adds and widens.

    A column that the data leaves out stays; one that is wider in the table stays as wide as it is.
    """
    mine = {field.name.lower(): field for field in incoming}
    fields = []
    for field in current:
        other = mine.pop(field.name.lower(), None)
        fields.append(field if other is None else replace(field, type=_wider(field.type, other.type)))
    return StructType((*fields, *(replace(field, nullable=True) for field in mine.values())))


def _wider(current: DataType, incoming: DataType) -> DataType:
    match current, incoming:
        case StructType(), StructType():
            return merged_schema(current, incoming)
        case _ if can_widen(current, incoming):
            return incoming
        case _:
            return current  # the check of the data says if it does not fit this


def _merged(current: StructType, wanted: StructType) -> StructType:
    """Returns `wanted` in the table's own spelling, with the table's columns first and in their order."""
    asked = {field.name.lower(): field for field in wanted}
    fields = []
    for field in current:
        new = asked.pop(field.name.lower())
        kind = new.type
        if isinstance(field.type, StructType) and isinstance(kind, StructType):
            kind = _merged(field.type, kind)
        metadata = field.metadata
        if "comment" in new.metadata:
            metadata = {**metadata, "comment": new.metadata["comment"]}
        nullable = field.nullable or new.nullable
        fields.append(replace(field, type=kind, nullable=nullable, metadata=metadata))
    return StructType((*fields, *asked.values()))


def _problems(
    current: StructType, wanted: StructType, path: str, partitions: tuple[str, ...]
) -> Iterator[str]:
    asked = {field.name.lower(): field for field in wanted}
    if len(asked) < len(wanted.fields):
        yield "the new schema has two columns of the same name"
    for field in current:
        name = f"{path}{field.name}"
        new = asked.pop(field.name.lower(), None)
        if new is None:
            yield f"column {name!r} would be dropped"
            continue
        if field.nullable and not new.nullable:
            yield f"column {name!r} may hold NULL already, so it cannot become NOT NULL"
        if name in partitions and new.type != field.type:
            yield f"partition column {name!r} cannot change its type"
        else:
            yield from _type_problems(field.type, new.type, name)
    for added in asked.values():
        if not added.nullable:
            yield f"new column '{path}{added.name}' must be nullable: older rows have no value for it"


def _type_problems(old: DataType, new: DataType, name: str) -> Iterator[str]:
    match old, new:
        case StructType(), StructType():
            yield from _problems(old, new, f"{name}.", ())
        case ListType(), ListType():
            yield from _element_problems(old.element, new.element, f"{name}.element")
        case MapType(), MapType():
            yield from _element_problems(old.key, new.key, f"{name}.key")
            yield from _element_problems(old.value, new.value, f"{name}.value")
        case _ if not can_widen(old, new):
            yield f"column {name!r} cannot change from {type_name(old)} to {type_name(new)}"


def _element_problems(old: DataType, new: DataType, name: str) -> Iterator[str]:
    if old != new:
        yield f"{name!r} cannot change from {type_name(old)} to {type_name(new)}"


def fit_to_current(
    now: Metadata, written_with: Metadata, adds: Sequence[Add]
) -> tuple[tuple[Metadata, ...], tuple[Add, ...]]:
    """Returns splits written with some metadata for a table whose metadata may have changed since.

    These are the metadata to commit with them, if any, and the adds under the schema id they then have.
    SchemaMismatchError if they do not fit the table any more.
    """
    if now.schema_of(written_with.schema_id) == written_with.schema:
        _check_still_fits(written_with, now)
        return (), tuple(adds)
    newest = evolved(now, merged_schema(now.schema, written_with.schema))
    _check_still_fits(written_with, newest)
    labelled = tuple(replace(add, schema_id=newest.schema_id) for add in adds)
    return (() if newest is now else (newest,)), labelled


def _check_still_fits(written: Metadata, now: Metadata) -> None:
    problems = list(_problems(written.schema, now.schema, "", ()))
    if written.partition_columns != now.partition_columns:
        problems.append(f"the table is now partitioned by {list(now.partition_columns)}")
    if problems:
        raise SchemaMismatchError(
            "another writer changed the table, and the new data no longer fits: " + "; ".join(problems),
            hint="read the table's schema again and repeat the write",
            differences=tuple(problems),
        )


def check_names(struct: StructType, path: str = "") -> None:
    """Raises SchemaError if a field has no name, or two fields of one struct have the same, at any depth."""
    if not struct.fields:
        raise SchemaError(
            f"{path.rstrip('.') or 'the table'} has no columns", hint="give it at least one"
        )
    seen: dict[str, str] = {}
    for field in struct:
        if not field.name:
            raise SchemaError(f"a column of {path.rstrip('.') or 'the table'} has no name")
        folded = field.name.lower()
        if folded in seen:
            raise SchemaError(
                f"columns {seen[folded]!r} and {field.name!r} have the same name",
                hint="names are compared without regard to case: rename one of them",
                column=f"{path}{field.name}",
            )
        seen[folded] = field.name
        for below in _structs(field.type):
            check_names(below, f"{path}{field.name}.")


def _structs(kind: DataType) -> Iterator[StructType]:
    match kind:
        case StructType():
            yield kind
        case ListType(element=element):
            yield from _structs(element)
        case MapType(key=key, value=value):
            yield from _structs(key)
            yield from _structs(value)
        case _:
            return
