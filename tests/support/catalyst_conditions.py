"""Random conditions of Spark, drawn from its own functions, casts and operators, as SQL."""

from __future__ import annotations

import json
import random
from pathlib import Path

EDGE = 2**53
SIGNATURES: dict[str, list[list[str]]] = json.loads(
    (Path(__file__).parents[1] / "engines" / "spark" / "signatures.json").read_text("utf-8")
)
"""By function, [result, *arguments] of each combination of types that Spark takes."""
COLUMNS = {
    **{"l": "bigint", "m": "bigint", "st.l": "bigint", "i": "int", "h": "smallint", "c": "tinyint", "p": "int"},
    **{"f": "float", "x": "double", "n": "decimal(20,2)", "b": "boolean", "e": "binary", "a": "array<int>"},
    **{"s": "string", "t": "string", "st.s": "string", "q": "string", "d": "date", "z": "timestamp", "y": "timestamp_ntz"},
}  # fmt: skip
_LONGS = f"0L 1L -1L 5L 20L 300L 2024L 2147483647L 2147483648L 4294967301L {EDGE}L {EDGE + 1}L 9223372036854775807L -9223372036854775807L"
_NTZ = "2024-01-01 00:00:00|2024-01-03 12:00:00|1969-12-31 23:59:59.999999|2024-03-10 02:30:00|1900-01-01 00:00:00|2038-01-19 03:14:08"
CONSTANTS = {
    "boolean": ["true", "false"],
    "tinyint": ["5Y", "-1Y", "127Y", "0Y", "-128Y"],
    "smallint": ["5S", "300S", "-5S", "0S", "32767S"],
    "int": ["0", "1", "5", "20", "300", "-5", "-7", "60", "2024", "2147483647", "-2147483648", "12"],
    "bigint": _LONGS.split(),
    "float": ["0.1F", "0.5F", "20F", "16777216F", "float('NaN')", "-0.0F", "float('Infinity')"],
    "double": ["0.1D", "0.5D", "20D", f"{EDGE}D", "9.223372036854775807E18D", "double('NaN')", "-0.0D", "2.5D", "1E300D", "0.30000001192092896D"],
    "decimal(20,2)": ["0.01BD", "20.00BD", "2.50BD", "2147483648.00BD", "-0.50BD", "100BD", "9007199254740993BD"],
    "string": ["'abc'", "'ABC'", "'5'", "'b'", "''", "'2024-01-01'", "'abcde'", "'z'", "'é'", "'20'", "'a%'", "'K'", "'ss'", "'true'", "' 5'", "'İ'", "'a_b'"],
    "binary": ["X'616263'", "X'35'", "X''", "X'C3A9'"],
    "date": [f"DATE'{d}'" for d in ("2024-01-01", "2024-01-03", "2023-12-31", "2024-02-29", "1970-01-01", "1969-12-31", "1582-10-15", "1582-10-04", "0001-01-01", "9999-12-31", "1900-01-01", "+10000-01-01")],
    "timestamp": [f"TIMESTAMP'{t}'" for t in (*_NTZ.split("|"), "2024-01-02 23:30:00+05:45", "2024-11-03 01:30:00", "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00")],
    "timestamp_ntz": [f"TIMESTAMP_NTZ'{t}'" for t in (*_NTZ.split("|"), "0001-01-01 00:00:00")],
    "array<int>": ["array(1, 5)", "array()", "array(CAST(NULL AS INT), 20)"],
    "array<string>": ["array('abc', 'b')", "array('5', NULL)"],
    "map<string,int>": ["map('a', 1)", "map('abc', 5, 'b', NULL)"],
}  # fmt: skip
_NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,2)"]
_TIMES = ["date", "timestamp", "timestamp_ntz"]
_SCALARS = [*_NUMBERS, *_TIMES, "string", "boolean", "binary"]
_CASTS = [*_SCALARS, "decimal(10,3)", "decimal(38,10)"]
_ORDERS = ["=", "=", "<=>", "<", "<=", ">", ">=", "<>", "!="]
_COLLATIONS = ["UTF8_LCASE", "UTF8_BINARY_RTRIM", "UNICODE_CI"]
_INTERVALS = ["INTERVAL 1 DAY", "INTERVAL 1 MONTH", "INTERVAL -3 MONTH", "INTERVAL 1 YEAR", "INTERVAL 90 MINUTE", "INTERVAL '1 02:03:04' DAY TO SECOND"]  # fmt: skip
# Work and size of these follow a number, and a draw of 2147483647 took memory until the JVM was gone; which of them
# it was is not known. The first are left out, the others get few digits.
_UNBOUNDED = {"array_repeat", "lpad", "repeat", "rpad", "sequence", "space"}
_DIGITS = {"bround", "format_number", "round"}
_BY_RESULT: dict[str, list[tuple[str, list[str]]]] = {}
for _name, _found in SIGNATURES.items():
    if _name in _UNBOUNDED:
        continue
    for _result, *_arguments in _found:
        _BY_RESULT.setdefault(_result, []).append((_name, _arguments))


