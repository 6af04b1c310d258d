"""Numbers, moments and facts as people read them, in a terminal and in a notebook."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

# Characters that a terminal may obey instead of showing: controls, and those that turn the direction of text.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_CAPITAL: Final = re.compile("[A-Z]")
# Counts of how a commit was made, which say nothing about what it holds.
_TECHNICAL: Final = frozenset({"numTouchedGroups", "numTruncatedColumns"})


def human_bytes(count: int) -> str:
    """Returns a size a person can read.

    >>> human_bytes(999), human_bytes(245_000), human_bytes(12_400_000)
    ('999 B', '245.0 kB', '12.4 MB')
    """
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def human_moment(milliseconds: int | None) -> str | None:
    """Returns milliseconds since 1970 as ISO text, or as they are if the calendar ends before.

    >>> human_moment(0), human_moment(None), human_moment(10**18)
    ('1970-01-01T00:00:00.000+00:00', None, '1000000000000000000 ms')
    """
    if milliseconds is None:
        return None
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds")


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where it needs one.

    >>> counted(1, "split"), counted(1200, "split")
    ('1 split', '1,200 splits')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def what_changed(metrics: Mapping[str, object]) -> str:
    """Returns the metrics of a commit in words: counts that are not zero, without the `num` before their names.

    >>> what_changed({"numAddedFiles": 2, "numOutputBytes": 1500, "numDeletedRows": 0})
    '2 added files, 1.5 kB written'
    """
    return ", ".join(_changed(name, count) for name, count in metrics.items() if _is_said(name, count))


def _is_said(name: str, count: object) -> bool:
    return (
        isinstance(count, int)
        and bool(count)
        and not isinstance(count, bool)
        and name not in _TECHNICAL
    )


def _changed(name: str, count: object) -> str:
    number = count if isinstance(count, int) else 0
    words = _CAPITAL.sub(lambda found: f" {found[0].lower()}", name.removeprefix("num")).strip()
    what, _, kind = words.rpartition(" ")
    if kind == "bytes":
        return f"{human_bytes(number)} {'written' if what == 'output' else what}"
    if name == "truncationBytesSaved":
        return f"{human_bytes(number)} of statistics saved"
    what = "written" if what == "output" else what
    return f"{number:,} {what} {kind[:-1] if number == 1 and kind.endswith('s') else kind}".replace(
        "  ", " "
    )


def visible(text: str) -> str:
    r"""Returns the text with every character that a terminal would obey written out.

    >>> print(visible("red: \x1b[31m, line: \n, half: \udcff"))
    red: \x1b[31m, line: \n, half: \udcff
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


# What a notebook shows of an object. Every style is written where it is used: notebooks drop style sheets.

_CELL: Final = "text-align:left;padding:.15em .8em .15em 0;vertical-align:top"
_SHOWN_ROWS: Final = 50


def html_facts(title: str, facts: Mapping[str, object]) -> str:
    """Returns a title and a small table of facts as HTML; a fact that is None is left out.

    >>> html_facts("a <b>", {"rows": "1,200", "key": None})[:33]
    '<div><b>a &lt;b&gt;</b><table><tb'
    """
    rows = [(name, str(value)) for name, value in facts.items() if value is not None]
    return f"<div><b>{escape(visible(title))}</b>{_html_rows(rows)}</div>"


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a title and a table as HTML, cut after some rows with a word about the rest."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    more = len(rows) - _SHOWN_ROWS
    rest = f"<div>and {counted(more, 'row')} more</div>" if more > 0 else ""
    return f"<div><b>{escape(visible(title))}</b>{_html_rows(rows[:_SHOWN_ROWS], head)}{rest}</div>"


def html_share(part: float, whole: float, label: str) -> str:
    """Returns a bar that is filled as far as the part goes, under a label.

    >>> "width:25.0%" in html_share(1, 4, "1 of 4 splits kept")
    True
    """
    share = 100 * part / whole if whole else 0
    return (
        f"<div>{escape(label)}</div>"
        '<div style="background:#8885;border-radius:4px;height:10px;max-width:32em">'
        f'<div style="background:#2563eb;border-radius:4px;height:10px;width:{share:.1f}%"></div></div>'
    )


def _html_rows(rows: Iterable[Sequence[object]], head: str = "") -> str:
    cell = f'<td style="{_CELL}">'
    body = "".join(
        "<tr>" + "".join(f"{cell}{escape(visible(str(value)))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
