"""Rows are matched by their key, whatever its types, exactly as a dict of tuples would match them."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.parquet.read.key_index import (
    KeyIndex,
    distinct_numbers,
    hidden_mask,
    repeated_mask,
    surely_distinct,
)

UTC = dt.UTC
DOMAINS = {
    pa.int8(): [-128, 0, 127],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.bool_(): [False, True],
    pa.decimal128(38, 2): [Decimal("-0.01"), Decimal("0.00"), Decimal("9" * 36 + ".99")],
    pa.decimal64(10, 2): [Decimal("-0.01"), Decimal("1.50")],
    pa.date32(): [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
    pa.timestamp("us", "UTC"): [
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 1, 1, tzinfo=UTC),
    ],
    pa.string(): ["", "a", "\x00", "é", "e\u0301", "\U0001f600"],
    pa.large_string(): ["", "a"],
    pa.string_view(): ["", "a", "a long text that is not kept inside the view"],
    pa.binary(): [b"", b"\x00", b"\xff\xfe"],
    pa.binary(2): [b"ab", b"\x00\x00"],
}


@st.composite
def sides(draw):
    """Types of a key, and keys of two sides from few values, so that many meet."""
    kinds = draw(st.lists(st.sampled_from(list(DOMAINS)), min_size=1, max_size=3))
    key = st.tuples(*(st.sampled_from(DOMAINS[kind]) for kind in kinds))
    numbered = st.lists(st.tuples(key, st.integers(0, 3)), max_size=12)
    return kinds, draw(numbered), draw(numbered)


def table_of(kinds, keys):
    arrays = [pa.array([key[i] for key in keys], kind) for i, kind in enumerate(kinds)]
    return pa.table(arrays, names=[f"k{i}" for i in range(len(kinds))])


@given(sides())
def test_a_row_is_hidden_by_a_log_with_its_key_and_a_higher_number(data):
    """All orderable types, alone and several together, many rows of one key on both sides."""
    kinds, rows, logs = data
    found = hidden_mask(
        table_of(kinds, [key for key, _ in rows]),
        np.array([seq for _, seq in rows], np.int64),
        table_of(kinds, [key for key, _ in logs]),
        np.array([seq for _, seq in logs], np.int64),
    )
    expected = [any(key == other and newer > seq for other, newer in logs) for key, seq in rows]
    assert found.tolist() == expected


@given(sides())
def test_keys_are_numbered_and_found_again(data):
    """Equal keys share a number, different keys do not, unknown ones have none."""
    kinds, rows, others = data
    keys, wanted = [key for key, _ in rows], [key for key, _ in others]
    index = KeyIndex.of(table_of(kinds, keys))
    number = dict(zip(keys, index.numbers.tolist(), strict=True))
    assert sorted(number.values()) == list(range(index.size))
    assert index.numbers.tolist() == [number[key] for key in keys]
    assert index.find(table_of(kinds, wanted)).tolist() == [number.get(key, -1) for key in wanted]
    last = {key: i for i, key in enumerate(keys)}
    assert index.rows().tolist() == [last[key] for key, _ in sorted(number.items(), key=lambda x: x[1])]


@given(sides())
def test_repeated_keys_are_those_an_earlier_row_has(data):
    """The first row of each key is not one of them."""
    kinds, rows, _ = data
    keys = [key for key, _ in rows]
    expected = [key in keys[:i] for i, key in enumerate(keys)]
    table = table_of(kinds, keys)
    assert repeated_mask(table).tolist() == expected
    assert not (surely_distinct(table) and any(expected))


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.date32(), pa.timestamp("us")], ids=str)
def test_numbers_in_any_order_are_surely_distinct(kind):
    """Without an index; a repeated one, a NULL or a second column is left to the index."""
    there = pa.array([3, 1, 2], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    assert surely_distinct(pa.table({"k": there}))
    assert surely_distinct(pa.table({"k": there.slice(0, 0)}))
    assert not surely_distinct(pa.table({"k": pa.concat_arrays([there, there])}))
    assert not surely_distinct(pa.table({"k": pa.concat_arrays([there, pa.nulls(1, kind)])}))
    assert not surely_distinct(pa.table({"k": there, "l": there}))


@given(st.lists(st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1])))
def test_distinct_numbers_are_sorted(numbers):
    """As `np.unique` gives them, also where a difference would overflow."""
    assert distinct_numbers(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))


def test_one_number_for_a_whole_side_and_chunked_columns():
    """Files have one number for all of their rows, and tables come in chunks."""
    rows = pa.table({"k": pa.chunked_array([[1, 2], [3]])})
    logs = pa.table({"k": pa.chunked_array([[3], [1]])})
    assert hidden_mask(rows, 4, logs, 5).tolist() == [True, False, True]
    assert hidden_mask(rows, 5, logs, 5).tolist() == [False, False, False]


def test_texts_of_a_dictionary_and_of_any_length_are_the_same_keys():
    """What is encoded in the file makes no difference."""
    plain = pa.table({"k": pa.array(["a", "b"])})
    encoded = pa.table({"k": pa.array(["b", "c"]).dictionary_encode()})
    large = pa.table({"k": pa.array(["b", "a"], pa.large_string())})
    assert KeyIndex.of(plain).find(encoded).tolist() == [1, -1]
    assert KeyIndex.of(encoded).find(large).tolist() == [0, -1]


def test_many_columns_of_many_values_do_not_overflow():
    """Codes are renumbered after each column: twelve columns of ten thousand values stay apart."""
    generator = np.random.default_rng(7)
    columns = {f"k{i}": generator.permutation(10_000) for i in range(12)}
    table = pa.table(columns)
    index = KeyIndex.of(table)
    assert index.size == 10_000
    shuffled = generator.permutation(10_000)
    assert index.find(table.take(pa.array(shuffled))).tolist() == index.numbers[shuffled].tolist()


def test_a_key_without_columns_is_refused():
    """It would make all rows one."""
    with pytest.raises(ValueError, match="at least one column"):
        KeyIndex.of(pa.table({}))
