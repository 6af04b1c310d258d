"""Writes docs/performance.md from the last result of every benchmark: no number on that page is typed.

python benchmarks/report.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"

HEAD = """\
# Performance

Every number here was written by a program in [benchmarks/](../benchmarks/), from the results checked in beside it
(`make bench` runs all of them, then writes this page anew). Peers run in the same process or the same run, over the same
rows, taking turns. Milliseconds unless it says otherwise; small numbers are the best of several runs, because other
work on a machine can only add to them.
"""


@dataclass(frozen=True)
class Section:
    """One benchmark on the page."""

    name: str
    title: str
    about: str
    tables: Callable[[Any], Iterator[str]]


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown, numbers to the right."""
    cells = list(rows)
    rules = ["---:" if isinstance(value, int | float) else "---" for value in cells[0]]
    lines = [names, rules, *([cell(value) for value in row] for row in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(value: Any) -> str:
    if isinstance(value, float):
        digits = 2 if abs(value) < 3 else 1 if abs(value) < 100 else 0
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def pruning(found: Any) -> Iterator[str]:
    yield table(
        [f"{found['splits']:,} splits", "kept", "first plan", "next plan"],
        ([row["condition"], row["kept"], row["first_ms"], row["next_ms"]] for row in found["ours"]),
    )
    yield table(
        [f"{found['splits']:,} splits, functions", "kept", "next plan", "times the first", "target"],
        (
            [f"`{row['condition']}`", row["kept"], row["next_ms"], row["times_plain"], row["target"]]
            for row in found["functions"]
        ),
    )
    yield table(
        [f"{found['peer_splits']:,} splits", "first plan", "next plan", "deltalake", "pyiceberg"],
        (
            [
                row["condition"],
                row["first_ms"],
                row["next_ms"],
                row["deltalake_ms"],
                row["pyiceberg_ms"],
            ]
            for row in found["peers"]
        ),
    )


def opening(found: Any) -> Iterator[str]:
    names = ["open ms", "files ms", "point plan ms", "deltalake open ms", "deltalake files ms"]
    yield table(
        ["splits", "log", "open", "all files", "open and plan", "deltalake: open", "all files"],
        ([row["splits"], row["log"], *(row.get(name) for name in names)] for row in found),
    )


def truncation(found: Any) -> Iterator[str]:
    yield table(
        ["columns of articles", "truncation", "log, bytes", "open", "first plan"],
        (
            [one["columns"], name, row["bytes"], row["open_ms"], row["plan_ms"]]
            for one in found["tables"]
            for name, row in one["variants"].items()
        ),
    )
    yield table(
        ["columns of articles", "smaller", "opened faster, times", "opened and planned faster, times"],
        (
            [
                one["columns"],
                f"{one['smaller']:.1%}",
                one["faster"],
                one["read_faster"],
            ]
            for one in found["tables"]
        ),
    )


def engines(found: Any) -> Iterator[str]:
    yield table(
        ["engine", "through", "best", "median"],
        ([row["engine"], row["through"], row["ms"], row["median ms"]] for row in found["query"]),
    )
    yield table(
        ["100,000 splits planned through", "best", "median"],
        ([row["adapter"], row["ms"], row["median ms"]] for row in found["planning"]),
    )


def skipping(found: Any) -> Iterator[str]:
    ways = [name for name in found["forms"][0] if name not in {"family", "form", "with a row"}]
    yield table(list(found["summary"][0]), ([*row.values()] for row in found["summary"]))
    yield table(
        ["form", "files with a row", *ways],
        (
            [
                f"`{row['form'].replace('|', chr(92) + '|')}`",
                row["with a row"],
                *(row[name] for name in ways),
            ]
            for row in found["forms"]
        ),
    )


def spark(found: Any) -> Iterator[str]:
    measured = {name: row for name, row in found.items() if isinstance(row, Mapping)}
    yield table(
        [f"{found['rows']:,} rows in {found['splits']:,} splits", "table", "plain Parquet", "ratio"],
        (
            [name, row["table_ms"], row.get("plain_ms"), row.get("ratio")]
            for name, row in measured.items()
        ),
    )


def slices(found: Any) -> Iterator[str]:
    yield table(
        ["planned from", "merge", "files", "skipped, by the rule before", "skipped", "first", "next"],
        (
            [
                row["source"],
                row["merge"],
                row["files"],
                f"{row['skipped_before_%']} %",
                f"{row['skipped_now_%']} %",
                row["first_ms"],
                row["next_ms"],
            ]
            for row in found["planning"]
        ),
    )
    kinds = ["merge_on_read", "copy_on_write"]
    yield table(
        ["change", "delta files, s", "MB written", "rewriting files, s", "MB written"],
        (
            [row["step"], *(row[f"{k}_{n}"] for k in kinds for n in ("s", "mb"))]
            for row in found["writing"]
        ),
    )
    yield table(
        ["query", "slices with delta files", "rewritten files", "bases alone"],
        (
            [row["query"], *(row[f"{k} ms"] for k in ("merge-on-read", "copy-on-write", "bases only"))]
            for row in found["reading"]
        ),
    )


def repair(found: Any) -> Iterator[str]:
    yield table(
        ["adds", "commits", "log before, MB", "after, MB", "seconds", "CPU seconds", "peak memory, MB"],
        [
            [
                found["adds"],
                found["commits"],
                found["log_mb_before"],
                found["log_mb_after"],
                found["seconds"],
                found["cpu_seconds"],
                found["peak_memory_mb"],
            ]
        ],
    )


SECTIONS = (
    Section(
        "prune",
        "Which splits a query needs",
        "Deciding on statistics in memory. The first plan on a column decodes it; the next one finds it decoded.",
        pruning,
    ),
    Section(
        "open",
        "Opening a table",
        "From files on a local disk, nothing kept from before. `all files` is every path with its statistics as columns, "
        "for both.",
        opening,
    ),
    Section(
        "truncation",
        "Long text, small log",
        "100 splits with 8,000-character articles in one commit; eight such columns make the log of 12 MB that "
        "truncation was made for. What opening costs besides reading statistics (listing, checksums, the schema, one "
        "call of the parser) is the same with and without them: that is why one column gains less than eight.",
        truncation,
    ),
    Section(
        "engines",
        "1 % of 20 million rows in every engine",
        "400 files, of which the query needs 4. `its files alone` is the engine's own reader over those four, which "
        "nobody can name without planning.",
        engines,
    ),
    Section(
        "skipping",
        "Which conditions skip files",
        "Forms of condition that people write, over a table of 40 files: how many of them each engine reads, beside those "
        "that hold a row. `plan` is for engines that filter rows themselves. `refused`: the engine does not take the "
        "form; `-`: it has none. Beyond what bounds cannot decide, Polars keeps to itself what may raise (`CAST(id AS INT)`, "
        "`AS DOUBLE`, `AS STRING`) and decimals are not read from it; DataFusion makes nanoseconds of dates in `trunc(day, …)` "
        "and Substrait has no readable form for its intervals; neither reads its tuples or decimals.",
        skipping,
    ),
    Section(
        "spark",
        "Spark",
        "Beside plain Parquet with the same rows, medians of runs that take turns. A ratio below 1: the table is "
        "faster. `planning` keeps one of 10,000 splits, and plain Parquet has a single file there.",
        spark,
    ),
    Section(
        "slices",
        "Rows that change",
        "Slices with delete deltas, row deltas and rollback blocks. They make changes cheap and reads dearer until "
        "`compact` folds them in.",
        slices,
    ),
    Section(
        "repair",
        "Repairing a bloated log",
        "Statistics of 4,000 characters per bound, read, checked, cut and written again; the file system is asked for "
        "every split.",
        repair,
    ),
)


def page() -> str:
    """The whole page, as the checked-in results have it."""
    parts = [HEAD]
    for section in SECTIONS:
        record = json.loads((HERE / "results" / f"{section.name}.json").read_text())
        source = f"`{record['command']}` · {record['date']} · {record['machine']} · {versions(record)}"
        parts += [f"## {section.title}\n", f"{section.about}\n", *section.tables(record["results"])]
        parts.append(f"{source}\n")
    return "\n".join(parts)


def versions(record: Mapping[str, Any]) -> str:
    peers = {
        "prune": ("deltalake", "pyiceberg"),
        "open": ("deltalake",),
        "engines": ("pyarrow", "polars", "duckdb", "deltalake", "pyiceberg"),
        "spark": ("pyspark",),
    }
    named = peers.get(record["benchmark"], ("pyarrow",))
    return ", ".join(
        f"{name} {record['versions'][name]}" for name in named if name in record["versions"]
    )


def main() -> int:
    PAGE.write_text(page())
    print(f"written: docs/{PAGE.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
