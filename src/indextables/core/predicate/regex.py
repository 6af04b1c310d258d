"""Regular expressions as Java means them, in the syntax of Arrow's: only what surely means the same."""

from __future__ import annotations

import re
from typing import Final

from indextables.core.predicate.nodes import Ref, StartsWith

# Java's dot and its end of text know more ends of lines than Arrow's.
_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_DOT: Final = f"[^{_ENDS}]"
_END: Final = rf"(?:\r\n|[{_ENDS}])?\z"
_CLASSES: Final = {"d": "[0-9]", "D": "[^0-9]", "w": r"\w", "W": r"\W", "s": r"[ \t\n\x0B\f\r]"}
_TOKEN: Final = re.compile(
    r"""
      (?P<escaped>\\[^A-Za-z0-9])
    | \\(?P<kind>[dDwWs])
    | (?P<set>\[\^?[^][\\&^]+\])
    | (?P<quantifier>[*+?]\??(?![+*?{])|\{\d{1,3}(?:,\d{0,3})?\}(?![+?*{]))
    | (?P<open>\((?!\?))
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<dot>\.)
    | (?P<plain>[^\\()\[\]{}*+?|.^$])
    """,
    re.VERBOSE | re.DOTALL,
)


def matches(ref: Ref, pattern: str) -> StartsWith | None:
    """Returns `ref RLIKE pattern`; None for a pattern that Java and Arrow may understand differently.

    >>> matches(Ref(("a",)), "^ab*c").prefix, matches(Ref(("a",)), r"(?i)a")
    ('a', None)
    """
    found = _read(pattern)
    return None if found is None else StartsWith(ref, found[0], exact=False, regex=pattern)


def arrow_regex(pattern: str) -> str:
    """Returns the pattern in Arrow's syntax; `matches` has found it to be readable."""
    found = _read(pattern)
    assert found is not None
    return found[1]


def _read(pattern: str) -> tuple[str, str] | None:
    """Returns the text all matches begin with, and the pattern in Arrow's syntax."""
    anchored, body = pattern.startswith("^"), pattern.removeprefix("^")
    ended = body.endswith("$") and not body.endswith(r"\$")
    body = body[:-1] if ended else body
    if (anchored or ended) and "|" in body:
        return None  # the anchor belongs to one side only
    spelled = _spelled(body)
    if spelled is None:
        return None
    text, prefix = spelled
    return prefix if anchored else "", (r"\A" if anchored else "") + text + (_END if ended else "")


def _spelled(body: str) -> tuple[str, str] | None:
    parts: list[str] = []
    prefix, in_prefix, at = "", True, 0
    while at < len(body):
        found = _TOKEN.match(body, at)
        if found is None:
            return None
        kind, text = found.lastgroup, found[0]
        at = found.end()
        if kind in {"plain", "escaped"}:
            prefix += text[-1] if in_prefix else ""
            parts.append(re.escape(text[-1]))
            continue
        if kind == "quantifier" and in_prefix and not text.startswith("+"):
            prefix = prefix[:-1]  # the character before it need not be there
        in_prefix = False
        parts.append(_CLASSES[found["kind"]] if kind == "kind" else _DOT if kind == "dot" else text)
    return "".join(parts), prefix
