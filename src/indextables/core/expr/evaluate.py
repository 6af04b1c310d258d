"""What a bound expression gives: for rows, for bounds, and which states of its column lead to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from indextables.core.expr.functions import FUNCTIONS, VARYING, Blur, Range, Site, Windows, images_of
from indextables.core.expr.functions.spelled import Spelled
from indextables.core.expr.image import Image, Mask, Pieces, reaches
from indextables.core.expr.nodes import Call, Expression, Literal, Ref, Unknown, refs_of
from indextables.core.expr.vectors import Vector, is_text, vector_of
from indextables.core.expr.zones import UTC
from indextables.core.states import NOTHING, States, any_of, space_of
from indextables.core.types import DataType, FieldPath, is_float, path_text, type_to_arrow

ReadColumn: TypeAlias = Callable[[FieldPath], Any]
"""Returns a column's Arrow array."""


def type_of(expression: Expression) -> DataType | None:
    """Returns the type of a bound expression's value."""
    return expression.type if isinstance(expression, Ref | Call | Literal) else None


def site_of(call: Call, windows: Windows | None = None) -> Site:
    """Returns a bound call's constants and settings, as an entry of the function table wants them."""
    assert call.type is not None
    types = tuple(map(type_of, call.arguments))
    constants = tuple(part.value if isinstance(part, Literal) else VARYING for part in call.arguments)
    return Site(types, call.type, constants, call.mode, call.zone or UTC, windows)  # type: ignore[arg-type]


# The states of one column that lead to a result.


@dataclass(frozen=True)
class Chain:
    """A function of one column as the images of its steps, the innermost first."""

    path: FieldPath
    images: tuple[Image, ...]

    @property
    def exact(self) -> bool:
        """Returns whether preimages hold no state too many; beyond the splits' own bounds they may."""
        return all(image.exact for image in self.images)

    def preimage(self, wanted: States) -> States:
        """Returns the states of the column whose result is, or may be, wanted."""
        return _back(self.images, wanted)

    @cached_property
    def errors(self) -> States:
        """Returns the states of the column that raise an error, or may."""
        found = [_back(self.images[:i], image.errors()) for i, image in enumerate(self.images)]
        return any_of([states for states in found if not states.is_empty] or [NOTHING])


def _back(images: Sequence[Image], wanted: States) -> States:
    for image in reversed(images):
        if wanted.is_empty:
            return wanted
        wanted = image.preimage(wanted)
    return wanted


def chain_of(expression: Expression, windows: Callable[[FieldPath], Windows | None]) -> Chain | None:
    """Returns the expression as steps from its only column; None where it is no such expression."""
    column = expression
    while isinstance(column, Call):
        varying = [part for part in column.arguments if not isinstance(part, Literal)]
        if len(varying) != 1:
            return None
        column = varying[0]
    if not isinstance(column, Ref):
        return None
    return _chain(expression, column.path, column.type, windows(column.path))


@lru_cache(maxsize=256)
def _chain(
    expression: Expression,
    path: FieldPath,
    _type: DataType | None,  # columns of one name are equal, whatever their types
    where: Windows | None,
) -> Chain | None:
    calls: list[Call] = []
    while isinstance(expression, Call):
        calls.append(expression)
        expression = next(part for part in expression.arguments if not isinstance(part, Literal))
    images: list[Image] = []
    for call in reversed(calls):
        found = images_of(call.function, site_of(call, where))
        if found is None:
            return None
        for image in found:
            where = _through(image, where)
        images += found
    return Chain(path, tuple(images))


def _through(image: Image, windows: Windows | None) -> Windows | None:
    """Returns where the results of values in these windows are."""
    if not windows or not isinstance(image, Pieces) or not len(image.first):
        return windows if windows == () else None
    low, high = (np.array(ends, image.first.dtype) for ends in zip(*windows, strict=True))
    least, most, there = image.ranges(low, high)
    found: list[tuple[int, int]] = []
    for start, end in sorted(zip(least[there].tolist(), most[there].tolist(), strict=True)):
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found) or None


