"""Functions of text: what keeps the order prunes, what does not is computed on rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.expr.functions.function import VARYING, Blur, Function, Signature, Site
from indextables.core.expr.image import Image
from indextables.core.expr.vectors import Vector
from indextables.core.states import EMPTY, NOTHING, TOP, Cut, Cuts, Ordinals, States, space_of, union
from indextables.core.stats.truncation_options import next_prefix
from indextables.core.types import DataType, PrimitiveType

STRING: Final = PrimitiveType("string")
_INT: Final = PrimitiveType("integer")
_TEXT: Final = space_of(STRING)
_ALL: Final[Cuts] = (b"", TOP)


def _one_text(result: DataType) -> Callable[[Sequence[DataType], DataType | None], Signature | None]:
    def signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
        return ((STRING,), result) if list(types) == [STRING] else None

    return signature


def _texts(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return (tuple(types), STRING) if types and all(kind == STRING for kind in types) else None


def _places(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return (tuple(types), STRING) if types[0] == STRING and all(k == _INT for k in types[1:]) else None


def _blur(within: Cuts) -> Callable[[Site], Sequence[Image] | None]:
    return lambda site: (Blur(site.argument, site.space, within),)


@dataclass(frozen=True, eq=False)
class Shortened:
    """The first `length` characters, which sort as the whole texts do."""

    length: int
    argument: Ordinals = _TEXT
    result: Ordinals = _TEXT
    exact: bool = True

    def preimage(self, wanted: States) -> States:
        """Returns the texts whose beginning is wanted."""
        cuts = tuple(map(self._cut, wanted.cuts))
        pairs = zip(cuts[::2], cuts[1::2], strict=True)
        return States(union([pair for pair in pairs if pair[0] < pair[1]] or [EMPTY]), wanted.null)

    def _cut(self, cut: Cut) -> Cut:
        """Returns the cut below the least text whose beginning is not below this one."""
        if cut is TOP:
            return TOP
        text = cut.decode("utf-8", "surrogateescape")
        if len(text) <= self.length:
            return cut
        # no text of that length lies between its beginning and the cut
        head = text[: self.length].encode("utf-8", "surrogateescape")
        return after_prefix(head)

    def errors(self) -> States:
        """Returns nothing: every text has a beginning."""
        return NOTHING


def after_prefix(prefix: bytes) -> Cut:
    """Returns the cut above all texts that begin so."""
    end = next_prefix(prefix)
    return TOP if end is None else end


@dataclass(frozen=True, eq=False)
class Prefixed:
    """A constant text before each text."""

    prefix: bytes
    argument: Ordinals = _TEXT
    result: Ordinals = _TEXT
    exact: bool = True

    def preimage(self, wanted: States) -> States:
        """Returns what is left of the wanted texts behind the prefix."""
        pairs = zip(wanted.cuts[::2], wanted.cuts[1::2], strict=True)
        found = [(self._rest(start), self._rest(end)) for start, end in pairs]
        return States(union([pair for pair in found if pair[0] < pair[1]] or [EMPTY]), wanted.null)

    def _rest(self, cut: Cut) -> Cut:
        if cut is TOP:
            return TOP
        if cut.startswith(self.prefix):
            return cut[len(self.prefix) :]
        return b"" if cut < self.prefix else TOP

    def errors(self) -> States:
        """Returns nothing."""
        return NOTHING


@dataclass(frozen=True, eq=False)
class Folded:
    """A text in one case: what is wanted says how the text may begin, in any spelling."""

    to: Callable[[str], str]
    argument: Ordinals = _TEXT
    result: Ordinals = _TEXT
    exact: bool = False

    def preimage(self, wanted: States) -> States:
        """Returns every text that begins in a spelling of what all wanted texts begin with."""
        pairs = list(zip(wanted.cuts[::2], wanted.cuts[1::2], strict=True))
        if len(pairs) > _MOST_WANTED:
            return States(_ALL, wanted.null)
        return States(union([self._spelled(*pair) for pair in pairs] or [EMPTY]), wanted.null)

    def _spelled(self, start: Cut, end: Cut) -> Cuts:
        spellings, others = [b""], []
        for letter in _common_head(start, end):
            plain, beyond = _spellings(self.to, letter)
            if len(spellings) * len(plain) > _MOST_SPELLINGS:
                break
            # what follows a letter beyond ASCII may be part of what it becomes: ß is SS in capitals
            others += [before + option for before in spellings for option in beyond]
            spellings = [before + option for before in spellings for option in plain]
        found = sorted({*spellings, *others})
        return union([(head, after_prefix(head) if head else TOP) for head in found] or [EMPTY])

    def errors(self) -> States:
        """Returns nothing."""
        return NOTHING


_MOST_WANTED: Final = 200
_MOST_SPELLINGS: Final = 64


def _common_head(start: Cut, end: Cut) -> str:
    """Returns the ASCII text that all between two cuts begin with."""
    if end is TOP:
        return ""
    size = 0
    while size < min(len(start), len(end)) and start[size] == end[size] and start[size] < 128:
        size += 1
    # of [abc, abd) all begin with abc: the last byte before the end is one less
    if (
        size == len(end) - 1
        and size < len(start)
        and end[size] == start[size] + 1
        and start[size] < 128
    ):
        size += 1
    return start[:size].decode()  # type: ignore[no-any-return]


@lru_cache(maxsize=512)
def _spellings(to: Callable[[str], str], letter: str) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Returns the ASCII letters that become this one, and the others whose other case begins with it."""
    plain = tuple(chr(code).encode() for code in range(128) if to(chr(code)) == letter)
    return plain, tuple(char.encode() for char in _beyond_ascii(to) if to(char).startswith(letter))


