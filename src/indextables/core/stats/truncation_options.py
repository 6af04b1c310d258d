"""How a truncated bound is read, and the options that say which bounds are truncated.

A stored text that ends in ` [TRUNCATED]` is a prefix, and bounds of all texts with that prefix are used.
If the log does not list it as inexact, either an older writer cut it or the text really ends like that.
Nobody can tell, so it is read in a way that is true in both cases. Older writers counted UTF-16 units and
may have cut a character in half, so the last character of their prefix is not trusted, and neither are
dots that mean "and so on".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import (
    TRUNCATION_ENABLED,
    TRUNCATION_MAX_LENGTH,
    TRUNCATION_STRATEGY,
    ColumnSetting,
    Config,
)
from indextables.core.types.types import FieldPath, StructType, leaves, parse_path, resolve
from indextables.errors import ConfigError, UnknownColumnError

SUFFIX: Final = " [TRUNCATED]"
_DOTS: Final = ".…"
_Mask: TypeAlias = npt.NDArray[np.bool_]


@overload
def next_prefix(prefix: str) -> str | None: ...
@overload
def next_prefix(prefix: bytes) -> bytes | None: ...
def next_prefix(prefix: str | bytes) -> str | bytes | None:
    r"""Returns the least value above everything that starts with `prefix`; None if there is none.

    >>> next_prefix("ab"), next_prefix("a\U0010ffff"), next_prefix(b"a\xff"), next_prefix("")
    ('ac', 'b', b'b', None)
    """
    if isinstance(prefix, bytes):
        head = prefix.rstrip(b"\xff")
        return head[:-1] + bytes([head[-1] + 1]) if head else None
    text = prefix.rstrip("\U0010ffff")
    if not text:
        return None
    point = ord(text[-1]) + 1
    # chr(0xD800) exists in Python but not in UTF-8: skip the surrogates.
    return text[:-1] + chr(0xE000 if point == 0xD800 else point)


def is_marked(text: str) -> bool:
    """Returns whether a stored text looks like a prefix."""
    return text.endswith(SUFFIX)


def stem(text: str, *, inexact: bool) -> str:
    """Returns the longest text with which the real value of a stored bound is known to begin."""
    if not is_marked(text):
        return text
    cut = text[: -len(SUFFIX)]
    return cut if inexact else cut.rstrip(_DOTS)[:-1]


def lower_bound_of(text: str, *, inexact: bool) -> str:
    """Returns a text that no value of the split is below, given the stored minimum."""
    return stem(text, inexact=inexact)


def upper_bound_of(text: str, *, inexact: bool) -> str | None:
    """Returns a text that no value of the split is above, given the stored maximum; None if there is none."""
    return next_prefix(stem(text, inexact=inexact)) if is_marked(text) else text


def marked(values: pa.Array) -> _Mask:
    """Returns which stored texts look like prefixes; a bound that does is never exact."""
    found = pc.ends_with(values, SUFFIX).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def lower_bounds(values: pa.Array, inexact: _Mask | None) -> pa.Array:
    """Returns `lower_bound_of` of each minimum in a column; null means unknown."""
    rows = marked(values)
    if not rows.any():
        return values
    return _replaced(values, rows, _stems(values.filter(pa.array(rows)), _at(inexact, rows)))


def upper_bounds(values: pa.Array, inexact: _Mask | None) -> pa.Array:
    """Returns `upper_bound_of` of each maximum in a column; null means unknown or unbounded."""
    rows = marked(values)
    if not rows.any():
        return values
    stems = _stems(values.filter(pa.array(rows)), _at(inexact, rows))
    return _replaced(values, rows, _next_prefixes(stems))


def _at(inexact: _Mask | None, rows: _Mask) -> _Mask:
    return np.zeros(int(rows.sum()), dtype=bool) if inexact is None else inexact[rows]


def _stems(texts: pa.Array, inexact: _Mask) -> pa.Array:
    listed = pc.utf8_slice_codeunits(texts, 0, -len(SUFFIX))
    if inexact.all():
        return listed
    unlisted = pc.utf8_slice_codeunits(pc.utf8_rtrim(listed, characters=_DOTS), 0, -1)
    return pc.if_else(pa.array(inexact), listed, unlisted)


def _next_prefixes(texts: pa.Array) -> pa.Array:
    """Returns `next_prefix` of each text; last characters repeat, so each distinct one is raised once."""
    last = pc.utf8_slice_codeunits(texts, -1, 2**31 - 1).dictionary_encode()
    raised = pa.array([next_prefix(c) for c in last.dictionary.to_pylist()], texts.type)
    ends = raised.take(last.indices)
    joined = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(texts, 0, -1), ends, pa.scalar("", texts.type)
    )
    carried = np.asarray(ends.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if not carried.any():
        return joined
    slow = [next_prefix(text) for text in texts.filter(pa.array(carried)).to_pylist()]
    return _replaced(joined, carried, pa.array(slow, texts.type))


def _replaced(values: pa.Array, rows: _Mask, replacements: pa.Array) -> pa.Array:
    return pc.replace_with_mask(values, pa.array(rows), replacements)


# Options: which bounds are too long, and what becomes of them, for each column.

Strategy: TypeAlias = Literal["drop", "truncate", "bound"]
_STRATEGIES: Final[Mapping[str, Strategy]] = {"drop": "drop", "truncate": "truncate", "bound": "bound"}
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TruncationRule:
    """The length above which a bound is truncated, and how."""

    max_length: int = TRUNCATION_MAX_LENGTH.default
    strategy: Strategy = "drop"


@dataclass(frozen=True, slots=True)
class TruncationOptions:
    """The rule for each column; names of columns are compared without regard to case."""

    enabled: bool = True
    default: TruncationRule = TruncationRule()
    columns: Mapping[FieldPath, TruncationRule] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: Config, *, warns: bool = True) -> TruncationOptions:
        """Returns the options in force; raises ConfigError if they cannot work, before data is written."""
        unknown = dict.fromkeys(name for name in _strategies(config) if name not in _STRATEGIES)
        for name in unknown if warns else ():
            _logger.warning("Unknown truncation strategy '%s', using 'drop'", name)
        default = TruncationRule(
            config.get(TRUNCATION_MAX_LENGTH), _strategy(config.get(TRUNCATION_STRATEGY))
        )
        columns: dict[FieldPath, TruncationRule] = {}
        lengths: dict[FieldPath, str] = {}
        for setting in config.column_settings():
            path = _folded(_path(setting))
            rule = columns.get(path, default)
            if setting.option is TRUNCATION_MAX_LENGTH:
                columns[path] = replace(rule, max_length=setting.value)
                lengths[path] = setting.key
            else:
                columns[path] = replace(rule, strategy=_strategy(setting.value))
        enabled = config.get(TRUNCATION_ENABLED)
        for path, rule in {(): default, **columns}.items() if enabled else ():
            _check(rule, lengths.get(path, TRUNCATION_MAX_LENGTH.key))
        return cls(enabled, default, columns)

    def dropping(self) -> TruncationOptions:
        """Returns the same lengths, with every bound that is too long left out instead of cut."""
        columns = {path: replace(rule, strategy="drop") for path, rule in self.columns.items()}
        return replace(self, default=replace(self.default, strategy="drop"), columns=columns)

    def rule(self, path: FieldPath) -> TruncationRule:
        """Returns the rule for one column or nested field."""
        return self.columns.get(_folded(path), self.default) if self.columns else self.default


def ignored_overrides(config: Config, schema: StructType) -> Iterator[tuple[str, str]]:
    """Yields key and reason of each override that has no effect, because the table lacks the column."""
    known = {_folded(leaf.path) for leaf in leaves(schema)}
    for setting in config.column_settings():
        path = _path(setting)
        if _folded(path) in known:
            continue
        try:
            resolve(schema, path)
        except UnknownColumnError as error:
            yield setting.key, f"{error.message}; {error.hint}"
        else:
            yield setting.key, f"{setting.column!r} is a struct; name one of its fields"


def _path(setting: ColumnSetting) -> FieldPath:
    try:
        return parse_path(setting.column)
    except UnknownColumnError as e:
        raise ConfigError(
            f"{setting.key} does not name a column: {e.message}", hint=e.hint, key=setting.key
        ) from e


def _folded(path: FieldPath) -> FieldPath:
    return tuple(name.lower() for name in path)


def _strategies(config: Config) -> Iterator[str]:
    """Yields every strategy that is set, for the table and for its columns."""
    yield config.get(TRUNCATION_STRATEGY)
    for setting in config.column_settings():
        if setting.option is TRUNCATION_STRATEGY:
            yield setting.value


def _strategy(name: str) -> Strategy:
    return _STRATEGIES.get(name, "drop")


def _check(rule: TruncationRule, key: str) -> None:
    if rule.strategy == "truncate" and rule.max_length <= len(SUFFIX):
        raise ConfigError(
            f"{key} is {rule.max_length}, but the mark of the strategy 'truncate' takes {len(SUFFIX)} characters",
            hint=f"set it to {len(SUFFIX) + 1} or more, or use the strategy 'drop' or 'bound'",
            key=key,
            value=rule.max_length,
        )
