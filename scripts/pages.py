"""Writes the pages that are made from the code and from other pages, so that they cannot go stale.

Run `python scripts/pages.py` after a change of an option, a help text or a decision; a test compares them.
"""

from __future__ import annotations

import re
from pathlib import Path

from indextables.cli.docs import help_page
from indextables.config import options_markdown

DOCS = Path(__file__).parent.parent / "docs"
_DECISIONS = """# Decisions

One page each: what was decided, why, what was rejected. To add one, copy the shape of the newest, take the next
number, and run `python scripts/pages.py`. A number that is missing was never published. A decision that no longer
holds is not deleted: its status names the one that takes its place.

| | decision | status | date |
|---|---|---|---|
"""
_OPTIONS = """# Options

Every option can be given in several places. The first of these that has it decides: the write itself
(`df.write.option(…)`, `Table.append(…, options={…})`), the Spark session (`spark.conf.set(…)`), Hadoop's configuration,
the table's properties (`Table.create(…, properties={…})`, `TBLPROPERTIES`). Keys are compared without regard to case;
an unknown one is warned of, with the name that was meant.

"""
_HEAD = re.compile(r"# (\d+)\. (.+)\n\nStatus: (.+)\. Date: (\d{4}-\d\d-\d\d)\.\n")


def decisions_page() -> str:
    """Returns the index of the decisions; ValueError names one that does not begin as it should."""
    rows = []
    for file in sorted((DOCS / "adr").glob("0*.md")):
        head = _HEAD.match(file.read_text(encoding="utf-8"))
        if head is None or int(head[1]) != int(file.name[:4]):
            raise ValueError(
                f"{file.name} does not begin with '# N. title', an empty line and 'Status: …. Date: ….'"
            )
        rows.append(f"| {head[1]} | [{head[2]}]({file.name}) | {head[3]} | {head[4]} |\n")
    return _DECISIONS + "".join(rows)


def options_page() -> str:
    """Returns the page of all options."""
    return _OPTIONS + options_markdown()


PAGES = {"adr/README.md": decisions_page, "options.md": options_page, "cli.md": help_page}

if __name__ == "__main__":
    for page, write in PAGES.items():
        (DOCS / page).write_text(write(), encoding="utf-8")