@lru_cache(maxsize=4)
def _beyond_ascii(to: Callable[[str], str]) -> tuple[str, ...]:
    """Returns the characters beyond ASCII whose other case begins with ASCII."""
    codes = (code for code in range(128, 0x20000) if not 0xD800 <= code < 0xE000)
    return tuple(char for char in map(chr, codes) if to(char)[:1].isascii())


# Rows


def _text_rows(compute: Callable[[Any], Any]) -> Callable[[Site, Sequence[Vector]], Vector | None]:
    def rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
        (texts,) = (v for v, k in zip(vectors, site.constants, strict=True) if k is VARYING)
        return Vector(site.result, compute(texts.values), texts.null, texts.nan, texts.error)

    return rows


def by_distinct(to: Callable[[str], str]) -> Callable[[Any], Any]:
    """Returns a function of texts that computes each distinct text once."""

    def compute(texts: Any) -> Any:
        encoded = texts.dictionary_encode()
        kept = encoded.dictionary
        return pa.array([to(text) for text in kept.to_pylist()], kept.type).take(encoded.indices)

    return compute


def _length_rows(site: Site, vectors: Sequence[Vector]) -> Vector:
    texts = vectors[0]
    values = pc.fill_null(pc.utf8_length(texts.values), 0).to_numpy(zero_copy_only=False)
    return Vector(site.result, values.astype(np.int64), texts.null, texts.nan, texts.error)


def _span(site: Site) -> tuple[int, int | None] | None:
    """Returns first place and length of a substring by constants; the first character is place 1, as is 0."""
    places = site.constants[1:]
    if VARYING in places or site.constants[0] is not VARYING or None in places:
        return None
    at, length = places[0], (places[1] if len(places) > 1 else None)
    return (at, length)


def _substring(site: Site) -> Sequence[Image] | None:
    span = _span(site)
    if span is None:
        return None
    at, length = span
    if at in {0, 1} and length is None:
        return (Shortened(2**31),)
    if at in {0, 1} and length is not None and length > 0:
        return (Shortened(length),)
    return (Blur(site.argument, site.space, _ALL),)


def _substring_rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
    span = _span(site)
    if span is None or span[0] < 0:
        return None
    at, length = max(span[0] - 1, 0), span[1]
    stop = None if length is None else at + max(length, 0)
    values = pc.utf8_slice_codeunits(vectors[0].values, start=at, stop=stop)
    return Vector(site.result, values, vectors[0].null, vectors[0].nan, vectors[0].error)


def _left(site: Site) -> Sequence[Image] | None:
    span = _span(site)
    return (Shortened(span[0]),) if span is not None and span[0] > 0 else None


def _left_rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
    span = _span(site)
    if span is None:
        return None
    values = pc.utf8_slice_codeunits(vectors[0].values, start=0, stop=max(span[0], 0))
    return Vector(site.result, values, vectors[0].null, vectors[0].nan, vectors[0].error)


def _concat(site: Site) -> Sequence[Image] | None:
    first, *rest = (k for k in site.constants if k is VARYING or k != "")
    if first is VARYING and not rest:
        return (Shortened(2**31),)
    if isinstance(first, str) and rest == [VARYING]:
        return (Prefixed(first.encode()),)
    return (Blur(site.argument, site.space, _ALL),)


def _concat_rows(site: Site, vectors: Sequence[Vector]) -> Vector:
    pairs = zip(vectors, site.constants, strict=True)
    parts = [v.values.cast(pa.string()) if k is VARYING else pa.scalar(k) for v, k in pairs]
    values = pc.binary_join_element_wise(*parts, "")
    null = np.logical_or.reduce([v.null for v in vectors])
    error = np.logical_or.reduce([v.error for v in vectors])
    return Vector(site.result, values, null, np.zeros_like(null), error)


_SAMPLE: Final = ((STRING,),)
_ASCII_BLANK: Final = " "

FUNCTIONS: Final = (
    Function(
        "lower",
        _one_text(STRING),
        lambda _: (Folded(str.lower),),
        _text_rows(by_distinct(str.lower)),
        catalyst="Lower",
        samples=_SAMPLE,
    ),
    Function(
        "upper",
        _one_text(STRING),
        lambda _: (Folded(str.upper),),
        _text_rows(by_distinct(str.upper)),
        catalyst="Upper",
        samples=_SAMPLE,
    ),
    Function(
        "length", _one_text(_INT), _blur((0, 2**31)), _length_rows, catalyst="Length", samples=_SAMPLE
    ),
    Function(
        "trim",
        _one_text(STRING),
        _blur(_ALL),
        _text_rows(lambda v: pc.utf8_trim(v, _ASCII_BLANK)),
        catalyst="StringTrim",
        samples=_SAMPLE,
    ),
    Function(
        "ltrim",
        _one_text(STRING),
        _blur(_ALL),
        _text_rows(lambda v: pc.utf8_ltrim(v, _ASCII_BLANK)),
        catalyst="StringTrimLeft",
        samples=_SAMPLE,
    ),
    Function(
        "rtrim",
        _one_text(STRING),
        _blur(_ALL),
        _text_rows(lambda v: pc.utf8_rtrim(v, _ASCII_BLANK)),
        catalyst="StringTrimRight",
        samples=_SAMPLE,
    ),
    Function(
        "substring",
        _places,
        _substring,
        _substring_rows,
        catalyst="Substring",
        samples=((STRING, 1, 2), (STRING, 0, 1), (STRING, 2, 2), (STRING, 2)),
    ),
    Function("left", _places, _left, _left_rows, samples=((STRING, 1), (STRING, 3))),
    Function(
        "concat",
        _texts,
        _concat,
        _concat_rows,
        catalyst="Concat",
        samples=(("a", STRING), (STRING, "z"), (STRING, STRING)),
    ),
)
