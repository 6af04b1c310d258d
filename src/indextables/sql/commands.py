"""Every command of IndexTables in one table; any other statement belongs to the engine."""

from __future__ import annotations

from typing import Final

from indextables.sql.statements import describe, repair
from indextables.sql.statements import log as log_commands
from indextables.sql.statements import slices as slice_commands
from indextables.sql.statements.grammar import Arguments, Command, Resolver, Word, find_command

COMMANDS: Final[tuple[Command, ...]] = (
    *describe.COMMANDS,
    *repair.COMMANDS,
    *log_commands.COMMANDS,
    *slice_commands.COMMANDS,
)


def may_be_ours(text: str) -> bool:
    """Returns False for every statement that neither names an IndexTables table nor begins like one of its commands.

    >>> may_be_ours("SELECT 1"), may_be_ours("describe history indextables.`/data/t`")
    (False, True)
    """
    upper = text.upper()
    return "INDEXTABLES" in upper or any(all(word in upper for word in words) for words in _OWN_WORDS)


def begins_like_ours(text: str) -> bool:
    """Returns False for every statement whose first word is that of no command.

    >>> begins_like_ours("SELECT 1"), begins_like_ours(" optimize orders")
    (False, True)
    """
    return text.split(maxsplit=1)[:1] != [] and text.split(maxsplit=1)[0].upper() in _FIRST_WORDS


def find(text: str, resolve: Resolver | None = None) -> tuple[Command, Arguments] | None:
    """Returns the command a statement is, with its values; None for a statement of the engine.

    `resolve` says where the table is that a name stands for, and None for names that are not known.
    """
    return find_command(text, COMMANDS, resolve)


# Commands that need no table are known by their words alone.
_FIRST_WORDS: Final = frozenset(
    text
    for command in COMMANDS
    for part in command.parts[:1]
    if isinstance(part, Word)
    for text in part.texts
)
_OWN_WORDS: Final = tuple(
    tuple(part.texts[0] for part in command.claim if isinstance(part, Word))
    for command in COMMANDS
    if all(isinstance(part, Word) for part in command.claim)
)
