"""The report of a table as one HTML page that needs no script, no font and no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import orjson

from indextables._version import __version__
from indextables.cli.report.advice import advice_for
from indextables.cli.report.table_report import ColumnReport, TableReport
from indextables.cli.report.words import counted, human_bytes, human_moment

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --bar: #3b82f6; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .8rem; }
.fact { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.fact b { display: block; font-size: 1.25rem; }
table { border-collapse: collapse; width: 100%; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; vertical-align: top; }
.bar { background: var(--line); border-radius: .3rem; height: .6rem; min-width: 6rem; margin-top: .4rem; }
.bar i { display: block; background: var(--bar); border-radius: .3rem; height: 100%; }
code { font: .9em ui-monospace, monospace; } small { opacity: .7; }
"""


def html_page(report: TableReport) -> str:
    """Returns the page, with every text of the table escaped."""
    snapshot, log = report.snapshot, report.log
    facts = [
        ("version", f"{snapshot.version:,}", human_moment(snapshot.timestamp_ms) or ""),
        ("rows", "unknown" if report.rows is None else f"{report.rows:,}", ""),
        ("splits", f"{snapshot.num_files:,}", _files(report)),
        ("partitions", f"{report.partitions:,}", ", ".join(snapshot.partition_columns)),
        ("log", human_bytes(log.total_bytes), f"{counted(log.commits, 'commit')}"),
        ("read to open", human_bytes(log.opening_bytes), counted(log.commits_to_replay, "commit")),
        (
            "saved by truncation",
            human_bytes(log.truncation_saved),
            _share(log.truncation_saved, report),
        ),
    ]
    sections = [
        _section("What could be better", _advice(report)),
        _section("Statistics", _columns(report)),
        _section("Sizes of splits", _sizes(report)),
        _section(f"The newest {counted(len(report.history), 'commit')}", _history(report)),
    ]
    title = escape(report.uri)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f'<div class="facts">{"".join(_fact(*fact) for fact in facts)}</div>\n'
        f"{''.join(sections)}<p><small>indextables {escape(__version__)}</small></p></body></html>\n"
    )


def _files(report: TableReport) -> str:
    deltas = f", {counted(report.log_files, 'delta file')} of them" if report.log_files else ""
    return human_bytes(report.snapshot.total_bytes) + deltas


def _share(saved: int, report: TableReport) -> str:
    whole = saved + report.log.total_bytes
    return f"{saved / whole:.1%} of the log's size without it" if saved else ""


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
    header = ("column", "type", "lowest", "highest", "splits with statistics", "an equality reads")
    return _table(header, map(_column, report.columns))


def _column(column: ColumnReport) -> Sequence[str]:
    reach, splits = column.reach, column.splits
    known = splits - reach.missing
    note = "partition" if reach.partition else f"{reach.shortened} shortened" if reach.shortened else ""
    reads = "" if column.point_reads is None else f"{column.point_reads:,.1f} of {splits:,} splits"
    return (
        escape(reach.column),
        escape(reach.type),
        escape(reach.lowest or ""),
        escape(reach.highest or ""),
        f"{known:,} of {splits:,} <small>{note}</small>{_bar(known, splits)}",
        reads + (_bar(column.point_reads, splits) if column.point_reads is not None else ""),
    )


def _sizes(report: TableReport) -> str:
    most = max(report.sizes.values(), default=0)
    rows = ((escape(name), f"{count:,}{_bar(count, most)}") for name, count in report.sizes.items())
    return _table(("size", "splits"), rows)


def _history(report: TableReport) -> str:
    rows = (
        (
            f"{entry.version:,}",
            escape(human_moment(entry.timestamp_ms) or ""),
            escape(entry.operation or ""),
            escape(human_bytes(entry.size_in_bytes)),
            f"<code>{escape(_json(dict(entry.metrics)))}</code>",
        )
        for entry in report.history
    )
    return _table(("version", "committed", "operation", "commit", "metrics"), rows)


def _json(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _bar(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0
    return f'<div class="bar"><i style="width:{share:.0f}%"></i></div>'
