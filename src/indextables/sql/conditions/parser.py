"""SQL text to a condition, by the precedence of Spark's grammar.

AND, OR, NOT and parentheses are read here with an explicit stack: no nesting is too deep. Each
condition between them is read if it is one of the forms below, otherwise it is `Opaque`. sqlglot
checks the syntax of what is opaque and names its columns; it does not decide what binds tighter,
because `a = 1 BETWEEN x AND y` means another thing to it than to Spark.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, TypeAlias

from indextables.core.expr.datetimes import session_zone
from indextables.core.expr.nodes import Condition, Expression, call
from indextables.core.predicate.like import escape_like, like
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    Ref,
    StartsWith,
    over,
)
from indextables.core.predicate.regex import matches
from indextables.core.predicate.tree import flatten, fold
from indextables.errors import PredicateError
from indextables.sql.conditions.opaque import opaque
from indextables.sql.conditions.operands import Token, read_operand, syntax_error, tokenize
from indextables.sql.conditions.values import TESTS, read_value

# Comparisons of columns, constants and whole conditions.

COMPARISONS: Final[dict[str, CompareOp]] = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    "!>": "<=",
    ">": ">",
    ">=": ">=",
    "!<": ">=",
}
"""What Spark writes for each comparison."""

_FLIPPED: Final[dict[CompareOp, CompareOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS: Final[dict[CompareOp, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(op: CompareOp, left: Operand, right: Operand) -> Predicate | None:
    """Returns `left op right` with a constant on the right; two constants are compared at once if that is sure."""
    match left, right:
        case ((Ref() | Call()), _):
            return Compare(op, left, right)
        case Literal(), (Ref() | Call()):
            return Compare(_FLIPPED.get(op, op), right, left)
        case Literal(a), Literal(b):
            return _compare_constants(op, a, b)
    return None


def _compare_constants(op: CompareOp, a: Any, b: Any) -> Predicate | None:
    if a is None or b is None:
        return Constant(a is b) if op == "<=>" else Constant(None)
    exact = isinstance(a, int | Decimal) and isinstance(b, int | Decimal)
    if type(a) is type(b) and type(a) in {bool, int, Decimal, str, bytes}:
        return Constant(_FUNCTIONS[op](a, b))
    return Constant(_FUNCTIONS[op](a, b)) if exact and bool not in {type(a), type(b)} else None


def is_word_of(operand: Operand, word: str) -> Predicate | None:
    """Returns `operand IS word` for a column or constant."""
    match operand, word:
        case ((Ref() | Call()), "NULL" | "UNKNOWN"):
            return over(operand, IsNull)
        case ((Ref() | Call()), _):
            return Compare("<=>", operand, Literal(word == "TRUE"))
        case Literal(value), "NULL":
            return Constant(value is None)
        case Literal(None | bool() as value), _:
            return Constant(value is {"UNKNOWN": None, "TRUE": True, "FALSE": False}[word])
    return None


def against_truth(op: CompareOp, inner: Predicate | None, truth: bool) -> Predicate | None:
    """Returns `condition op TRUE` and `condition op FALSE`."""
    if inner is None:
        return None
    agrees = inner if truth else Not(inner)
    match op:
        case "=":
            return agrees
        case "<>":
            return Not(agrees)
        case "<=>":
            return IsTrue(agrees)
        case _:
            return None


# One condition without AND and OR: a comparison, IS, IN, BETWEEN, LIKE, or a boolean column.

Nested: TypeAlias = Callable[[int, int], Predicate | None]
"""Reads the condition between two places of the leaf; None if it is nested too deeply."""

_NESTING: Final = frozenset(("(", ")", "[", "]", "CASE", "END"))
_PREDICATES: Final = ("IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP")


def read_leaf(tokens: Sequence[Token], zone: dt.tzinfo, nested: Nested) -> Predicate | None:
    """Returns the condition these tokens spell, None where it is none of the known forms."""
    top = _top_level(tokens)
    leaf = _Leaf(tokens, zone, nested)
    comparisons = [i for i in top if tokens[i].is_symbol(*COMPARISONS)]
    keywords = [i for i in top if tokens[i].is_word(*_PREDICATES) and i > 0]
    if len(keywords) == 1 and not any(i > keywords[0] for i in comparisons):
        return leaf.predicate(keywords[0])
    if not keywords and len(comparisons) == 1:
        return leaf.comparison(comparisons[0])
    if not keywords and not comparisons:
        return leaf.bare()
    return None


def _top_level(tokens: Sequence[Token]) -> list[int]:
    """Returns the places outside all brackets and outside CASE … END."""
    places, depth, cases = [], 0, 0
    for i, token in enumerate(tokens):
        mark = token.keyword or (token.kind == "symbol" and token.value)
        if mark not in _NESTING:  # nearly all of a long list
            if depth == 0:
                places.append(i)
            continue
        ends_case = cases > 0 and token.is_word("END")  # a column may be called end
        closes = ends_case or token.is_symbol(")", "]")
        depth -= closes
        if depth == 0 and not closes:
            places.append(i)
        begins_case = token.is_word("CASE")
        cases += begins_case - ends_case
        depth += begins_case or token.is_symbol("(", "[")
    return places


@dataclass(frozen=True, slots=True)
class _Leaf:
    tokens: Sequence[Token]
    zone: dt.tzinfo
    nested: Nested

    def operand(self, start: int, stop: int) -> Operand | None:
        found: Expression | None = read_operand(self.tokens[start:stop], self.zone)
        if found is None and stop - start > 1:
            found = read_value(self.tokens, start, stop, self.zone, self.inner)
        return None if isinstance(found, Condition) else found

    def inner(self, start: int, stop: int) -> Predicate | None:
        """Returns a condition inside a function; None where a part of it is not understood."""
        found = self.nested(start, stop)
        return None if found is None or fold(found, _has_opaque) else found

    def condition(self, start: int, stop: int) -> Predicate | None:
        """Returns a condition that is itself an operand: `(a > 1) = TRUE`, `a > 1 IS TRUE`."""
        tokens = self.tokens[start:stop]
        is_whole = tokens and (tokens[0].is_symbol("(") or tokens[0].is_word(*TESTS))
        if not is_whole and not any(token.is_symbol(*COMPARISONS) for token in tokens):
            return None
        found = self.nested(start, stop)
        # `(a + 1)` looks like a condition until it is read: then all of it is the engine's
        return None if found is None or fold(found, _has_opaque) else found

    def comparison(self, at: int) -> Predicate | None:
        op = COMPARISONS[self.tokens[at].value]
        left, right = self.operand(0, at), self.operand(at + 1, len(self.tokens))
        if left is not None and right is not None:
            return compare(op, left, right)
        if isinstance(right, Literal) and isinstance(right.value, bool):
            return against_truth(op, self.condition(0, at), right.value)
        if isinstance(left, Literal) and isinstance(left.value, bool):
            return against_truth(op, self.condition(at + 1, len(self.tokens)), left.value)
        return None

    def predicate(self, at: int) -> Predicate | None:
        negated = self.tokens[at - 1].is_word("NOT")
        subject = at - negated
        match self.tokens[at].keyword:
            case "IS":
                return None if negated else self._is(at)
            case "IN":
                found = self._in(subject, at)
            case "BETWEEN":
                found = self._between(subject, at)
            case "LIKE" | "ILIKE":
                found = self._like(subject, at, folded=self.tokens[at].is_word("ILIKE"))
            case "RLIKE" | "REGEXP":
                found = self._rlike(subject, at)
            case _:
                return None
        return Not(found) if negated and found is not None else found

    def _is(self, at: int) -> Predicate | None:
        words = [token.keyword for token in self.tokens[at + 1 :]]
        negated = words[:1] == ["NOT"]
        words = words[negated:]
        subject = self.operand(0, at)
        if words[:2] == ["DISTINCT", "FROM"]:
            other = self.operand(at + negated + 3, len(self.tokens))
            same = compare("<=>", subject, other) if subject and other else None
            return Not(same) if same is not None and not negated else same
        if len(words) != 1 or words[0] not in {"NULL", "UNKNOWN", "TRUE", "FALSE"}:
            return None
        found = is_word_of(subject, words[0]) if subject else self._condition_is(at, words[0])
        return Not(found) if negated and found is not None else found

    def _condition_is(self, at: int, word: str) -> Predicate | None:
        inner = self.condition(0, at)
        if inner is None:
            return None
        is_true, is_false = IsTrue(inner), IsTrue(Not(inner))
        return {"TRUE": is_true, "FALSE": is_false}.get(word, And((Not(is_true), Not(is_false))))

    def _in(self, subject: int, at: int) -> Predicate | None:
        values = self._list(at + 1, len(self.tokens))
        subjects = self._list(0, subject) if self.tokens[0].is_symbol("(") else None
        if subjects is not None and len(subjects) > 1:
            return self._tuples_in(subjects, at + 1)
        found = self.operand(0, subject)
        if not isinstance(found, Ref | Call) or values is None:
            return None
        literals = tuple([v for v in values if isinstance(v, Literal)])
        if len(literals) == len(values):
            return over(found, lambda ref: IsIn(ref, literals))
        equal = [compare("=", found, value) for value in values if value is not None]
        return Or(tuple(equal)) if len(equal) == len(values) else None  # type: ignore[arg-type]

    def _tuples_in(self, subjects: list[Operand | None], start: int) -> Predicate | None:
        """Returns `(a, b) IN ((1, 2), …)`: tuples are equal where their parts are, NULLs included; it is never NULL."""
        rows = []
        for left, right in self._ranges(start, len(self.tokens)) or ():
            values = self._list(left, right)
            if values is None or len(values) != len(subjects):
                return None
            pairs = zip(subjects, values, strict=True)
            parts = [
                compare("<=>", one, two) for one, two in pairs if one is not None and two is not None
            ]
            if len(parts) < len(subjects) or any(part is None for part in parts):
                return None
            rows.append(And(tuple(parts)))  # type: ignore[arg-type]
        return Or(tuple(rows)) if rows else None

    def _list(self, start: int, stop: int) -> list[Operand | None] | None:
        """Returns the operands between parentheses that enclose everything from start to stop."""
        ranges = self._ranges(start, stop)
        return None if ranges is None else [self.operand(left, right) for left, right in ranges]

    def _ranges(self, start: int, stop: int) -> list[tuple[int, int]] | None:
        """Returns where the parts of a list in parentheses begin and end."""
        if (
            stop - start < 2
            or not self.tokens[start].is_symbol("(")
            or not self.tokens[stop - 1].is_symbol(")")
        ):
            return None
        inside = self.tokens[start + 1 : stop - 1]
        if not inside:
            return []
        commas = [i for i in _top_level(inside) if inside[i].is_symbol(",")]
        edges = [-1, *commas, len(inside)]
        return [(start + 2 + left, start + 1 + right) for left, right in pairwise(edges)]

    def _between(self, subject: int, at: int) -> Predicate | None:
        middle = next(
            (i for i in _top_level(self.tokens) if i > at and self.tokens[i].is_word("AND")), at
        )
        value = self.operand(0, subject)
        low, high = self.operand(at + 1, middle), self.operand(middle + 1, len(self.tokens))
        if value is None or low is None or high is None:
            return None
        above, below = compare(">=", value, low), compare("<=", value, high)
        return And((above, below)) if above is not None and below is not None else None

    def _like(self, subject: int, at: int, *, folded: bool) -> Predicate | None:
        value, stop, escape = self.operand(0, subject), len(self.tokens), "\\"
        if stop - 2 > at and self.tokens[stop - 2].is_word("ESCAPE"):
            stop, escape = stop - 2, self.tokens[stop - 1].value
        pattern = self.operand(at + 1, stop)
        if not isinstance(value, Ref | Call) or not isinstance(pattern, Literal) or len(escape) != 1:
            return None
        if pattern.value is None:
            return Constant(None)
        if not isinstance(pattern.value, str):
            return None
        text = pattern.value
        if folded:  # what Spark makes of it: both sides in lower case
            value, text, escape = call("lower", value), text.lower(), escape.lower()
        return _on_text(value, lambda ref: like(ref, text, escape))

    def _rlike(self, subject: int, at: int) -> Predicate | None:
        value, pattern = self.operand(0, subject), self.operand(at + 1, len(self.tokens))
        if not isinstance(value, Ref | Call) or not isinstance(pattern, Literal):
            return None
        if not isinstance(pattern.value, str):
            return Constant(None) if pattern.value is None else None
        text = pattern.value
        return _on_text(value, lambda ref: matches(ref, text))

    def bare(self) -> Predicate | None:
        operand = self.operand(0, len(self.tokens))
        match operand:
            case Ref() | Call():
                return over(operand, BoolRef)
            case Literal(value) if value is None or isinstance(value, bool):
                return Constant(value)
            case Literal():
                return None
        return self._function()

    def _function(self) -> Predicate | None:
        if len(self.tokens) < 3 or self.tokens[0].keyword not in TESTS:
            return None
        arguments = self._list(1, len(self.tokens))
        match self.tokens[0].keyword, arguments:
            case "ISNULL", [Ref() | Call() as value]:
                return over(value, IsNull)
            case "ISNOTNULL", [Ref() | Call() as value]:
                return Not(over(value, IsNull))
            case "ISNAN", [Ref() | Call() as value]:
                return over(value, IsNan)
            case "EQUAL_NULL", [left, right] if left is not None and right is not None:
                return compare("<=>", left, right)
            case "STARTSWITH", [Ref() | Call() as value, Literal(str() | bytes() as prefix)]:
                return over(value, lambda ref: StartsWith(ref, prefix))
            case "ENDSWITH", [Ref() | Call() as value, Literal(str() as text)]:
                return _on_text(value, lambda ref: like(ref, "%" + escape_like(text)))
            case "CONTAINS", [Ref() | Call() as value, Literal(str() as text)]:
                return _on_text(value, lambda ref: like(ref, f"%{escape_like(text)}%"))
            case _:
                return None


def _on_text(value: Operand, condition: Callable[[Ref], StartsWith | None]) -> Predicate | None:
    """Returns a pattern's condition on a value; None where the pattern is not read."""
    if condition(RESULT) is None or not isinstance(value, Ref | Call):
        return None
    return over(value, condition)  # type: ignore[arg-type]


