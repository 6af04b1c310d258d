"""Long bounds leave the log; no row is ever lost for it."""

import logging

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import long_text, nasty_binary, nasty_text

from indextables.config import Config
from indextables.core.stats import SplitStats, collect_stats, from_wire, to_wire
from indextables.core.stats.truncate import (
    SUFFIX,
    TruncationMetrics,
    TruncationOptions,
    TruncationRule,
    log_truncation,
    lower_bound_of,
    lower_bounds,
    next_prefix,
    truncate_stats,
    upper_bound_of,
    upper_bounds,
)
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.errors import ConfigError

PREFIX = "spark.indextables.stats.truncation."
SCHEMA = StructType(
    (
        Field("id", PrimitiveType("string")),
        Field("long_text", PrimitiveType("string")),
        Field("text", PrimitiveType("string")),
        Field("data", PrimitiveType("binary")),
        Field("a.b", PrimitiveType("string")),
        Field("st", StructType((Field("b", PrimitiveType("string")),))),
    )
)
TEXT = ("text",)


def options(**settings):
    return TruncationOptions.from_config(Config.of(write={PREFIX + k: v for k, v in settings.items()}))


def rule(strategy, max_length):
    return TruncationOptions(default=TruncationRule(max_length, strategy))


def stats_of(low, high, path=TEXT, **more):
    return SplitStats(100, {path: low}, {path: high}, **more)


# --- the three unit tests of the truncation design --------------------------------------------


def test_statistics_truncation_drops_long_string_values_by_default():
    """Short values are preserved, long ones dropped."""
    stats = SplitStats(
        100,
        {("id",): "doc1", ("long_text",): "x" * 2000},
        {("id",): "doc999", ("long_text",): "y" * 2000},
    )
    truncated, _ = truncate_stats(stats, SCHEMA, options())
    assert truncated.min_values == {("id",): "doc1"}
    assert truncated.max_values == {("id",): "doc999"}
    assert truncated.dropped == {("long_text",)}


def test_statistics_truncation_respects_a_custom_length_threshold():
    """600 characters are too long where 512 is the limit."""
    truncated, _ = truncate_stats(stats_of("x" * 600, "y" * 600), SCHEMA, options(maxLength="512"))
    assert TEXT not in truncated.min_values
    assert TEXT not in truncated.max_values


def test_the_truncate_strategy_preserves_values_with_an_indicator():
    """The text is exactly as long as the limit allows and ends in the mark."""
    stats = stats_of("x" * 2000, "y" * 2000)
    truncated, _ = truncate_stats(stats, SCHEMA, options(strategy="truncate", maxLength="100"))
    assert truncated.min_values[TEXT].endswith("[TRUNCATED]")
    assert len(truncated.min_values[TEXT]) == 100
    assert len(truncated.max_values[TEXT]) == 100
    assert truncated.inexact_min == truncated.inexact_max == {TEXT}


# --- soundness ----------------------------------------------------------------------------------


def read_bounds(stats, path=TEXT):
    """The bounds as the pruner reads them, after a journey through JSON; None: unbounded."""
    stats = from_wire(to_wire(stats, SCHEMA), SCHEMA)
    low, high = stats.min_values.get(path), stats.max_values.get(path)
    if isinstance(low, str):
        low = lower_bound_of(low, inexact=path in stats.inexact_min)
    if isinstance(high, str):
        high = upper_bound_of(high, inexact=path in stats.inexact_max)
    return low, high


def in_bytes(value):
    return value.encode() if isinstance(value, str) else value


def assert_encloses(bounds, values):
    low, high = map(in_bytes, bounds)
    for value in map(in_bytes, values):
        assert low is None or low <= value
        assert high is None or value <= high


texts = st.lists(nasty_text | long_text, min_size=1, max_size=5)


@pytest.mark.parametrize("strategy", ["drop", "truncate", "bound"])
@given(values=texts, max_length=st.integers(13, 60))
@example(values=["\U0010ffff" * 70], max_length=13)
@example(values=["a\ud7ff" * 40], max_length=14)
@example(values=["x" + SUFFIX], max_length=13)
@example(values=["a" * 20, "a" * 19 + "\x00"], max_length=19)
def test_no_value_lies_outside_its_truncated_bounds(strategy, values, max_length):
    """Lower bound ≤ every value ≤ upper bound in UTF-8 byte order, for every strategy."""
    table = pa.table({"text": values})
    exact = collect_stats(table, SCHEMA, [TEXT])
    truncated, _ = truncate_stats(exact, SCHEMA, rule(strategy, max_length))
    assert_encloses(read_bounds(truncated), values)
    for bound in (*truncated.min_values.values(), *truncated.max_values.values()):
        assert len(bound) <= max_length