class Conditions:
    """Conditions in an endless row, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._pick = random.Random(seed)

    def next(self) -> str:
        """One condition: mostly a comparison, else several."""
        return self._condition(2)

    def value(self) -> tuple[str, str]:
        """One value that a view may name, and its type."""
        kind = self._pick.choice(_SCALARS)
        return self._value(kind, 2), kind

    def compared(self, value: str, kind: str) -> str:
        """One comparison of a value that has a name."""
        return self._comparison(value, kind, 1)

    def _condition(self, depth: int) -> str:
        kind = self._pick.random()
        if depth == 0 or kind < 0.62:
            return self._leaf()
        if kind < 0.7:
            return f"NOT ({self._condition(depth - 1)})"
        if kind < 0.74:
            word = self._pick.choice(["TRUE", "FALSE", "NULL", "NOT NULL", "NOT TRUE", "UNKNOWN"])
            return f"({self._condition(depth - 1)}) IS {word}"
        joint = self._pick.choice(["AND", "OR"])
        return f"({self._condition(depth - 1)}) {joint} ({self._condition(depth - 1)})"

    def _leaf(self) -> str:
        if self._pick.random() < 0.12:
            return self._value("boolean", 2)
        kind = self._pick.choice(_SCALARS)
        return self._comparison(self._value(kind, self._pick.choice([0, 1, 1, 2])), kind, 1)

    def _comparison(self, left: str, kind: str, depth: int) -> str:
        choice = self._pick.random()
        if choice < 0.5:
            right = self._value(self._near(kind), 0 if self._pick.random() < 0.7 else depth)
            pair = [left, right]
            if self._pick.random() < 0.15:
                pair.reverse()
            return f"{pair[0]} {self._pick.choice(_ORDERS)} {pair[1]}"
        if choice < 0.72:
            count = self._pick.choice([1, 2, 3, 11, 12, 14])
            near = self._near(kind)
            members = [self._pick.choice(CONSTANTS[near]) for _ in range(count)]
            if self._pick.random() < 0.15:
                members.append("NULL")
            word = self._pick.choice(["IN", "NOT IN"])
            return f"{left} {word} ({', '.join(members)})"
        if choice < 0.82:
            near = self._near(kind)
            word = self._pick.choice(["BETWEEN", "NOT BETWEEN"])
            low, high = (self._pick.choice(CONSTANTS[near]) for _ in range(2))
            return f"{left} {word} {low} AND {high}"
        if choice < 0.9 and kind == "string":
            word = self._pick.choice(["LIKE", "NOT LIKE", "ILIKE", "RLIKE"])
            pattern = self._pick.choice(["'a%'", "'ab%'", "'%b'", "'a_c%'", "'ABC'", "'%'", "'é%'", "'5%'", "'^ab'", "'a.c'"])  # fmt: skip
            return f"{left} {word} {pattern}"
        return f"{left} IS {self._pick.choice(['NULL', 'NOT NULL'])}"

    def _near(self, kind: str) -> str:
        """Returns a type that Spark compares with this one: mostly the same."""
        if self._pick.random() < 0.65:
            return kind
        if kind in _NUMBERS:
            return self._pick.choice([*_NUMBERS, *_NUMBERS, "string"])
        if kind in _TIMES:
            return self._pick.choice([*_TIMES, *_TIMES, "string"])
        return self._pick.choice(_SCALARS) if kind == "string" else kind

    def _value(self, kind: str, depth: int) -> str:
        columns = [name for name, of in COLUMNS.items() if of == kind]
        choice = self._pick.random()
        if depth == 0 or choice < 0.2:
            if columns and (depth or choice < 0.5):
                return self._pick.choice(columns)
            return self._pick.choice(CONSTANTS[kind])
        if choice < 0.4:
            return self._cast(kind, depth)
        if choice < 0.5:
            return self._chosen(kind, depth)
        if choice < 0.65 and kind in {*_NUMBERS, *_TIMES, "string"}:
            return self._operator(kind, depth)
        return self._call(kind, depth)

    def _cast(self, kind: str, depth: int) -> str:
        source = self._pick.choice([name for name in _CASTS if name in CONSTANTS])
        inner = self._value(source, depth - 1)
        if self._pick.random() < 0.2:
            inner = f"CAST({inner} AS {self._pick.choice(_CASTS)})"
        if kind not in _CASTS:
            return self._call(kind, depth)
        return f"{self._pick.choice(['CAST', 'CAST', 'try_cast'])}({inner} AS {kind})"

    def _chosen(self, kind: str, depth: int) -> str:
        one, two = self._value(kind, depth - 1), self._value(kind, 0)
        match self._pick.randrange(6):
            case 0:
                return f"coalesce({one}, {two})"
            case 1:
                return f"CASE WHEN {self._condition(0)} THEN {one} ELSE {two} END"
            case 2:
                return f"if({self._condition(0)}, {one}, {two})"
            case 3:
                return f"nullif({one}, {two})"
            case 4:
                return f"CASE WHEN {self._condition(0)} THEN {one} END"
            case _:
                return f"{self._pick.choice(['greatest', 'least'])}({one}, {two})"

    def _operator(self, kind: str, depth: int) -> str:
        if kind == "string":
            inner = self._value(kind, depth - 1)
            return f"({inner} COLLATE {self._pick.choice(_COLLATIONS)})"
        if kind in _TIMES:
            inner = self._value(kind, depth - 1)
            return f"({inner} {self._pick.choice('+-')} {self._pick.choice(_INTERVALS)})"
        one, two = self._value(kind, depth - 1), self._value(self._pick.choice([kind, kind, "int"]), 0)
        if self._pick.random() < 0.2:
            return f"(- {one})"
        return f"({one} {self._pick.choice(['+', '-', '*', '/', '%', 'div'])} {two})"

    def _call(self, kind: str, depth: int) -> str:
        known = _BY_RESULT.get(kind)
        if not known:
            return self._pick.choice(CONSTANTS[kind])
        name, arguments = self._pick.choice(known)
        values = [
            self._value("string" if of not in CONSTANTS else of, max(depth - 1, 0)) for of in arguments
        ]
        if name in _DIGITS and len(values) > 1:
            values[1] = self._pick.choice(["0", "1", "2", "-1", "-2"])
        return f"{name}({', '.join(values)})"
