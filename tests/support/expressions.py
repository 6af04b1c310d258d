"""Calls of every function of the table over one column, and values at the edges of its type."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from indextables.core.bind.values import typed
from indextables.core.expr.functions import FUNCTIONS
from indextables.core.expr.nodes import Call, Expression, Literal, Ref
from indextables.core.states import States, holds, space_of
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType

_TYPES = (PrimitiveType, DecimalType)
DAY = 86_400_000_000


def samples() -> Iterator[tuple[str, tuple[Call, DataType]]]:
    """Yields for each function its samples: the call over a column `x`, and the column's type."""
    for name, function in FUNCTIONS.items():
        for sample in function.samples:
            found = _call(name, sample)
            if found is not None:
                yield name, found


def _call(name: str, sample: tuple[Any, ...]) -> tuple[Call, DataType] | None:
    function = FUNCTIONS[name]
    if name in {"cast", "rounded cast", "truncated cast"}:
        source, target = sample
        return Call(name, (Ref(("x",), source),), target), source
    parts = [part if isinstance(part, _TYPES) else _constant(part) for part in sample]
    own = [part if isinstance(part, _TYPES) else part.type for part in parts]
    signature = function.signature(own, None)
    assert signature is not None, (name, sample)
    wanted, result = signature
    column = next(kind for kind, part in zip(wanted, parts, strict=True) if isinstance(part, _TYPES))
    arguments: list[Expression] = []
    for kind, part in zip(wanted, parts, strict=True):
        arguments.append(Ref(("x",), kind) if isinstance(part, _TYPES) else _as(part, kind))
    return Call(name, tuple(arguments), result), column


def _constant(value: Any) -> Literal:
    return value if isinstance(value, Literal) else typed(Literal(value))


def _as(literal: Literal, kind: DataType) -> Literal:
    if kind in (PrimitiveType("double"), PrimitiveType("float")):
        return Literal(float(literal.value), kind)
    return (
        Literal(Decimal(literal.value), kind)
        if isinstance(kind, DecimalType)
        else Literal(literal.value, kind)
    )


_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "AB",
    "b",
    "z",
    "k",
    "K",
    "\u212a",
    "İ",
    "ß",
    "SS",
    "ſ",
    "aΣ",
    "aΣA",
    "ﬁx",
    "FIX",
    " a ",
    "a\0",
    "ab\U0010ffff",
    "é",
    "É",
    "abc",
    "ABC",
    "xa",
    "\ud7ff",
    "\ue000",
]
_DOUBLES = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    1.5,
    2.5,
    -2.5,
    0.49999999999999994,
    1e300,
    -1e300,
    2.0**31,
    2.0**31 - 0.5,
    -(2.0**31) - 0.9,
    2.0**63,
    -(2.0**63),
    9.2e18,
    9007199254740993.0,
    1e-300,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
    100.25,
    -7.75,
]


def edges(dtype: DataType, rng: random.Random) -> list[Any]:
    """Returns physical values: ends of the type, places where functions turn, random ones, NULL."""
    match dtype:
        case PrimitiveType(name) if name in INTEGERS:
            top = 2 ** (INTEGERS[name] - 1)
            fixed = [
                -top,
                -top + 1,
                top - 1,
                top - 2,
                0,
                1,
                -1,
                7,
                -7,
                100,
                -100,
                top // 2,
                -(top // 2),
            ]
            drawn = [rng.randrange(-top, top) for _ in range(10)] + [
                rng.randrange(-128, 128) for _ in range(10)
            ]
            return [*(v for v in fixed + drawn if -top <= v < top), None]
        case PrimitiveType("boolean"):
            return [True, False, None]
        case PrimitiveType("float" | "double" as name):
            import numpy as np

            drawn = [rng.gauss(0, 10 ** rng.choice((0, 3, 10, 20))) for _ in range(15)]
            with np.errstate(over="ignore"):
                return [
                    *(float(np.float32(v)) if name == "float" else v for v in _DOUBLES + drawn),
                    None,
                ]
        case PrimitiveType("date"):
            drawn = [rng.randrange(-800_000, 3_000_000) for _ in range(15)]
            near = [rng.randrange(18_000, 20_500) for _ in range(15)]
            return [
                0,
                1,
                -1,
                3,
                4,
                19_782,
                19_783,
                10_956,
                11_016,
                -719_162,
                2_932_896,
                *drawn,
                *near,
                None,
            ]
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            days = edges(PrimitiveType("date"), rng)[:-1]
            times = [
                d * DAY + rng.choice((0, 1, -1, rng.randrange(DAY), 3_600_000_000 * rng.randrange(24)))
                for d in days
            ]
            # around changes of clocks: New York 2024, Havana 2024, Kathmandu 1986
            turns = [1_710_054_000, 1_730_613_600, 1_710_046_800, 1_730_610_000, 504_901_800]
            around = [
                t * 1_000_000
                + rng.choice(
                    (-1, 0, 1, -3_600_000_000, 1_800_000_000, 5_400_000_000, -DAY, DAY, -40 * DAY)
                )
                for t in turns
                for _ in range(6)
            ]
            return [*times, *around, None]
        case PrimitiveType("string"):
            letters = "aAkKsSiIßΣé z"
            drawn = ["".join(rng.choice(letters) for _ in range(rng.randrange(5))) for _ in range(15)]
            return [*(t for t in _TEXTS if t.isprintable() or True), *drawn, None]
        case DecimalType(precision, scale):
            top = 10**precision - 1
            drawn = [rng.randrange(-top, top + 1) for _ in range(10)] + [
                rng.randrange(-999, 1000) for _ in range(10)
            ]
            return [*(_decimal(v, scale) for v in [0, 1, -1, top, -top, *drawn]), None]
        case _:
            raise AssertionError(dtype)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def is_among(outcome: Any, states: States) -> bool:
    """Returns whether an outcome is one of these states."""
    if outcome == "null":
        return states.null
    if outcome == "nan":
        return states.nan
    return outcome != "error" and holds(states.cuts, outcome)


def state_of(value: Any, dtype: DataType) -> Any:
    """Returns a physical value as its ordinal, or 'null' or 'nan'."""
    if value is None:
        return "null"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return space_of(dtype).ordinal(value)


def wanted_among(outcomes: list[Any], result: DataType, rng: random.Random) -> States:
    """Returns some states, the cuts near outcomes."""
    space = space_of(result)
    known = sorted({o for o in outcomes if not isinstance(o, str)})
    first, end = space.universe
    cuts = set()
    for _ in range(rng.choice((2, 2, 4))):
        cut = rng.choice([first, end, *known]) if known else rng.choice([first, end])
        if isinstance(cut, int):
            cut = min(max(cut + rng.choice((-1, 0, 0, 1)), first), end)
        cuts.add(cut)
    ordered = sorted(cuts)
    return States(
        tuple(ordered[: len(ordered) // 2 * 2]),
        rng.random() < 0.5,
        space.values.nan and rng.random() < 0.5,
    )


def windows_over(ordinals: list[int], rng: random.Random) -> tuple[tuple[int, int], ...]:
    """Returns a few intervals that hold these ordinals."""
    if not ordinals:
        return ()
    cuts = sorted({0, len(ordinals), *(rng.randrange(len(ordinals) + 1) for _ in range(3))})
    parts = [ordinals[a:b] for a, b in zip(cuts, cuts[1:], strict=False) if a < b]
    found: list[tuple[int, int]] = []
    for part in parts:
        if found and part[0] <= found[-1][1]:
            found[-1] = (found[-1][0], part[-1])
        else:
            found.append((part[0], part[-1]))
    return tuple(found)