def _has_opaque(node: Predicate, inner: tuple[bool, ...]) -> bool:
    return isinstance(node, Opaque) or any(inner)


_OPENING: Final = {")": "(", "]": "["}
_PRECEDENCE: Final = {"(": 0, "OR": 1, "AND": 2, "NOT": 3}
_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_DEEPEST: Final = 20
"""Conditions inside conditions, as in `(… IS TRUE) IS TRUE`; deeper ones are left to the engine."""


def parse_predicate(sql: str, timezone: str = "UTC") -> Predicate:
    """Returns the condition a WHERE clause would hold, as Spark's SQL means it.

    What cannot be read becomes `Opaque`, never an error and never a guess.

    Args:
        sql: The text of the condition, without WHERE.
        timezone: The zone of times that name none.

    Returns:
        The condition, for `Table.plan`, `Table.scan` and `ColumnDomain.from_predicate`.

    Raises:
        PredicateError: It is not SQL; the message shows the place.

    Examples:
        >>> parse_predicate("a.b > 5")
        Compare(op='>', left=Ref(path=('a', 'b')), right=Literal(value=5, type=None), nan=<NanRule.SPARK: 'spark'>)
        >>> parse_predicate("rand() < 0.5")
        Opaque(text='rand() < 0.5', columns=(), why='only an engine can evaluate it', condition=None)
    """
    if not isinstance(sql, str):
        raise PredicateError(f"a condition is text, not {type(sql).__name__}", hint='write "a > 5"')
    tokens = tokenize(sql)
    reader = _Reader(sql, tokens, _closings(sql, tokens), session_zone(timezone))
    return flatten(reader.condition(0, len(tokens) - 1, depth=0))