cuts = st.tuples(st.sampled_from(["truncate", "bound"]), st.integers(13, 70))


@given(values=texts, first=cuts, second=cuts)
@example(values=["a" * 8 + "z" * 50], first=("truncate", 20), second=("bound", 14))
@example(values=["a" * 8 + "\x00" * 50], first=("truncate", 20), second=("bound", 14))
@example(values=["a" * 50], first=("bound", 40), second=("truncate", 20))
def test_truncating_twice_is_as_sound_as_once(values, first, second):
    """A repair or an analysis may cut again what was cut before, by another strategy."""
    stats = collect_stats(pa.table({"text": values}), SCHEMA, [TEXT])
    for strategy, limit in (first, second):
        stats, _ = truncate_stats(stats, SCHEMA, rule(strategy, limit))
        assert_encloses(read_bounds(stats), values)


def test_a_bound_that_is_gone_is_no_longer_called_inexact():
    """And one of another column that was inexact before stays so."""
    both = frozenset({TEXT, ("id",)})
    stats = SplitStats(
        1, {TEXT: "a" * 50, ("id",): "x"}, {TEXT: "b", ("id",): "y"}, inexact_min=both, inexact_max=both
    )
    truncated, _ = truncate_stats(stats, SCHEMA, rule("drop", 20))
    assert truncated.inexact_min == truncated.inexact_max == {("id",)}


@pytest.mark.parametrize("strategy", ["drop", "truncate", "bound"])
@given(values=st.lists(nasty_binary, min_size=1, max_size=5), max_length=st.integers(0, 20))
@example(values=[b"\xff" * 30], max_length=3)
def test_no_bytes_lie_outside_their_truncated_bounds(strategy, values, max_length):
    """Binary is counted in bytes, and a mark is never put into it."""
    path = ("data",)
    exact = collect_stats(pa.table({"data": pa.array(values, pa.binary())}), SCHEMA, [path])
    truncated, metrics = truncate_stats(exact, SCHEMA, rule(strategy, max_length))
    assert_encloses(read_bounds(truncated, path), values)
    assert all(column.strategy != "truncate" for column in metrics.truncated.values())


@given(values=texts, max_length=st.integers(13, 60))
def test_an_older_writers_cut_is_read_soundly(values, max_length):
    """The older writer cut UTF-16 units, reserved 14, listed nothing, and left half characters as '?'."""

    def cut(text):
        units = text.encode("utf-16-le")
        if len(units) // 2 <= max_length:
            return text
        head = units[: max(0, max_length - 14) * 2].decode("utf-16-le", "surrogatepass")
        return head.encode("utf-8", "replace").decode() + SUFFIX

    low, high = cut(min(values, key=str.encode)), cut(max(values, key=str.encode))
    assert_encloses(read_bounds(stats_of(low, high)), values)


@given(nasty_text)
def test_a_real_value_that_ends_like_a_mark_is_read_soundly(text):
    """A split that holds just this text is still found by it, listed as inexact or not."""
    value = text + SUFFIX
    assert_encloses(read_bounds(stats_of(value, value)), [value])
    listed = stats_of(value, value, inexact_min=frozenset({TEXT}), inexact_max=frozenset({TEXT}))
    assert_encloses(read_bounds(listed), [value])


@pytest.mark.parametrize(
    ("stored", "inexact", "low", "high"),
    [
        ("abc [TRUNCATED]", True, "abc", "abd"),
        ("abc [TRUNCATED]", False, "ab", "ac"),
        ("abc... [TRUNCATED]", False, "ab", "ac"),
        ("a [TRUNCATED]", False, "", None),
        (" [TRUNCATED]", True, "", None),
        (" [TRUNCATED]", False, "", None),
        ("\ud7ff [TRUNCATED]", True, "\ud7ff", "\ue000"),
        ("plain", True, "plain", "plain"),
        ("plain", False, "plain", "plain"),
        ("abc [TRUNCATED] ", False, "abc [TRUNCATED] ", "abc [TRUNCATED] "),
    ],
)
def test_how_a_stored_text_is_read(stored, inexact, low, high):
    """A listed prefix is believed whole, an unlisted one less its last character."""
    assert lower_bound_of(stored, inexact=inexact) == low
    assert upper_bound_of(stored, inexact=inexact) == high