# Rows


def rows_of(expression: Expression, read: ReadColumn, count: int) -> Vector | None:
    """Returns the values of a bound expression; None where only an engine can compute them."""
    match expression:
        case Ref(path, dtype):
            assert dtype is not None
            return vector_of(read(path), dtype)
        case Call(arguments=arguments):
            vectors = [_argument(part, read, count) for part in arguments]
            if any(vector is None for vector in vectors):
                return None
            return _apply(expression, vectors)  # type: ignore[arg-type]
        case _:
            return None


def _argument(part: Expression, read: ReadColumn, count: int) -> Vector | None:
    if isinstance(part, Literal):
        assert part.type is not None
        nowhere = np.zeros(count, np.bool_)
        return Vector(part.type, _repeated(part.value, part.type, count), nowhere, nowhere, nowhere)
    return rows_of(part, read, count)


def _repeated(value: Any, dtype: DataType, count: int) -> Any:
    if is_text(dtype):
        return value
    ordinal = space_of(dtype).ordinal(value)
    return np.full(count, ordinal, object if abs(ordinal) >= 2**63 else np.int64)


def _apply(call: Call, vectors: Sequence[Vector]) -> Vector | None:
    function, site = FUNCTIONS[call.function], site_of(call)
    if (
        sum(k is VARYING for k in site.constants) == 1
        and (found := images_of(call.function, site)) is not None
    ):
        vector: Vector | None = vectors[site.varying]
        for image in found:
            vector = None if vector is None else _through_rows(image, vector)
        if vector is not None:
            return replace(vector, type=site.result)
    return None if function.rows is None else function.rows(site, vectors)


def _through_rows(image: Image, vector: Vector) -> Vector | None:
    if isinstance(image, Spelled):
        return image.rows(vector)
    if isinstance(image, Blur):
        return None if image.f is None else replace(vector, values=image.f(vector.values))
    if not isinstance(image, Pieces) or not len(image.first):
        return None
    y, outside = image.rows(vector.values)
    nowhere = np.zeros_like(vector.null)
    null, nan, error = (outside.get(kind, nowhere) for kind in ("null", "nan", "error"))
    masks = {"null": null, "nan": nan, "error": error}
    real = ~vector.null
    masks = {kind: mask & real & ~vector.nan for kind, mask in masks.items()}
    if vector.nan.any():
        if isinstance(image.of_nan, str):
            masks[image.of_nan] = masks[image.of_nan] | vector.nan
        else:
            y = np.where(vector.nan, image.of_nan, y)
    return Vector(
        vector.type, y, vector.null | masks["null"], masks["nan"], vector.error | masks["error"]
    )


def is_computable(expression: Expression) -> bool:
    """Returns whether `rows_of` can compute this bound expression, tried on no rows."""
    types = dict(_typed_refs(expression))
    return rows_of(expression, lambda path: pa.array([], type_to_arrow(types[path])), 0) is not None


def _typed_refs(expression: Expression) -> Iterator[tuple[FieldPath, DataType]]:
    match expression:
        case Ref(path, dtype) if dtype is not None:
            yield path, dtype
        case Call(arguments=arguments):
            for part in arguments:
                yield from _typed_refs(part)


# Bounds


def range_of(expression: Expression, of_column: Callable[[Ref], Range | None]) -> Range | None:
    """Returns what the columns' bounds say of a bound expression's value in each split."""
    match expression:
        case Ref():
            return of_column(expression)
        case Call(arguments=arguments):
            parts = [range_of(part, of_column) for part in arguments]
            known = [part for part in parts if part is not None]
            if len(known) < sum(not isinstance(part, Literal) for part in arguments) or not known:
                return None
            return _range_of_call(expression, parts, len(known[0].value))
        case _:
            return None


