"""Arrays in the table's own types: widened, decoded, nested fields by name."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.types import (
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    type_to_arrow,
)


def align(array: pa.Array, target: DataType) -> pa.Array:
    """The same values as the table's type: widened, decoded, nested fields by name, absent ones NULL."""
    wanted = type_to_arrow(target)
    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if pa.types.is_dictionary(array.type):
        return align(array.dictionary_decode(), target)
    if pa.types.is_run_end_encoded(array.type):
        return align(pc.run_end_decode(array), target)
    if isinstance(array, pa.ExtensionArray):
        return align(array.storage, target)
    match target:
        case StructType():
            return _align_struct(array, target)
        case ListType():
            return _align_list(array, target)
        case MapType():
            return _align_map(array, target)
        case PrimitiveType() | DecimalType():
            return array.cast(wanted)
        case _:
            assert_never(target)


def _align_struct(array: pa.Array, target: StructType) -> pa.Array:
    theirs = {array.type.field(i).name.lower(): i for i in range(array.type.num_fields)}
    children = []
    for field in target:
        found = theirs.get(field.name.lower())
        # struct_field, not .field(): it keeps the parent's offset and hides values under NULL parents
        child = pa.nulls(len(array)) if found is None else pc.struct_field(array, [found])
        children.append(align(child, field.type))
    fields = [type_to_arrow(target).field(i) for i in range(len(target.fields))]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _align_list(array: pa.Array, target: ListType) -> pa.Array:
    # rebuilt from the lengths: true for lists, views, large and fixed-size lists, sliced or not
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = align(array.flatten(), target.element)
    kind = type_to_arrow(target)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=array.is_null())


def _align_map(array: pa.Array, target: MapType) -> pa.Array:
    return pa.MapArray.from_arrays(
        _offsets(array),
        align(array.keys, target.key),
        align(array.items, target.value),
        type=type_to_arrow(target),
        mask=array.is_null(),
    )


def _offsets(array: pa.Array) -> pa.Array:
    # a copy that starts at 0: Arrow refuses a mask together with sliced offsets
    return pa.array(array.offsets.to_numpy(zero_copy_only=False).copy(), pa.int32())
