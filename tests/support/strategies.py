"""Hypothesis strategies for values that break naive code, and for schemas and tables made of them."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    leaves,
    schema_to_arrow,
    type_to_arrow,
)

# U+D7FF and U+E000 surround the surrogates; U+FFFD sorts above U+10000 in UTF-16 but below in UTF-8.
NASTY_CHARACTERS = (
    '\x00\t\n\r "\\.`?[]a~\x7f\x80é\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff'
)
MARK = " [TRUNCATED]"

nasty_characters = st.sampled_from(NASTY_CHARACTERS)
nasty_text = st.one_of(
    st.text(nasty_characters, max_size=40),
    st.text(max_size=40),
    st.tuples(
        st.text(nasty_characters, max_size=20), st.sampled_from([MARK, "…" + MARK, "..." + MARK])
    ).map("".join),
)
"""Any text UTF-8 can hold: empty, control characters, both sides of the surrogates, our own mark."""

long_text = st.builds(
    lambda head, char, n: head + char * n, nasty_text, nasty_characters, st.integers(0, 200)
)
nasty_binary = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]), max_size=40).map(bytes),
)
nasty_doubles = st.one_of(
    st.sampled_from(
        [
            0.0,
            -0.0,
            float("inf"),
            float("-inf"),
            float("nan"),
            5e-324,
            1.7976931348623157e308,
            2.0**53,
            0.1,
        ]
    ),
    st.floats(),
)
nasty_singles = st.one_of(
    st.sampled_from(
        [
            0.0,
            -0.0,
            float("inf"),
            float("-inf"),
            float("nan"),
            3.4028234663852886e38,
            -3.4028234663852886e38,
            2.0**-149,
        ]
    ),
    st.floats(width=32),
)


def nasty_ints(bits: int = 64) -> st.SearchStrategy[int]:
    """Signed integers of so many bits, often at the ends of the range or next to a double's limit."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = [low, low + 1, -1, 0, 1, high - 1, high]
    if bits == 64:
        edges += [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1]
    return st.one_of(st.sampled_from(edges), st.integers(low, high))


def nasty_decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Decimals that use every digit they may."""
    limit = 10**precision - 1
    unscaled = st.one_of(st.sampled_from([0, 1, -1, limit, -limit]), st.integers(-limit, limit))
    return unscaled.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


nasty_dates = st.one_of(
    st.sampled_from(
        [dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)]
    ),
    st.dates(),
)
nasty_datetimes = st.one_of(
    st.sampled_from([dt.datetime.min, dt.datetime.max, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    st.datetimes(),
)

ORDERED_TYPES = (
    *(PrimitiveType(n) for n in ("boolean", "byte", "short", "integer", "long", "float", "double")),
    *(PrimitiveType(n) for n in ("date", "timestamp", "timestamp_ntz", "string", "binary")),
    DecimalType(5, 2),
    DecimalType(18, 0),
    DecimalType(38, 10),
)


def values_of(dtype) -> st.SearchStrategy:
    """Natural Python values of a type, none of them NULL."""
    match dtype:
        case PrimitiveType("boolean"):
            return st.booleans()
        case PrimitiveType("byte"):
            return nasty_ints(8)
        case PrimitiveType("short"):
            return nasty_ints(16)
        case PrimitiveType("integer"):
            return nasty_ints(32)
        case PrimitiveType("long"):
            return nasty_ints(64)
        case PrimitiveType("float"):
            return nasty_singles
        case PrimitiveType("double"):
            return nasty_doubles
        case PrimitiveType("date"):
            return nasty_dates
        case PrimitiveType("timestamp_ntz"):
            return nasty_datetimes
        case PrimitiveType("timestamp"):
            return nasty_datetimes.map(lambda value: value.replace(tzinfo=dt.UTC))
        case PrimitiveType("string"):
            return nasty_text
        case PrimitiveType("binary"):
            return nasty_binary
        case DecimalType(precision, scale):
            return nasty_decimals(precision, scale)
        case ListType(element):
            return st.lists(st.none() | values_of(element), max_size=3)
        case MapType(key, value):
            return st.lists(st.tuples(values_of(key), st.none() | values_of(value)), max_size=3)
        case StructType(fields):
            return st.fixed_dictionaries({f.name: st.none() | values_of(f.type) for f in fields})
    raise AssertionError(dtype)


column_names = st.one_of(
    st.sampled_from(["a", "b", "a.b", "id", "Text", "with space", "ü", "`", "element"]),
    st.text(st.sampled_from("abc._` é"), min_size=1, max_size=6),
)


def _fields(types: st.SearchStrategy, max_size: int) -> st.SearchStrategy:
    pairs = st.lists(
        st.tuples(column_names, types), min_size=1, max_size=max_size, unique_by=lambda p: p[0].lower()
    )
    return pairs.map(lambda found: StructType(tuple(Field(name, dtype) for name, dtype in found)))


_flat = st.sampled_from(ORDERED_TYPES)
data_types = st.recursive(
    _flat,
    lambda inner: st.one_of(
        inner.map(ListType),
        inner.map(lambda value: MapType(PrimitiveType("string"), value)),
        _fields(inner, 3),
    ),
    max_leaves=3,
)
schemas = _fields(data_types, 4)
"""Nullable columns of any type, nested too, with names that need quoting."""


@st.composite
def tables(draw, schema_strategy=schemas, max_rows: int = 6) -> tuple[StructType, pa.Table]:
    """A schema and an Arrow table that has it, NULLs anywhere."""
    schema = draw(schema_strategy)
    rows = draw(st.integers(0, max_rows))
    columns = []
    for field in schema:
        cells = st.lists(st.none() | values_of(field.type), min_size=rows, max_size=rows)
        columns.append(pa.array(draw(cells), type_to_arrow(field.type)))
    return schema, pa.table(columns, schema=schema_to_arrow(schema))


def all_paths(schema: StructType):
    """The path of every leaf."""
    return tuple(leaf.path for leaf in leaves(schema))