def _closings(sql: str, tokens: Sequence[Token]) -> dict[int, int]:
    """Returns for each opening bracket the place of its closing one."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind != "symbol":
            continue
        if token.value in {"(", "["}:
            opened.append(i)
        elif token.value in _OPENING:
            if not opened or tokens[opened[-1]].value != _OPENING[token.value]:
                raise syntax_error(sql, token.start, f"this {token.value!r} closes nothing")
            closing[opened.pop()] = i
    if opened:
        at = tokens[opened[-1]]
        raise syntax_error(sql, at.start, f"this {at.value!r} is never closed")
    return closing


@dataclass(frozen=True, slots=True)
class _Reader:
    sql: str
    tokens: Sequence[Token]
    closing: dict[int, int]
    zone: dt.tzinfo

    def condition(self, start: int, end: int, depth: int) -> Predicate:
        """Returns the condition the tokens from start to before end spell."""
        stack = _Stack([], [])
        at, needs_operand = start, True
        while at < end:
            token = self.tokens[at]
            if not needs_operand:
                needs_operand = self._operator(stack, token)
                at += 1
            elif token.is_word("NOT") or token.is_symbol("!"):
                stack.operators.append("NOT")
                at += 1
            elif self._is_group(at, end):
                stack.operators.append("(")
                at += 1
            else:
                stop = self._leaf_end(at, end)
                if stop == at:
                    raise syntax_error(self.sql, token.start, "a condition is missing here")
                stack.operands.append(self._leaf(at, stop, depth))
                at, needs_operand = stop, False
        if needs_operand:
            raise syntax_error(self.sql, self.tokens[end].start, "a condition is missing here")
        stack.reduce(0)
        return stack.operands[0]

    def _operator(self, stack: _Stack, token: Token) -> bool:
        """Puts what follows an operand on the stack; whether an operand must come next."""
        if token.is_word("AND", "OR"):
            stack.reduce(_PRECEDENCE[token.keyword])
            stack.operators.append(token.keyword)
            return True
        # `_leaf_end` stops only at AND, OR and a closing parenthesis
        stack.reduce(1)
        stack.operators.pop()
        return False

    def _is_group(self, at: int, end: int) -> bool:
        """Returns whether parentheses hold a whole condition, rather than a part of one: `(a + 1) * 2 > b`."""
        if not self.tokens[at].is_symbol("("):
            return False
        after = self.closing[at] + 1
        following = self.tokens[after]
        ends = after == end or following.is_word("AND", "OR") or following.is_symbol(")")
        return ends and after - at > 2 and not self.tokens[at + 1].is_word(*_QUERY_WORDS)

    def _leaf_end(self, at: int, end: int) -> int:
        """Returns where a condition without AND and OR of its own ends."""
        betweens = cases = 0
        while at < end:
            token = self.tokens[at]
            if token.is_symbol(")"):
                break
            if token.is_word("CASE", "END"):
                cases = max(0, cases + (1 if token.keyword == "CASE" else -1))
            elif token.is_word("BETWEEN") and not cases:
                betweens += 1
            elif token.is_word("AND") and betweens and not cases:
                betweens -= 1
            elif token.is_word("AND", "OR") and not cases:
                break
            at = self.closing.get(at, at) + 1
        return at

    def _leaf(self, start: int, stop: int, depth: int) -> Predicate:
        def nested(first: int, last: int) -> Predicate | None:
            """Returns a condition inside this one, by places relative to its start."""
            if depth >= _DEEPEST:
                return None
            with suppress(PredicateError):  # no condition by itself; the whole leaf is checked later
                return self.condition(start + first, start + last, depth + 1)
            return None

        tokens = self.tokens[start:stop]
        found = read_leaf(tokens, self.zone, nested)
        return found if found is not None else opaque(self.sql, tokens[0].start, tokens[-1].end)


@dataclass(frozen=True, slots=True)
class _Stack:
    """Operands read so far, and the operators that still wait for their right side."""

    operands: list[Predicate]
    operators: list[str]

    def reduce(self, precedence: int) -> None:
        """Applies the waiting operators that bind at least this tightly."""
        while self.operators and _PRECEDENCE[self.operators[-1]] >= max(precedence, 1):
            operator = self.operators.pop()
            right = self.operands.pop()
            if operator == "NOT":
                self.operands.append(Not(right))
            else:
                pair = (self.operands.pop(), right)
                self.operands.append(And(pair) if operator == "AND" else Or(pair))
