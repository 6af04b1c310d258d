"""Rows of a large segment are found by the hashes of their keys, and they are exactly the right ones."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from indextables.log.state import segments
from indextables.log.state.segments import KeyIndex


class SmallKeyIndex(KeyIndex):
    """The index of a large segment over a small one."""

    _LARGE, _OFTEN = 0, 0


KEYS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        ["data/0-ab/part-0.parquet", "data/0-ab/part-1.parquet", "x" * 300, "x" * 299 + "y"]
    ),
    st.builds(
        "data/{}-{}/part-{}.parquet".format, st.integers(0, 3), st.text(max_size=9), st.integers(0, 9)
    ),
    st.builds(lambda a, b: "d" * a + b, st.integers(0, 270), st.text(max_size=12)),
)


@given(st.lists(KEYS, max_size=30), st.lists(KEYS, max_size=8), st.integers(0, 30), st.integers(0, 5))
def test_an_index_of_keys_finds_exactly_the_rows_that_have_one_of_them(have, asked, cut, skipped):
    """Whatever their lengths, and however the column is cut into chunks; asked twice, it says the same."""
    whole = pa.array([*have, *asked[:2]], pa.string())
    column = pa.chunked_array([whole[:cut], whole[cut:]], pa.string())
    keys = pa.array(["left out"] * skipped + asked, pa.string())[skipped:]
    index = SmallKeyIndex()
    for _ in range(2):
        assert index.mask(column, keys).tolist() == [key in asked for key in whole.to_pylist()]


def test_keys_of_one_hash_are_told_apart(monkeypatch):
    """The hash only says where to look."""
    monkeypatch.setattr(segments, "_hashes", lambda keys: np.zeros(len(keys), np.uint64))
    column = pa.chunked_array([["data/a/1", "data/a/2", "data/a/1"]])
    assert SmallKeyIndex().mask(column, pa.array(["data/a/1", "data/b/1"])).tolist() == [
        True,
        False,
        True,
    ]
