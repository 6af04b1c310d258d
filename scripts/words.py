"""Checks how the code speaks: verbs first in docstrings, examples on public names, types that say something, one word a thing.

    python scripts/words.py          what is wrong, a line each; exits with 1 if anything is
    python scripts/words.py --count  the numbers alone

Ruff's D401 wants "Return the splits"; this project writes "Returns the splits", as its readers speak of a function.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import indextables
from indextables import domain, errors

SOURCE = Path(indextables.__file__).parent
DOCS = SOURCE.parent.parent
MOST_ANY = 0.15
"""The share of functions whose signature may say `Any`."""

_VERB = re.compile(r"[A-Z][a-z-]*s\b")
# Plurals that look like a verb in the third person, and words that begin a riddle.
_NO_VERBS = frozenset(
    {
        "Always",
        "As",
        "Bytes",
        "Columns",
        "Files",
        "Groups",
        "Is",
        "Its",
        "Keys",
        "Lines",
        "Names",
        "Numbers",
    }
    | {
        "Options",
        "Parts",
        "Rows",
        "Slices",
        "Splits",
        "Statistics",
        "Texts",
        "This",
        "Types",
        "Unless",
        "Values",
    }
)
# What a native reader has to read twice, and words that the glossary replaces.
_RIDDLES = re.compile(
    r"\bthe same for\b|\bof ours\b|\bso many\b|\bthese being\b|\bapart and in their order\b"
    r"|\blog files? of (a |the )?slices?\b|\bdelete logs?\b|\bdata logs?\b",
    re.IGNORECASE,
)


class Complaint(NamedTuple):
    """One thing to put right."""

    place: str
    what: str


class Counts(NamedTuple):
    """How the functions of the package are described and typed."""

    functions: int
    with_docstring: int
    verb_first: int
    with_any: int

    def __str__(self) -> str:
        verbs, any_share = self.verb_first / self.with_docstring, self.with_any / self.functions
        return (
            f"{self.functions} functions, {self.with_docstring} with a docstring, "
            f"{verbs:.0%} of those begin with a verb, {any_share:.1%} say Any"
        )


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yields every function of the package with its file and line."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(DOCS)}:{node.lineno}", node


def begins_with_a_verb(docstring: str) -> bool:
    """Returns True for "Returns the splits", False for "The splits" and "Splits of a table"."""
    first = docstring.split(maxsplit=1)[0]
    return bool(_VERB.fullmatch(first.rstrip(".,:"))) and first not in _NO_VERBS


def is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns True for a subcommand, whose docstring is its --help and says "Write a checkpoint" as commands do."""
    return any(re.match(r"click\.(command|group)\b", ast.unparse(used)) for used in node.decorator_list)


def says_any(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns True if a parameter or the result is typed `Any`, at any depth."""
    spoken = node.args
    every = [*spoken.posonlyargs, *spoken.args, *spoken.kwonlyargs, spoken.vararg, spoken.kwarg]
    types = [argument.annotation for argument in every if argument] + [node.returns]
    return any(type_ and re.search(r"\bAny\b", ast.unparse(type_)) for type_ in types)


def count() -> Counts:
    """Returns the numbers of the whole package."""
    found = [node for _, node in functions()]
    texts = [text for node in found if not is_command(node) and (text := ast.get_docstring(node))]
    return Counts(
        len(found),
        len(texts),
        sum(map(begins_with_a_verb, texts)),
        sum(map(says_any, found)),
    )


def without_verb() -> Iterator[Complaint]:
    """Yields the functions whose docstring does not begin with what they do."""
    for place, node in functions():
        text = ast.get_docstring(node)
        if text and not is_command(node) and not begins_with_a_verb(text):
            yield Complaint(place, f"{node.name} does not begin with a verb: {text.splitlines()[0]}")


def riddles() -> Iterator[Complaint]:
    """Yields lines of code, documents and errors with words that the glossary replaces."""
    files = [*SOURCE.rglob("*.py"), *(DOCS / "docs").rglob("*.md"), DOCS / "README.md"]
    for file in sorted(files):
        if file.name == "glossary.md":
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := _RIDDLES.search(line):
                yield Complaint(
                    f"{file.relative_to(DOCS)}:{number}", f"{found[0]!r} is to be said plainly"
                )


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yields what users call: the functions of the package and the public methods of its classes."""
    names = [(name, getattr(indextables, name)) for name in indextables.__all__]
    names += [(f"domain.{name}", getattr(domain, name)) for name in domain.__all__]
    for name, value in names:
        if inspect.isclass(value):
            yield name, value
            for method, found in vars(value).items():
                function = getattr(found, "__func__", found)
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{method}", function
        elif inspect.isfunction(value):
            yield name, value
        elif isinstance(value, ModuleType) and value is not errors:
            yield from (
                (f"{name}.{inner}", getattr(value, inner)) for inner in getattr(value, "__all__", ())
            )


def incomplete() -> Iterator[Complaint]:
    """Yields public names whose docstring lacks what they take, return, or an example that runs."""
    for name, value in public():
        text = inspect.getdoc(value) or ""
        if ">>>" not in text:
            yield Complaint(name, "has no example that runs")
        if inspect.isclass(value):
            continue
        signature = inspect.signature(value)
        if set(signature.parameters) - {"self", "cls"} and "Args:" not in text:
            yield Complaint(name, "does not say what it takes (Args:)")
        if str(signature.return_annotation) not in {"None", "Self"} and "Returns:" not in text:
            yield Complaint(name, "does not say what it returns (Returns:)")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true", help="the numbers alone")
    counts = count()
    complaints = (
        [] if parser.parse_args(arguments).count else [*without_verb(), *riddles(), *incomplete()]
    )
    for place, what in complaints:
        print(f"{place}: {what}")
    share = counts.with_any / counts.functions
    if share > MOST_ANY:
        print(f"{share:.1%} of the signatures say Any, at most {MOST_ANY:.0%} may")
    print(counts)
    return int(bool(complaints) or share > MOST_ANY)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