def _range_of_call(call: Call, parts: Sequence[Range | None], count: int) -> Range | None:
    site, function = site_of(call), FUNCTIONS[call.function]
    if sum(k is VARYING for k in site.constants) == 1:
        found, known = images_of(call.function, site), parts[site.varying]
        for image in found or ():
            known = None if known is None else _range_through(image, known)
        return None if not found or known is None else replace(known, type=site.result)
    if function.ranges is None:
        return None
    full = [
        part if part is not None else _constant_range(literal, count)  # type: ignore[arg-type]
        for part, literal in zip(parts, call.arguments, strict=True)
    ]
    return function.ranges(site, full)


def _constant_range(literal: Literal, count: int) -> Range:
    assert literal.type is not None
    ordinals, nowhere = _repeated(literal.value, literal.type, count), np.zeros(count, np.bool_)
    return Range(literal.type, ordinals, ordinals, ~nowhere, nowhere, nowhere, nowhere)


def _range_through(image: Image, known: Range) -> Range | None:
    if isinstance(image, Blur) and image.f is not None:
        first, end = image.within
        full = [np.full(len(known.value), cut, np.int64) for cut in (first, end - 1)]
        values = known.value | known.nan
        return replace(known, low=full[0], high=full[1], value=values, ends=None)
    if not isinstance(image, Pieces) or image.argument.kind == "bytes" or known.low.dtype == object:
        return None
    low, high, there = image.ranges(known.low, known.high)
    hits = {kind: _hits(known, getattr(image, kind)) for kind in ("null", "nan", "error", "anything")}
    value = known.value & (there | hits["anything"])
    if isinstance(image.of_nan, str):
        hits[image.of_nan] = hits[image.of_nan] | known.nan
    else:
        value, low = value | known.nan, np.where(known.nan, np.minimum(low, image.of_nan), low)
        high = np.where(known.nan, np.maximum(high, image.of_nan), high)
    if hits["anything"].any():
        first, end = image.result.universe
        low, high = np.where(hits["anything"], first, low), np.where(hits["anything"], end - 1, high)
    odd = hits["anything"]
    has_nan = is_float(known.type) or image.result.values.nan
    nan = hits["nan"] | (odd if has_nan else np.zeros_like(odd))
    return Range(
        known.type,
        low,
        high,
        value,
        known.null | hits["null"] | odd,
        nan,
        known.error | hits["error"] | odd,
    )


def _hits(known: Range, cuts: tuple[Any, ...]) -> Mask:
    return known.value & reaches(known.low, known.high, cuts) if cuts else np.zeros_like(known.value)


def why_not(expression: Expression) -> str:
    """Returns which function keeps bounds from saying anything of this value, and what would help; empty: none does."""
    match expression:
        case Unknown(text, _, why):
            return f"{text}: {why}" if why else text
        case Call(function, arguments):
            inner = next((found for part in arguments if (found := why_not(part))), "")
            if inner:
                return inner
            entry, site = FUNCTIONS[function], site_of(expression, ())
            if sum(k is VARYING for k in site.constants) > 1:
                stops = f"{function} takes several columns"
                return "" if entry.ranges is not None else f"{stops}; {_help(expression)}"
            images = images_of(function, site)
            if any(isinstance(image, Spelled) and not image.pieces for image in images or ()):
                return f"texts in the pattern of {function} do not sort as times do; yyyy-MM-dd, or a part of it, does"
            unordered = images is None or any(isinstance(i, Blur) and i.f is None for i in images)
            stops = f"{function} does not keep the order of its argument"
            return f"{stops}; {_help(expression)}" if unordered else ""
        case _:
            return ""


def _help(expression: Expression) -> str:
    columns = " and ".join(dict.fromkeys(map(path_text, refs_of(expression))))
    return f"a condition on {columns} beside it, or a column that holds its result, skips files"
