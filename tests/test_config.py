"""Options: what they accept, and who decides."""

import datetime as dt
import logging
import re

import pytest

from indextables.config import (
    PREFIX,
    Option,
    CHECKPOINT_FORMAT,
    CHECKPOINT_INTERVAL,
    FAST_FIELDS,
    LOG_RETENTION,
    NUM_INDEXED_COLS,
    OPTIONS,
    REPAIR_FAIL_ON_MISSING,
    TARGET_FILE_SIZE,
    TRUNCATION_ENABLED,
    TRUNCATION_MAX_LENGTH,
    TRUNCATION_STRATEGY,
    VACUUM_RETENTION,
    Config,
    layered,
    options_markdown,
)
from indextables.errors import ConfigError

KEY = TRUNCATION_MAX_LENGTH.key
LAYERS = ("write", "session", "hadoop", "table")


@pytest.mark.parametrize("first", range(4))
def test_the_nearest_setting_wins(first):
    """Write option over session over Hadoop over table property, whatever the others say."""
    layers = {name: {KEY: str(number)} for number, name in enumerate(LAYERS)}
    for name in LAYERS[:first]:
        del layers[name]
    assert Config.of(**layers).get(TRUNCATION_MAX_LENGTH) == first


def test_without_a_setting_the_default_counts():
    """The defaults are those of the design."""
    config = Config.of()
    assert config.get(TRUNCATION_ENABLED) is True
    assert config.get(TRUNCATION_MAX_LENGTH) == 1024
    assert config.get(TRUNCATION_STRATEGY) == "drop"
    assert config.get(NUM_INDEXED_COLS) == 32
    assert config.get(FAST_FIELDS) == ()
    assert config.get(TARGET_FILE_SIZE) == 128 * 1024 * 1024
    assert config.get(LOG_RETENTION) == dt.timedelta(days=30)
    assert config.get(VACUUM_RETENTION) == dt.timedelta(days=7)
    assert config.validate() is config


def test_keys_are_compared_without_case():
    """Spark hands some of them over in lower case."""
    assert Config.of(write={KEY.lower(): 7}).get(TRUNCATION_MAX_LENGTH) == 7
    assert Config.of(session={KEY: 1}, write={KEY.upper(): 2}).get(TRUNCATION_MAX_LENGTH) == 2


ACCEPTED = [
    (TRUNCATION_ENABLED, "FALSE", False),
    (TRUNCATION_ENABLED, False, False),
    (TRUNCATION_MAX_LENGTH, " 512 ", 512),
    (TRUNCATION_STRATEGY, "TRUNCATE", "truncate"),
    (FAST_FIELDS, " a , st.b,`x,y` ,", ("a", "st.b", "`x,y`")),
    (FAST_FIELDS, ["a", "b"], ("a", "b")),
    (TARGET_FILE_SIZE, "1048576", 1 << 20),
    (TARGET_FILE_SIZE, "2 GiB", 2 << 30),
    (TARGET_FILE_SIZE, "512k", 512 << 10),
    (CHECKPOINT_FORMAT, "Parquet", "parquet"),
    (CHECKPOINT_INTERVAL, 0, 0),
    (LOG_RETENTION, "interval 2 weeks", dt.timedelta(weeks=2)),
    (LOG_RETENTION, "36h", dt.timedelta(hours=36)),
    (LOG_RETENTION, "0 seconds", dt.timedelta(0)),
    (REPAIR_FAIL_ON_MISSING, None, False),
]


def _name(part: object) -> str:
    """The same in every test process: an option holds functions, and those print their address."""
    return part.key if isinstance(part, Option) else str(part)


@pytest.mark.parametrize(("option", "text", "value"), ACCEPTED, ids=_name)
def test_a_value_is_read_as_its_option_says(option, text, value):
    """Python values are welcome where a text would be; None is as good as unset."""
    assert Config.of(write={option.key: text}).get(option) == value


