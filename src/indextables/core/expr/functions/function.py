"""What an entry of the function table says: types, modes, and what it makes of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from indextables.core.expr.image import Array, Image, Mask, Pieces, first_where
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import Vector
from indextables.core.expr.zones import Zone
from indextables.core.states import EMPTY, NOTHING, Cuts, Ordinals, States, space_of
from indextables.core.types import DataType

Windows: TypeAlias = tuple[tuple[Any, Any], ...]
"""Where values of a column are, as closed intervals of ordinals; elsewhere nothing need be exact."""


class _Varying:
    """Stands for an argument that is no constant."""

    def __repr__(self) -> str:
        return "VARYING"


VARYING: Final = _Varying()


@dataclass(frozen=True, slots=True)
class Site:
    """One call of a function: what stands in its places, and under which settings."""

    types: tuple[DataType, ...]
    result: DataType
    constants: tuple[Any, ...]
    """Physical values; VARYING for what differs from row to row."""
    mode: Mode
    zone: Zone
    windows: Windows | None = None

    @property
    def varying(self) -> int:
        """Returns the place of the first argument that is no constant."""
        return self.constants.index(VARYING)

    @property
    def argument(self) -> Ordinals:
        """Returns the space of that argument."""
        return space_of(self.types[self.varying])

    @property
    def space(self) -> Ordinals:
        """Returns the space of the result."""
        return space_of(self.result)


Signature: TypeAlias = tuple[tuple[DataType, ...], DataType]
"""The types a function takes its arguments in, and that of its result."""


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """What is known of a value in each split: its least and greatest ordinal, and the states beside values."""

    type: DataType
    low: Array
    high: Array
    value: Mask
    null: Mask
    nan: Mask
    error: Mask
    ends: tuple[int, int] | None = None
    """Between these lie all of the ordinals, where that is known without a look at each."""


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the function table."""

    name: str
    signature: Callable[[Sequence[DataType], DataType | None], Signature | None]
    """The types Spark's SQL casts the arguments to; given their own, and the result's where it is known."""
    images: Callable[[Site], Sequence[Image] | None] = lambda _: None
    """One argument varies: the images of the steps that lead from it to the result, in order."""
    rows: Callable[[Site, Sequence[Vector]], Vector | None] | None = None
    """Rows, where no image gives them or several arguments vary."""
    ranges: Callable[[Site, Sequence[Range]], Range | None] | None = None
    """What bounds say where several arguments vary."""
    modes: tuple[Mode, ...] = (Mode.ANSI,)
    """The modes it tells apart."""
    zoned: bool = False
    """Its result depends on the zone."""
    samples: tuple[tuple[Any, ...], ...] = ()
    """Arguments that tests try: a type stands for a column, a Literal or a bare value for a constant."""
    result: Callable[[Sequence[DataType], Sequence[Any]], DataType | None] | None = None
    """The type of the result where constants decide it; given all types, and the constants or VARYING."""
    catalyst: str = ""
    """Spark's class of it, where its arguments are ours in the same order and it has no mode."""
    of_spark: bool = True
    """Spark has it; the others belong to other engines."""


# Images that many functions share.


@dataclass(frozen=True, eq=False)
class Blur:
    """A function of which only the possible results are known."""

    argument: Ordinals
    result: Ordinals
    within: Cuts
    may_null: bool = False
    may_raise: bool = False
    f: Callable[[Array], Array] | None = None
    """The results of values, where these can be computed."""
    exact: bool = False

    def preimage(self, wanted: States) -> States:
        """Returns every value if a wanted result is possible at all."""
        possible = _meet(wanted.cuts, self.within) or wanted.nan or (wanted.null and self.may_null)
        values = self.argument.values
        return States(values.cuts if possible else EMPTY, wanted.null, values.nan and possible)

    def errors(self) -> States:
        """Returns every value if one may raise."""
        return self.argument.values if self.may_raise else NOTHING


def _meet(one: Cuts, two: Cuts) -> bool:
    pairs = zip(one[::2], one[1::2], strict=True)
    others = list(zip(two[::2], two[1::2], strict=True))
    return any(start < end and begin < stop for start, stop in pairs for begin, end in others)


def array_of(values: Sequence[int], *spaces: Ordinals) -> Array:
    """Returns ordinals in an array that has room for the values of these spaces."""
    wide = any(space.universe[1] > 2**63 for space in spaces)
    return np.array(values, object if wide else np.int64)


def whole(site: Site, f: Callable[[Array], Array]) -> Pieces:
    """Returns a function that is monotone over all values, each of which has a result."""
    first, end = site.argument.universe
    ends = array_of([first], site.argument), array_of([end - 1], site.argument)
    return Pieces(site.argument, site.space, *ends, f)


def outside_kind(mode: Mode) -> str:
    """Returns what a value without a result becomes, in most functions."""
    return "error" if mode is Mode.ANSI else "null"


def bounded(
    site: Site, exact: Callable[[Array], Array], fast: Callable[[Array], Array] | None = None
) -> Pieces:
    """Returns a monotone function that has no result where it would leave the result's type.

    `exact` takes and gives Python's integers, and may give any; `fast` does the same in 64 bits, where the
    result fits.
    """
    argument, result = site.argument, site.space
    low, end = argument.universe
    least, most = result.universe[0], result.universe[1] - 1
    ends = np.array([low], object), np.array([end - 1], object)
    rising = bool(exact(ends[1])[0] >= exact(ends[0])[0])
    begun = (lambda x: exact(x) >= least) if rising else (lambda x: exact(x) <= most)
    over = (lambda x: exact(x) > most) if rising else (lambda x: exact(x) < least)
    (start,), (stop,) = first_where(*ends, begun), first_where(*ends, over)
    gaps = [(low, end)] if start >= stop else [(low, start), (stop, end)]
    outside = tuple(cut for gap in gaps if gap[0] < gap[1] for cut in gap)
    pieces = [(start, stop - 1)] if start < stop else []
    first, last = (array_of([pair[i] for pair in pieces], argument, result) for i in (0, 1))
    f = exact
    if first.dtype != object:
        f = fast or (lambda x: exact(x.astype(object)).astype(np.int64))
    return Pieces(argument, result, first, last, f, **{outside_kind(site.mode): outside})  # type: ignore[arg-type]


def periodic(
    site: Site,
    starts: Callable[[Any, Any], Array],
    f: Callable[[Array], Array],
    within: Cuts,
    count: Callable[[Any, Any], float],
) -> Image:
    """Returns a function that is monotone on each of many periods: pieces only where values are.

    `starts(low, high)` gives the first ordinals of the periods from the one that holds `low` to the one
    that holds `high`; `count` says about how many these are.
    """
    argument, windows = site.argument, site.windows
    if windows is None or sum(count(low, high) for low, high in windows) > MOST_PERIODS:
        return Blur(argument, site.space, within, f=f)
    firsts, lasts, outside = [], [], []
    at, end = argument.universe
    for low, high in windows:
        begin = starts(low, high)
        begin[0] = low
        firsts.append(begin)
        lasts.append(np.append(begin[1:] - 1, high))
        outside += [at, low] if at < low else []
        at = high + 1
    outside += [at, end] if at < end else []
    empty = [np.zeros(0, np.int64)]
    first, last = np.concatenate(firsts or empty), np.concatenate(lasts or empty)
    return Pieces(argument, site.space, first, last, f, anything=tuple(outside))


MOST_PERIODS: Final = 20_000
"""Of a function with more periods than these where values are, only the possible results are known."""
