"""The rows of an upsert as the table takes them: whole, or the columns that are given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from indextables.core.types import StructType, schema_to_arrow
from indextables.errors import SchemaMismatchError
from indextables.log.wire.actions import Metadata
from indextables.ops.keyed.files import distinct_rows, rule_of
from indextables.ops.shared.schema import evolved, merged_schema
from indextables.parquet.read.key_index import KeyIndex
from indextables.parquet.write.conform import conform, source_schema
from indextables.plan.merge_rule import MergeMode, MergeRule


@dataclass(frozen=True)
class Incoming:
    """The rows of an upsert as this version of the table takes them."""

    metadata: Metadata
    rule: MergeRule
    rows: pa.Table
    """The columns the data gives, in the table's order and types."""
    known_index: KeyIndex | None = None

    @cached_property
    def index(self) -> KeyIndex:
        """The keys of the rows, to find them in files; not needed where no file can have one."""
        return self.known_index or KeyIndex.of(self.keys)

    @property
    def keys(self) -> pa.Table:
        """The key of each row."""
        return self.rows.select(list(self.rule.key))

    @property
    def is_partial(self) -> bool:
        """True if other columns keep their values."""
        return len(self.rows.column_names) < len(self.metadata.schema.fields)

    @property
    def given_partitions(self) -> tuple[str, ...]:
        """The partition columns the data says something of."""
        given = set(self.rows.column_names)
        return tuple(name for name in self.metadata.partition_columns if name in given)


def fitted(raw: pa.Table, metadata: Metadata, *, merge_schema: bool, is_late: bool = False) -> Incoming:
    """The data as rows of this table; SchemaMismatchError or DuplicateKeyError if they cannot be that."""
    rule = rule_of(metadata, "upsert")
    if merge_schema:
        metadata = evolved(metadata, merged_schema(metadata.schema, source_schema(raw.schema)))
    schema, merge = metadata.schema, merge_schema or is_late
    if rule.mode is MergeMode.COLUMNS:
        given = {name.lower() for name in (*raw.column_names, *rule.key)}
        schema = StructType(tuple(field for field in schema if field.name.lower() in given))
        merge = False
    rows, index = distinct_rows(raw, schema, rule, merge=merge)
    return Incoming(metadata, rule, rows, index)


def completed(rows: pa.Table, new: Incoming) -> pa.Table:
    """Rows of new keys, whole: what the data leaves out is NULL, if it may be."""
    schema = new.metadata.schema
    missing = [f.name for f in schema if not f.nullable and f.name not in rows.column_names]
    if rows.num_rows and missing:
        key = {name: rows.column(name)[0].as_py() for name in new.rule.key}
        raise SchemaMismatchError(
            f"the key {key} is not in the table, and its new row would have NULL in {missing}, "
            "which the table says never happens",
            hint="give these columns for keys that are new",
            columns=tuple(missing),
        )
    return pa.Table.from_batches(conform(rows.to_batches(), schema), schema_to_arrow(schema))
