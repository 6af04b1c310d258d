"""SQL text to a condition, by the precedence of Spark's grammar.

AND, OR, NOT and parentheses are read here with an explicit stack: no nesting is too deep. Each
condition between them is read if it is one of the forms below, otherwise it is `Opaque`. sqlglot
checks the syntax of what is opaque and names its columns; it does not decide what binds tighter,
because `a = 1 BETWEEN x AND y` means another thing to it than to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from indextables.core.predicate.datetimes import session_zone
from indextables.core.predicate.nodes import And, Not, Or, Predicate
from indextables.core.predicate.tree import flatten
from indextables.errors import PredicateError
from indextables.sql.conditions.leaf import read_leaf
from indextables.sql.conditions.opaque import opaque
from indextables.sql.conditions.operands import Token, syntax_error, tokenize

_OPENING: Final = {")": "(", "]": "["}
_PRECEDENCE: Final = {"(": 0, "OR": 1, "AND": 2, "NOT": 3}
_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_DEEPEST: Final = 20
"""Conditions inside conditions, as in `(… IS TRUE) IS TRUE`; deeper ones are left to the engine."""


def parse_predicate(sql: str, timezone: str = "UTC") -> Predicate:
    """The condition a WHERE clause would hold; PredicateError with the place if it is not SQL.

    What cannot be read becomes `Opaque`, never an error and never a guess. Times without a zone are in
    `timezone`.

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
    """For each opening bracket the place of its closing one."""
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
        """The condition the tokens from start to before end spell."""
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
        """Whether parentheses hold a whole condition, rather than a part of one: `(a + 1) * 2 > b`."""
        if not self.tokens[at].is_symbol("("):
            return False
        after = self.closing[at] + 1
        following = self.tokens[after]
        ends = after == end or following.is_word("AND", "OR") or following.is_symbol(")")
        return ends and after - at > 2 and not self.tokens[at + 1].is_word(*_QUERY_WORDS)

    def _leaf_end(self, at: int, end: int) -> int:
        """Where a condition without AND and OR of its own ends."""
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
            """A condition inside this one, by places relative to its start."""
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
