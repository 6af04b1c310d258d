"""Lines of adds, as good and as bad as writers make them, and what is read of them."""

import json

from hypothesis import strategies as st

from indextables.log.bulk import Body
from indextables.log.lines import find_lines
from indextables.log.parse import parse_adds
from indextables.log.segments import Shape
from support.logs import METADATA, text_of

SHAPE = Shape.of(METADATA)
NAME = "000000000000000004.json"

words = st.text(max_size=4) | st.sampled_from(["Infinity", "NaN", "2024-01-01", "5", ""])
loose = (
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats()
    | words
    | st.lists(words, max_size=2)
)
columns = st.sampled_from(["id", "name", "score", "price", "at", "tags", "day", "gone"])
values = st.dictionaries(columns, loose, max_size=4) | st.fixed_dictionaries(
    {"st": st.dictionaries(st.sampled_from("abc"), loose, max_size=2) | loose}
)
all_stats = st.dictionaries(
    st.sampled_from(
        ["numRecords", "minValues", "maxValues", "nullCount", "nanCount", "inexact", "dropped", "more"]
    ),
    values | loose | st.lists(st.lists(words, max_size=2), max_size=2),
    max_size=5,
)


def body_of(text, *, trusted=False, version=4, position=1):
    lines = find_lines(NAME, text)
    strays = [(i, name, value) for i, name, value, _ in lines.others() if name in ("add", "remove")]
    return Body(lines, version, position, trusted, tuple(strays))


def adds(*lines, **options):
    return parse_adds([body_of(text_of(lines), **options)], SHAPE, "/t").table


def orjson_dumps(value):
    """JSON with what orjson refuses: numbers beyond 64 bits, and NaN as a token."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
