"""The statements of this library, as patterns over tokens that are written the way their usage is shown.

In `DESCRIBE|DESC HISTORY <table> [LIMIT <limit:count>]` words in capitals stand for themselves, `A|B`
means either, what is in `[…]` may be missing, and a parameter `<name:kind>` is one of

* `<table>`: ``indextables.`path` ``, or a name that the program knows
* `text`: a string; `count`: a whole number; `column`: a column or a field of one
* `columns`: a list of names in parentheses, read as a JSON array of the names as written
* `condition`: everything up to the next word of the usage, as it is written
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from indextables.config import Config
from indextables.errors import PredicateError, SqlSyntaxError
from indextables.log.transaction_log import TransactionLog
from indextables.ops.shared.executor import Executor
from indextables.parquet.write.executor import ArrowExecutor
from indextables.sql.conditions.operands import Token, tokenize

Arguments: TypeAlias = Mapping[str, str]
Resolver: TypeAlias = Callable[[Sequence[str]], str | None]
"""Returns where the table is that a name stands for; None for a name that is not known."""

_USAGE: Final = re.compile(
    r"(?P<open>\[)|(?P<close>\])|<(?P<name>\w+)(?::(?P<kind>\w+))?>|(?P<word>[A-Z_|]+)"
)
_END_OF_STATEMENT: Final = re.compile(r";(?:\s|;|--[^\n]*|/\*.*?\*/)*\Z", re.DOTALL)


class Context(Protocol):
    """What a statement needs from the program that runs it."""

    @property
    def config(self) -> Config:
        """Returns the settings of the session."""
        ...

    def open_log(self, location: str) -> TransactionLog:
        """Returns the log of the table at this path or URI, not read yet."""
        ...


@runtime_checkable
class EngineContext(Context, Protocol):
    """A context with an engine for the heavy work; without one the work is done in this process."""

    def executor(self, location: str) -> Executor:
        """Returns the engine for the table at this path or URI."""
        ...


def executor_of(context: Context, location: str, log: TransactionLog) -> Executor:
    """Returns the executor for the heavy work of a statement on this table."""
    if isinstance(context, EngineContext):
        return context.executor(location)
    return ArrowExecutor(log.store)


@dataclass(frozen=True, slots=True)
class Word:
    """A keyword, or several with the same meaning."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of one of the kinds above."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A piece of a pattern that may be missing."""

    parts: tuple[Element, ...]


Element: TypeAlias = Word | Parameter | Optional


@dataclass(frozen=True)
class Command:
    """A statement of this library: its usage, and the function that runs it and returns rows."""

    usage: str
    run: Callable[[Context, Arguments], pa.Table]

    @cached_property
    def parts(self) -> tuple[Element, ...]:
        """Returns the pattern of the usage."""
        return _parse_usage(self.usage)

    @cached_property
    def claim(self) -> tuple[Element, ...]:
        """Returns the beginning of the pattern that makes a statement this command, even if the rest is misspelled."""
        for at, part in enumerate(self.parts):
            if isinstance(part, Parameter):
                return self.parts[: at + (part.kind == "table")]
        return self.parts


def find_command(
    text: str, commands: Sequence[Command], resolve: Resolver | None = None
) -> tuple[Command, Arguments] | None:
    """Returns the command that a statement is, with its values; None if it is no statement of this library.

    SqlSyntaxError if it begins like one of them but does not go on like it.
    """
    statement = _statement(text, resolve)
    if statement is None:
        claimed = [command for command in commands if _begins_like(text, command)]
        if not claimed:
            return None
        raise _misspelled(text, claimed)
    for command in commands:
        arguments = statement.read(command.parts)
        if arguments is not None:
            return command, arguments
    claimed = [command for command in commands if statement.match(command.claim, 0)]
    if claimed:
        raise _misspelled(text, claimed)
    return None


def _statement(text: str, resolve: Resolver | None) -> _Statement | None:
    """Returns the tokens of a statement; None if it is not made of tokens."""
    # First as it is, because what looks like the end of a statement may stand inside quotes.
    for source in (text, _END_OF_STATEMENT.sub("", text)):
        with suppress(PredicateError):
            return _Statement(source, tokenize(source), resolve)
    return None


def _misspelled(text: str, claimed: Sequence[Command]) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"this is not how the command is written: {text.strip()[:200]}",
        hint="write " + ", or ".join(command.usage for command in claimed),
    )


def _begins_like(text: str, command: Command) -> bool:
    """Returns True if text that is no sequence of tokens has the first words of a command."""
    words = [part for part in command.claim if isinstance(part, Word)]
    found = text.upper().split()[: len(words)]
    return len(words) > 1 and all(word in part.texts for word, part in zip(found, words, strict=False))


def _parse_usage(usage: str) -> tuple[Element, ...]:
    """Returns the pattern of a usage, read with a stack of open brackets; each closing one makes an Optional."""
    stack: list[list[Element]] = [[]]
    for found in _USAGE.finditer(usage):
        if found["open"]:
            stack.append([])
        elif found["close"]:
            inner = stack.pop()
            stack[-1].append(Optional(tuple(inner)))
        elif found["name"]:
            stack[-1].append(Parameter(found["name"], found["kind"] or found["name"]))
        else:
            stack[-1].append(Word(tuple(found["word"].split("|"))))
    return tuple(stack[0])


_Found: TypeAlias = tuple[dict[str, str], int]
"""The values of parameters, and the token after them."""


@dataclass(frozen=True, slots=True)
class _Statement:
    source: str
    tokens: Sequence[Token]
    resolve: Resolver | None = None

    def read(self, parts: Sequence[Element]) -> Arguments | None:
        """Returns the values if the whole statement has this pattern."""
        found = self.match(parts, 0)
        return None if found is None or self.tokens[found[1]].kind != "end" else found[0]

    def match(self, parts: Sequence[Element], at: int) -> _Found | None:
        """Matches the pattern from this token on; an optional piece is tried first with, then without."""
        if not parts:
            return {}, at
        first, rest = parts[0], parts[1:]
        match first:
            case Optional(inner):
                return self.match([*inner, *rest], at) or self.match(rest, at)
            case Word(texts):
                found: _Found | None = ({}, at + 1) if self.tokens[at].is_word(*texts) else None
            case Parameter(name, "condition"):
                found = self.condition(name, rest, at)
            case Parameter(name, kind):
                found = self.value(name, kind, at)
        tail = None if found is None else self.match(rest, found[1])
        return None if found is None or tail is None else ({**found[0], **tail[0]}, tail[1])

    def value(self, name: str, kind: str, at: int) -> _Found | None:
        match kind, self.tokens[at : at + 3]:
            case "table", _:
                return self.table(name, at)
            case "text", [Token("text", value), *_]:
                return {name: value}, at + 1
            case "count", [Token("number", value), *_] if value.isdigit():
                return {name: value}, at + 1
            case "columns", _:
                return self.columns(name, at)
            case "column", _:
                return self.column(name, at)
            case _:
                return None

    def table(self, name: str, at: int) -> _Found | None:
        """Returns the path of a table, given as such or by a name of up to three parts."""
        parts: list[str] = []
        end = at
        while self.tokens[end].kind in {"word", "name"} and len(parts) < 3:
            parts.append(self.tokens[end].value)
            end += 1
            if not self.tokens[end].is_symbol("."):
                break
            end += 1
        if len(parts) == 2 and parts[0].lower() == "indextables":
            return {name: parts[1]}, end
        path = self.resolve(parts) if self.resolve is not None and parts else None
        return None if path is None else ({name: path}, end)

    def column(self, name: str, at: int) -> _Found | None:
        """Returns the path of a column as it is written: `st.b`."""
        end = at
        while self.tokens[end].kind in {"word", "name"}:
            end += 1
            if not self.tokens[end].is_symbol("."):
                return {name: self.text(at, end)}, end
            end += 1
        return None

    def columns(self, name: str, at: int) -> _Found | None:
        """Returns the names in parentheses, each as it is written: `(a, st.b, `c.d`)`."""
        ends = [i for i, token in enumerate(self.tokens) if i > at and token.is_symbol(",", ")")]
        if not self.tokens[at].is_symbol("(") or not ends:
            return None
        found: list[str] = []
        for end in ends:
            found.append(self.text(at + 1, end))
            at = end
            if self.tokens[end].is_symbol(")"):
                break
        is_closed = self.tokens[at].is_symbol(")") and all(found)
        return ({name: json.dumps(found)}, at + 1) if is_closed else None

    def condition(self, name: str, rest: Sequence[Element], at: int) -> _Found | None:
        """Returns the text before the first word that may follow it, outside of parentheses."""
        words = {text for part in rest for text in _first_words(part)}
        depth, end = 0, at
        while self.tokens[end].kind != "end" and not (depth == 0 and self.tokens[end].keyword in words):
            depth += self.tokens[end].is_symbol("(") - self.tokens[end].is_symbol(")")
            end += 1
        return ({name: self.text(at, end)}, end) if end > at else None

    def text(self, start: int, end: int) -> str:
        """Returns the source text of these tokens."""
        return self.source[self.tokens[start].start : self.tokens[end - 1].end] if end > start else ""


def _first_words(part: Element) -> tuple[str, ...]:
    match part:
        case Word(texts):
            return texts
        case Optional((first, *_)):
            return _first_words(first)
        case _:
            return ()
