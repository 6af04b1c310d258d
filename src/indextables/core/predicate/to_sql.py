"""Conditions as SQL text: Spark's, which `parse_predicate` reads back, and DuckDB's."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from typing import Literal as OneOf

from indextables.core.expr.datetimes import DATE, TIMESTAMP_NTZ, date_text, timestamp_text
from indextables.core.expr.nodes import Expression, Mode
from indextables.core.predicate.like import escape_like
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
    Compare,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Over,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
)
from indextables.core.predicate.tree import fold
from indextables.core.types import DataType, DecimalType, PrimitiveType, type_name
from indextables.errors import PredicateError

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# A bare name that the parser would take for something else.
_RESERVED: Final = frozenset(
    {
        *("and", "or", "not", "in", "is", "like", "ilike", "rlike", "regexp", "between", "escape"),
        *("null", "true", "false", "case", "when", "then", "else", "end", "exists", "select", "div"),
    }
)
_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%", "div"})
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001


def to_sql(predicate: Predicate, dialect: OneOf["spark", "duckdb"] = "spark") -> str:
    """Returns SQL with the same meaning.

    >>> to_sql(And((Compare(">", Ref(("a",)), Literal(5)), Not(IsNull(Ref(("st", "b.c")))))))
    'a > 5 AND NOT (st.`b.c` IS NULL)'
    """
    return fold(predicate, (_SPARK if dialect == "spark" else _DUCKDB).node)


def to_spark_sql(predicate: Predicate) -> str:
    """Returns SQL that means the same to Spark's parser, however its session has set it.

    By a setting a bare `user` is a function, a backslash is itself, and a doubled quote ends a text. So
    names stand in backticks, and a text with such a character is spelled by its bytes. A bound condition
    that `check_evaluable` passes is spelled so throughout; any other text of `Opaque` stays as it is.

    >>> to_spark_sql(Compare("=", Ref(("user",)), Literal("it's")))
    "`user` = CAST(X'69742773' AS STRING)"
    """
    return fold(predicate, _SPARK_EXACT.node)


@dataclass(frozen=True, slots=True)
class _Dialect:
    name: OneOf["spark", "duckdb"]
    quote: str
    same: str
    starts_with: str
    exact: bool = False
    """Nothing is left to the settings of a parser."""
    result: str = ""
    """What stands for the value a condition is about."""

    def node(self, node: Predicate, inner: tuple[str, ...]) -> str:
        match node:
            case And():
                return " AND ".join(map(_inside, inner)) if inner else "TRUE"
            case Or():
                return " OR ".join(map(_inside, inner)) if inner else "FALSE"
            case Not():
                return f"NOT ({inner[0]})"
            case IsTrue():
                return f"({inner[0]}) IS TRUE"
            case Constant(value):
                return "NULL" if value is None else str(value).upper()
            case Opaque(condition=Compare() | IsNull() | IsIn() as rows) if self.exact:
                return f"({self.leaf(rows)})"
            case Opaque(text):
                return f"({text})"
            case Over(expression, condition):
                shown = replace(self, result=self.value(expression))
                return fold(condition, shown.node)
            case Compare() | IsNull() | IsNan() | IsIn() | StartsWith() | BoolRef():
                return self.leaf(node)

    def leaf(self, node: Compare | IsNull | IsNan | IsIn | StartsWith | BoolRef) -> str:
        match node:
            case Compare():
                return self.comparison(node)
            case IsNull(ref):
                return f"{self.ref(ref)} IS NULL"
            case IsNan(ref):
                return f"isnan({self.ref(ref)})" if self.name == "spark" else self.nan_test(ref)
            case BoolRef(ref):
                return self.ref(ref)
            case IsIn(values=()) if self.exact or self.name == "duckdb":
                return "FALSE"  # of NULL too: Spark takes no empty list, and DuckDB's answer is NULL
            case IsIn(ref, values):
                return f"{self.ref(ref)} IN ({', '.join(map(self.literal, values))})"
            case StartsWith():
                return self.prefix(node)

    def nan_test(self, ref: Ref) -> str:
        return f"coalesce(isnan({self.ref(ref)}), FALSE)"

    def comparison(self, node: Compare) -> str:
        left, right = self.value(node.left), self.value(node.right)
        op = self.same if node.op == "<=>" else node.op
        text = f"{left} {op} {right}"
        is_number = isinstance(node.right, Literal) and isinstance(node.right.value, int | float)
        if node.nan is NanRule.IEEE and node.op in {">", ">="} and is_number:
            return f"({text} AND NOT isnan({left}))"  # SQL's NaN is above every number
        return text

    def prefix(self, node: StartsWith) -> str:
        name = self.ref(node.ref)
        if isinstance(node.prefix, bytes):
            return f"{self.starts_with}({name}, {self.literal(Literal(node.prefix))})"
        if node.regex is not None:
            return f"{name} RLIKE {self.text(node.regex)}"
        pattern = escape_like(node.prefix) + "%" if node.pattern is None else node.pattern
        escape = r" ESCAPE '\'" if self.name == "duckdb" else ""
        return f"{name} LIKE {self.text(pattern)}{escape}"

    def value(self, expression: Expression) -> str:
        """Returns a column, a constant or a function, as SQL writes it."""
        match expression:
            case Ref():
                return self.ref(expression)
            case Literal():
                return self.literal(expression)
            case Call():
                return self.call(expression)
            case Unknown(text):
                return f"({text})"
            case _:
                return f"({fold(expression, self.node)})"  # type: ignore[arg-type]

    def call(self, call: Call) -> str:
        if self.exact:
            raise PredicateError(
                f"`{to_sql(Over(call, BoolRef(RESULT)))}` cannot be handed to Spark as text: what it means "
                "depends on the session it is run in",
                hint="run the statement in Spark SQL itself, or compare columns with constants",
                function=call.function,
            )
        inner = [self.value(argument) for argument in call.arguments]
        prefix = "try_" if call.mode is Mode.TRY else ""
        if call.function == "cast" and call.type is not None:
            return f"{prefix}cast({inner[0]} AS {type_name(call.type)})"
        if call.function in _OPERATORS and len(inner) == 2 and not prefix:
            return f"({inner[0]} {call.function} {inner[1]})"
        return f"{prefix}{call.function}({', '.join(inner)})"

    def ref(self, ref: Ref) -> str:
        if ref == RESULT:
            return self.result
        return ".".join(map(self.identifier, ref.path))

    def identifier(self, name: str) -> str:
        is_bare = self.name == "spark" and not self.exact and _PLAIN_NAME.fullmatch(name)
        if is_bare and name.lower() not in _RESERVED:
            return name
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        if self.exact and ("\\" in value or "'" in value):
            return f"CAST({self.binary(value.encode())} AS STRING)"
        if self.name == "spark":
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "''") + "'"

    def literal(self, literal: Literal) -> str:
        match literal.value:
            case None:
                return "NULL"
            case bool() as value:
                return str(value).upper()
            case int() as value if literal.type is None or not _is_time(literal.type):
                return self.number(value, literal.type)
            case float() as value:
                return self.double(value)
            case Decimal() as value:
                return self.decimal(value)
            case str() as value:
                return self.text(value)
            case bytes() | bytearray() | memoryview() as value:
                return self.binary(bytes(value))
            case _:
                return self.time(literal)

    def number(self, value: int, dtype: DataType | None) -> str:
        return self.decimal(Decimal(value)) if isinstance(dtype, DecimalType) else str(value)

    def double(self, value: float) -> str:
        if self.name == "duckdb":
            return f"CAST('{value!r}' AS DOUBLE)"
        if math.isfinite(value):
            return f"{value!r}D"
        return f"double('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"

    def decimal(self, value: Decimal) -> str:
        text = f"{value:f}"
        return text if "." in text or self.name == "duckdb" else text + "BD"

    def binary(self, value: bytes) -> str:
        if self.name == "spark":
            return f"X'{value.hex().upper()}'"
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"

    def time(self, literal: Literal) -> str:
        value = literal.value
        if isinstance(value, dt.datetime):
            local = (value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
            offset = (value.utcoffset() or dt.timedelta()) // dt.timedelta(microseconds=1)
            return self.timestamp(local - offset, zoned=value.tzinfo is not None)
        if isinstance(value, dt.date):
            return f"DATE '{date_text(value.toordinal() - _EPOCH.toordinal())}'"
        if literal.type == DATE:
            return f"DATE '{date_text(value)}'"
        return self.timestamp(value, zoned=literal.type != TIMESTAMP_NTZ)

    def timestamp(self, micros: Any, *, zoned: bool) -> str:
        text = timestamp_text(micros)
        if self.name == "duckdb":
            return f"TIMESTAMPTZ '{text}+00'" if zoned else f"TIMESTAMP '{text}'"
        return f"TIMESTAMP '{text}Z'" if zoned else f"TIMESTAMP_NTZ '{text}'"


_SPARK: Final = _Dialect("spark", "`", "<=>", "startswith")
_SPARK_EXACT: Final = _Dialect("spark", "`", "<=>", "startswith", exact=True)
_DUCKDB: Final = _Dialect("duckdb", '"', "IS NOT DISTINCT FROM", "starts_with")


def _is_time(dtype: DataType) -> bool:
    return isinstance(dtype, PrimitiveType) and dtype.name in {"date", "timestamp", "timestamp_ntz"}


def _inside(text: str) -> str:
    """Parentheses where AND or OR inside the text would otherwise join its neighbours."""
    return f"({text})" if " AND " in text or " OR " in text else text
