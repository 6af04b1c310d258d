"""Random comparisons under random casts, as SQL that does not raise on the rows of `cast_tables`."""

from __future__ import annotations

import random

EDGE = 2**53
_NUMBERS = {
    "TINYINT": ["CAST(5 AS TINYINT)", "-1Y", "44Y"],
    "SMALLINT": ["5S", "299S", "-5S", "0S"],
    "INT": ["0", "5", "20", "300", "-5", "2147483647"],
    "BIGINT": ["0L", "20L", f"{EDGE}L", f"{EDGE + 1}L", "2147483648L", f"{2**63 - 1}L", "5L", "4294967301L"],
    "FLOAT": ["0.1F", "0.5F", "20F", "16777216F", "float('NaN')", "-0.0F"],
    "DOUBLE": ["0.1D", "0.5D", "20D", f"{EDGE}D", "9.223372036854775807E18D", "double('NaN')", "-0.0D", "0.30000001192092896D"],
    "DECIMAL(10,3)": ["0.125", "20.000", "2.5", "37.5"],
    "DECIMAL(20,0)": [f"{EDGE}BD", f"{EDGE + 1}BD", "20BD"],
    "DECIMAL(38,10)": ["20.5000000000", "0.1250000000"],
}  # fmt: skip
_TEXTS = ["'abc'", "'ABC'", "'5'", "'b'", "''", "'2024-01-01'", "'abcde'", "'z'", "'é'", "'20'"]
_DATES = ["DATE'2024-01-01'", "DATE'2024-01-03'", "DATE'2024-01-09'", "DATE'2023-12-31'"]
_ZONED = ["TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2024-01-03 04:00:00.000001'", "TIMESTAMP'2024-01-02 23:30:00+05:45'"]  # fmt: skip
_LOCAL = ["TIMESTAMP_NTZ'2024-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-01-03 12:00:00'", "TIMESTAMP_NTZ'2024-01-05 00:00:00'"]  # fmt: skip
_FOLDED = "STRING COLLATE UTF8_LCASE"
CONSTANTS: dict[str, list[str]] = {
    **_NUMBERS,
    "STRING": _TEXTS,
    _FOLDED: [f"CAST({text} AS {_FOLDED})" for text in _TEXTS],
    "DATE": _DATES,
    "TIMESTAMP": _ZONED,
    "TIMESTAMP_NTZ": _LOCAL,
    "BOOLEAN": ["true", "false"],
    "BINARY": ["X'616263'", "X'35'", "X''"],
}
COLUMNS = {
    **{"l": "BIGINT", "m": "BIGINT", "st.l": "BIGINT", "i": "INT", "h": "SMALLINT", "p": "INT"},
    **{"f": "FLOAT", "x": "DOUBLE", "n": "DECIMAL(10,3)", "w": "DECIMAL(20,0)"},
    **{"s": "STRING", "t": "STRING", "st.s": "STRING", "b": "BOOLEAN"},
    **{"d": "DATE", "st.d": "DATE", "q": "DATE", "z": "TIMESTAMP", "y": "TIMESTAMP_NTZ"},
}
# What Spark compares without an error, whatever the values: it finds the common type itself.
_FAMILIES = [[*_NUMBERS], ["STRING"], [_FOLDED], ["DATE", "TIMESTAMP", "TIMESTAMP_NTZ"], ["BOOLEAN"], ["BINARY"]]  # fmt: skip
_BETWEEN = ["CHAR(4)", "VARCHAR(3)", "DECIMAL(6,1)"]
_ORDERS = ["=", "<=>", "<", "<=", ">", ">=", "<>"]


class Conditions:
    """Conditions in an endless row, the same for the same seed; `ansi` says which casts may raise."""

    def __init__(self, seed: int, *, ansi: bool) -> None:
        self._pick = random.Random(seed)
        self._ansi = ansi

    def next(self) -> str:
        """One condition: mostly a comparison, else several."""
        if self._pick.random() < 0.6:
            return self._leaf()
        kind = self._pick.choice(["NOT", "AND", "OR", "OR"])
        if kind == "NOT":
            return f"NOT ({self._leaf()})"
        first = self._leaf() if self._pick.random() < 0.7 else f"({self.next()})"
        return f"({first}) {kind} ({self._leaf()})"

    def _leaf(self) -> str:
        family = self._pick.choice(
            [_FAMILIES[0], _FAMILIES[0], _FAMILIES[0], *_FAMILIES[1:], _FAMILIES[3]]
        )
        left = self._value(family)
        roll = self._pick.random()
        if roll < 0.35:
            count = self._pick.choice([1, 2, 3, 11, 12, 13])
            kind = self._pick.choice(family)
            listed = [self._constant([kind]) for _ in range(count)]
            if count > 10 and kind in {
                "DOUBLE",
                "BIGINT",
                "DECIMAL(10,3)",
            }:  # distinct ones make an InSet
                suffix = {"DOUBLE": ".5D", "BIGINT": "L", "DECIMAL(10,3)": ".125"}[kind]
                listed += [f"{n}{suffix}" for n in range(12)]
            elif count > 10 and family == _FAMILIES[3]:
                listed += [
                    f"{kind}'2024-01-{n:02} 00:00:00'"[: 17 if kind == "DATE" else 99]
                    for n in range(1, 13)
                ]
                listed = [text if text.endswith("'") else f"{text}'" for text in listed]
            elif count > 10 and "STRING" in kind:
                listed += [f"CAST('k{n}' AS {kind})" for n in range(12)]
            null = ["NULL"] if self._pick.random() < 0.1 else []
            return f"{left} {self._pick.choice(['', 'NOT '])}IN ({', '.join([*listed, *null])})"
        if roll < 0.4:
            return f"{left} IS {self._pick.choice(['', 'NOT '])}NULL"
        if roll < 0.45:
            return f"{left} BETWEEN {self._constant(family)} AND {self._constant(family)}"
        right = self._constant(family) if roll < 0.75 else self._value(family)
        sides = [left, right] if self._pick.random() < 0.8 else [right, left]
        return f"{sides[0]} {self._pick.choice(_ORDERS)} {sides[1]}"

    def _constant(self, family: list[str]) -> str:
        return self._pick.choice(CONSTANTS[self._pick.choice(family)])

    def _value(self, family: list[str]) -> str:
        """A column of the family, as it is or under one cast or two."""
        own = [name for name, kind in COLUMNS.items() if kind in family]
        if own and self._pick.random() < 0.3:
            return self._pick.choice(own)
        name = self._pick.choice(own if own and self._pick.random() < 0.6 else [*COLUMNS])
        inner = name
        if self._pick.random() < 0.3:
            inner = self._cast(inner, self._pick.choice([*CONSTANTS, *_BETWEEN]))
        return self._cast(inner, self._pick.choice(family))

    def _cast(self, value: str, kind: str) -> str:
        is_safe = not self._ansi and self._pick.random() < 0.8
        return f"{'CAST' if is_safe else 'try_cast'}({value} AS {kind})"
