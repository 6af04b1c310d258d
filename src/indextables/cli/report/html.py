"""The report of a table as one HTML page that needs no network: all that it shows and runs is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from indextables._version import __version__
from indextables.cli.report.advice import advice_for, why_it_skips
from indextables.cli.report.live import live_table, packed
from indextables.cli.report.table_report import ColumnReport, TableReport
from indextables.display import counted, human_bytes, human_moment, what_changed

_LEAST_POINTS: Final = 2
_HERE: Final = files("indextables.cli.report")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What a browser lets the page do: run what is in it, and load nothing."""
_LIVE: Final = """
<section id="live" hidden><h2>Which splits does a condition read?</h2>
<label for="where">Condition</label>
<input type="text" id="where" spellcheck="false" autocomplete="off" autocapitalize="off" placeholder="type a condition, or choose one below">
<div id="examples"></div>
<p id="answer" role="status" aria-live="polite"></p><div class="share" aria-hidden="true"><i id="share"></i></div>
<div class="tools"><span class="key kept">kept</span><span class="key">skipped</span>
<span><label for="order">Order</label> <select id="order"><option value="-1">as in the log</option></select></span>
<span id="zoom" aria-live="polite"></span><button id="all" type="button">Show all</button></div>
<p class="quiet">Each bar is a split, from the least to the greatest value of the column in it. Drag to zoom, double-click to
see all; with the keyboard, the arrow keys, plus, minus and zero.</p>
<div id="maps"></div><p id="left" class="quiet"></p>
<div id="details" role="status" aria-live="polite"></div>
<details><summary>The splits that are kept</summary><div class="scroll"><table><thead><tr><th>split</th><th>rows</th><th>size</th></tr></thead>
<tbody id="listed"></tbody></table></div><p id="more" class="quiet"></p></details></section>
<noscript><p class="quiet">With JavaScript, this page draws each split and answers conditions. It loads nothing from elsewhere.</p></noscript>
"""


def html_page(report: TableReport) -> str:
    """Returns the page, with every text of the table escaped."""
    snapshot, log = report.snapshot, report.log
    facts = [
        ("version", f"{snapshot.version:,}", _moment(snapshot.timestamp_ms)),
        ("rows", "not known" if report.rows is None else f"{report.rows:,}", _key(report)),
        ("splits", f"{snapshot.num_files:,}", _files(report)),
        (
            "partitions",
            f"{report.partitions:,}",
            ", ".join(snapshot.partition_columns) or "not partitioned",
        ),
        ("log", human_bytes(log.total_bytes), counted(log.commits, "commit")),
        ("read to open", human_bytes(log.opening_bytes), counted(log.commits_to_replay, "commit")),
        (
            "saved by truncation",
            human_bytes(log.truncation_saved),
            _share(log.truncation_saved, report),
        ),
    ]
    sections = [
        _section("What could be better", _advice(report)),
        _LIVE,
        _section("How well each column skips", _columns(report)),
        _section("Sizes of splits", _sizes(report)),
        _section("Size of the log over versions", _growth(report)),
        _section(f"The newest {counted(len(report.history), 'commit')}", _history(report)),
    ]
    title = escape(report.uri)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_part('page.css')}</style></head>\n<body><h1>{title}</h1>\n"
        f'<div class="facts">{"".join(_fact(*fact) for fact in facts)}</div>\n'
        f"{''.join(sections)}<p><small>indextables {escape(__version__)}</small></p>\n"
        f'<script type="application/octet-stream" id="table">{packed(live_table(report.drawn))}</script>\n'
        f"<script>{_part('conditions.js')}</script>\n<script>{_part('page.js')}</script></body></html>\n"
    )


def _moment(milliseconds: int | None) -> str:
    text = human_moment(milliseconds) or "not known"
    return re.sub(r"T(\d\d:\d\d).*", r" \1 UTC", text)


def _part(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _key(report: TableReport) -> str:
    return f"record key: {', '.join(report.record_key)}" if report.record_key else "no record key"


def _files(report: TableReport) -> str:
    deltas = f", {counted(report.delta_files, 'delta file')} of them" if report.delta_files else ""
    return human_bytes(report.snapshot.total_bytes) + deltas


def _share(saved: int, report: TableReport) -> str:
    whole = saved + report.log.total_bytes
    return f"{saved / whole:.1%} of the log's size without it" if saved else "no statistic was too long"


def _fact(name: str, value: str, more: str) -> str:
    return f'<div class="fact">{escape(name)}<b>{escape(value)}</b><small>{escape(more)}</small></div>'


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}\n"


def _advice(report: TableReport) -> str:
    found = advice_for(report)
    if not found:
        return "<p>Nothing that this report checks.</p>"
    items = (f"<li>{escape(one.what)}<br><code>{escape(one.command)}</code></li>" for one in found)
    return f"<ul>{''.join(items)}</ul>"


def _columns(report: TableReport) -> str:
    header = (
        "column",
        "type",
        "lowest",
        "highest",
        "splits with statistics",
        "an equality reads",
        "why",
    )
    return _table(header, map(_column, report.columns))


def _column(column: ColumnReport) -> Sequence[str]:
    reach, splits = column.reach, column.splits
    known = splits - reach.missing
    note = "partition" if reach.partition else f"{reach.shortened} shortened" if reach.shortened else ""
    reads = (
        "not known" if column.point_reads is None else f"{column.point_reads:,.1f} of {splits:,} splits"
    )
    return (
        escape(reach.column),
        escape(reach.type),
        escape(reach.lowest or "not known"),
        escape(reach.highest or "not known"),
        f"{known:,} of {splits:,} <small>{note}</small>{_bar(known, splits)}",
        reads + (_bar(column.point_reads, splits) if column.point_reads is not None else ""),
        escape(why_it_skips(column)),
    )


def _sizes(report: TableReport) -> str:
    most = max(report.sizes.values(), default=0)
    rows = ((escape(name), f"{count:,}{_bar(count, most)}") for name, count in report.sizes.items())
    return _table(("size", "splits"), rows)


def _growth(report: TableReport) -> str:
    """Returns a curve of how the log grew with its versions, counted over the commits that are kept."""
    points = report.growth
    if len(points) < _LEAST_POINTS:
        return "<p>One version is kept, so there is nothing to compare.</p>"
    (first, _), (last, most) = points[0], points[-1]
    places = (
        f"{(version - first) / (last - first) * 1000:.1f},{100 - 96 * size / max(most, 1):.1f}"
        for version, size in points
    )
    label = f"The commits of versions {first:,} to {last:,} hold {human_bytes(most)}"
    return (
        f'<svg class="plot" viewBox="0 0 1000 102" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><path d="M{" L".join(places)}"/></svg>'
        f'<p class="quiet">{escape(label)}, without checkpoints.</p>'
    )


def _history(report: TableReport) -> str:
    rows = (
        (
            f"{entry.version:,}",
            escape(_moment(entry.timestamp_ms)),
            escape(entry.operation or "not said"),
            escape(what_changed(entry.metrics) or "no rows"),
            escape(human_bytes(entry.size_in_bytes)),
        )
        for entry in report.history
    )
    return _table(("version", "committed", "operation", "what it did", "size in the log"), rows)


def _table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _bar(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0
    return f'<div class="bar"><i style="width:{share:.0f}%"></i></div>'