REFUSED = [
    (TRUNCATION_ENABLED, "yes"),
    (TRUNCATION_MAX_LENGTH, "abc"),
    (TRUNCATION_MAX_LENGTH, "-1"),
    (TRUNCATION_MAX_LENGTH, "1e3"),
    (TRUNCATION_MAX_LENGTH, "١"),
    (NUM_INDEXED_COLS, "-2"),
    (TARGET_FILE_SIZE, "0"),
    (TARGET_FILE_SIZE, "-5MB"),
    (TARGET_FILE_SIZE, "big"),
    (CHECKPOINT_FORMAT, "csv"),
    (LOG_RETENTION, "7"),
    (LOG_RETENTION, "7 parsecs"),
    (LOG_RETENTION, "9" * 30 + " days"),
]


@pytest.mark.parametrize(("option", "text"), REFUSED, ids=_name)
def test_a_bad_value_is_an_error_that_says_what_would_be_good(option, text):
    """Key, value, kind and default are all in it."""
    config = Config.of(write={option.key: text})
    for check in (lambda: config.get(option), config.validate):
        with pytest.raises(ConfigError) as caught:
            check()
        assert option.key in str(caught.value)
        assert option.kind in caught.value.hint
        assert caught.value.value == text


def test_an_unknown_key_is_a_warning_with_a_suggestion(caplog):
    """Its value is not repeated: it may be a secret."""
    Config.of(
        write={"spark.indextables.stats.truncation.maxLenght": "1"},
        session={"spark.indextables.aws.secretKey": "hunter2", "spark.sql.shuffle.partitions": "5"},
    )
    assert sorted(caplog.messages) == [
        "Unknown option 'spark.indextables.aws.secretKey' is ignored",
        f"Unknown option 'spark.indextables.stats.truncation.maxLenght' is ignored; did you mean '{KEY}'?",
    ]
    assert {(r.levelno, r.name) for r in caplog.records} == {(logging.WARNING, "indextables.config")}


def test_settings_for_one_column_are_known_keys(caplog):
    """A column's name may have dots, backticks and any case."""
    prefix = "spark.indextables.stats.truncation.column."
    config = Config.of(write={prefix + "a.B.maxLength": "5", prefix + "`x.y`.STRATEGY": "bound"})
    assert [(s.column, s.option, s.value) for s in config.column_settings()] == [
        ("a.B", TRUNCATION_MAX_LENGTH, 5),
        ("`x.y`", TRUNCATION_STRATEGY, "bound"),
    ]
    assert not caplog.messages


def test_every_option_is_in_the_documentation_once():
    """The table is rendered from the options themselves."""
    table = options_markdown()
    keys = re.findall(r"^\| `(.+?)` ", table, re.MULTILINE)
    prefix = "spark.indextables.stats.truncation.column.<name>."
    assert keys == [*(option.key for option in OPTIONS), prefix + "maxLength", prefix + "strategy"]
    assert len({option.key.lower() for option in OPTIONS}) == len(OPTIONS)
    assert (
        "| `spark.indextables.stats.truncation.strategy` | drop, truncate or bound | `drop` |" in table
    )


def test_layers_are_compared_without_case_and_the_strongest_keeps_its_spelling():
    """Spark lower-cases the options of a write; a value of None sets nothing."""
    strong = {KEY.lower(): "1", "other.software": "x", PREFIX + "checkpoint.interval": None}
    weak = {KEY: "2", PREFIX + "checkpoint.interval": "7"}
    assert layered(strong, None, weak) == {KEY.lower(): "1", PREFIX + "checkpoint.interval": "7"}


def test_settings_stand_over_weaker_ones_and_say_nothing_for_the_rest():
    """A table's properties fill in what neither the call nor the session has said."""
    config = Config.of(session={KEY: "1"}).over({KEY: "2", PREFIX + "checkpoint.interval": "7"})
    assert (config.get(TRUNCATION_MAX_LENGTH), config.get(CHECKPOINT_INTERVAL)) == (1, 7)