@given(st.lists(st.none() | nasty_text, max_size=10), st.data())
def test_a_column_of_bounds_is_read_as_each_of_them_is(stored, data):
    """The bulk reading is the same function."""
    column = pa.array(stored, pa.large_string())
    listed = data.draw(
        st.none()
        | st.lists(st.booleans(), min_size=len(stored), max_size=len(stored)).map(
            lambda b: np.array(b, bool)
        )
    )
    flags = [False] * len(stored) if listed is None else listed.tolist()
    rows = list(zip(stored, flags, strict=True))
    assert lower_bounds(column, listed).to_pylist() == [
        t and lower_bound_of(t, inexact=i) for t, i in rows
    ]
    assert upper_bounds(column, listed).to_pylist() == [
        t and upper_bound_of(t, inexact=i) for t, i in rows
    ]


@given(nasty_text, nasty_text)
def test_the_next_prefix_is_above_all_that_starts_with_the_prefix(prefix, rest):
    """And nothing between the two starts otherwise."""
    following = next_prefix(prefix)
    if following is None:
        assert set(prefix) <= {"\U0010ffff"}
    else:
        assert (prefix + rest).encode() < following.encode()
        if rest.encode() < following.encode() and rest.encode() >= prefix.encode():
            assert rest.startswith(prefix)


# --- which side, which column -------------------------------------------------------------------


def test_a_short_maximum_stays_exact_beside_a_shortened_minimum():
    """Only the side that is too long becomes inexact."""
    stats = stats_of("a" * 50, "b")
    for strategy in ("truncate", "bound"):
        truncated, _ = truncate_stats(stats, SCHEMA, rule(strategy, 20))
        assert truncated.max_values[TEXT] == "b"
        assert truncated.inexact_min == {TEXT}
        assert truncated.inexact_max == frozenset()


def test_drop_takes_the_short_side_along():
    """Half a range would look as if the other half were lost."""
    truncated, _ = truncate_stats(stats_of("a" * 50, "b"), SCHEMA, rule("drop", 20))
    assert truncated.min_values == truncated.max_values == {}


def test_a_maximum_without_a_next_prefix_is_omitted():
    """Nothing in Unicode is above it."""
    truncated, _ = truncate_stats(stats_of("a" * 50, "\U0010ffff" * 50), SCHEMA, rule("bound", 20))
    assert truncated.min_values[TEXT] == "a" * 20
    assert TEXT not in truncated.max_values
    assert truncated.dropped == {TEXT}


def test_a_limit_of_zero_keeps_no_text():
    """Only the empty text is not longer than nothing."""
    for strategy in ("drop", "bound"):
        truncated, _ = truncate_stats(stats_of("a", "b"), SCHEMA, rule(strategy, 0))
        assert truncated.min_values == truncated.max_values == {}
        assert truncated.inexact_min == truncated.inexact_max == frozenset()
        empty = stats_of("", "")
        assert truncate_stats(empty, SCHEMA, rule(strategy, 0))[0] is empty


def test_partition_columns_and_numbers_are_never_truncated():
    """Pruning by partition needs the whole value."""
    stats = SplitStats(1, {TEXT: "x" * 2000, ("id",): 10**3000}, {TEXT: "x" * 2000})
    assert truncate_stats(stats, SCHEMA, options(), ["text"])[0] is stats


def test_truncation_can_be_switched_off():
    """Then even a strategy and limit that cannot work together do no harm."""
    stats = stats_of("x" * 2000, "y" * 2000)
    off = options(enabled="false", strategy="truncate", maxLength="5")
    assert truncate_stats(stats, SCHEMA, off) == (stats, TruncationMetrics())


