"""The function table: one module a family, one entry a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from indextables.core.expr.functions import (
    arithmetic,
    cast,
    dialects,
    rounding,
    spelled,
    text,
    time,
)
from indextables.core.expr.functions.function import VARYING, Blur, Function, Range, Site, Windows
from indextables.core.expr.image import Image

__all__ = ["FUNCTIONS", "VARYING", "Blur", "Function", "Range", "Site", "Windows", "images_of"]

FUNCTIONS: Final[Mapping[str, Function]] = {
    function.name: function
    for family in (cast, arithmetic, rounding, time, text, spelled, dialects)
    for function in family.FUNCTIONS
}
"""Every function that is known, by its name: Spark's name where Spark has one, words where it has none."""


@lru_cache(maxsize=1024)
def images_of(function: str, site: Site) -> Sequence[Image] | None:
    """Returns the images of one call, which every batch of rows and every plan asks for again."""
    return FUNCTIONS[function].images(site)