def test_a_column_can_have_its_own_limit_and_strategy():
    """Nested fields are dotted, a literal dot is in backticks, and case does not matter."""
    chosen = options(
        **{
            "maxLength": "20",
            "column.TEXT.strategy": "bound",
            "column.`a.b`.maxLength": "40",
            "column.st.b.strategy": "truncate",
            "column.st.b.maxLength": "30",
        }
    )
    paths = [TEXT, ("a.b",), ("st", "b"), ("id",)]
    stats = SplitStats(1, dict.fromkeys(paths, "a" * 35), dict.fromkeys(paths, "b" * 35))
    truncated, metrics = truncate_stats(stats, SCHEMA, chosen)
    assert truncated.min_values == {
        ("a.b",): "a" * 35,
        TEXT: "a" * 20,
        ("st", "b"): "a" * 18 + SUFFIX,
    }
    assert truncated.max_values[TEXT] == "b" * 19 + "c"
    assert truncated.dropped == {("id",)}
    assert metrics.columns == 3


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"maxLength": "abc"},
        {"maxLength": "-1"},
        {"maxLength": "1.5"},
        {"maxLength": ""},
        {"enabled": "maybe"},
        {"strategy": "truncate", "maxLength": "5"},
        {"strategy": "truncate", "maxLength": "12"},
        {"column.text.strategy": "truncate", "maxLength": "12"},
        {"column.text.maxLength": "x"},
        {"column.a..b.maxLength": "5"},
    ],
    ids=str,
)
def test_a_setting_that_cannot_work_is_an_error_up_front(settings):
    """Before any data is written, with the key in the message."""
    with pytest.raises(ConfigError, match="spark.indextables.stats.truncation"):
        options(**settings)


def test_a_limit_that_cannot_work_is_named_as_it_was_set():
    """That of the column if it is the column's: the limit of all others is fine."""
    with pytest.raises(ConfigError, match=r"truncation\.column\.Text\.maxLength is 3, but") as caught:
        options(**{"strategy": "truncate", "column.Text.maxLength": "3"})
    assert caught.value.key.endswith("column.Text.maxLength")
    with pytest.raises(ConfigError, match=r"truncation\.maxLength is 3, but"):
        options(**{"maxLength": "3", "column.text.strategy": "truncate"})


def test_an_unknown_strategy_is_a_warning_and_drops(caplog):
    """The words are those of the design."""
    assert options(strategy="invalid").default.strategy == "drop"
    assert caplog.messages == ["Unknown truncation strategy 'invalid', using 'drop'"]
    assert caplog.records[0].levelno == logging.WARNING
    assert caplog.records[0].name.startswith("indextables")


# --- what is told -------------------------------------------------------------------------------


def test_a_commit_logs_each_column_once_with_its_longest_bounds(caplog):
    """A thousand splits make one line per column, not a thousand."""
    caplog.set_level(logging.INFO, "indextables")
    path = ("article_content",)
    total = TruncationMetrics()
    for low, high in ((4523, 2000), (10, 8912), (1500, 1500)):
        _, metrics = truncate_stats(stats_of("a" * low, "b" * high, path), SCHEMA, options())
        total += metrics
    log_truncation(total)
    assert caplog.messages == [
        "Truncating statistics for column 'article_content' (min length: 4523, max length: 8912, strategy: drop)",
        f"Statistics truncated: 1 columns, estimated size reduction: {4523 + 2000 + 10 + 8912 + 3000} bytes",
    ]


def test_nothing_truncated_logs_nothing(caplog):
    """Short tables stay quiet."""
    caplog.set_level(logging.DEBUG, "indextables")
    stats = stats_of("a", "b")
    same, metrics = truncate_stats(stats, SCHEMA, options())
    log_truncation(metrics)
    assert same is stats
    assert not caplog.messages


def test_the_saving_is_what_the_log_line_loses():
    """Counted in the bytes of the wire, not in characters."""
    _, dropped = truncate_stats(stats_of("é" * 100, "ü" * 100), SCHEMA, rule("drop", 10))
    assert dropped.bytes_saved == 400
    _, bounded = truncate_stats(stats_of("é" * 100, "b"), SCHEMA, rule("bound", 10))
    assert bounded.bytes_saved == 180
    _, binary = truncate_stats(stats_of(b"x" * 9, b"y"), SCHEMA, rule("drop", 3))
    assert binary.bytes_saved == 12 + 4
