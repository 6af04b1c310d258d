"""The statements that docs/spark.md lists: each works by name and by path, or is refused in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException

from indextables.engines.spark.versions import seam
from indextables.errors import IndexTablesError

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def listed():
    """Each statement, and what stands behind it."""
    block = PAGE.read_text(encoding="utf-8").partition("<!-- statements -->")[2]
    block = block.partition("```sql\n")[2].partition("```")[0]
    found = re.findall(r"(.+?);(?: -- ([\w.]+))?\n", block, re.DOTALL)
    return [(statement.strip(), note) for statement, note in found]


def test_the_page_lists_what_users_type():
    """Sixty statements and more, some of which are refused."""
    notes = [note for _, note in listed()]
    assert len(notes) >= 60
    assert notes.count("refused") > 10


@pytest.mark.parametrize("by", ["name", "path"])
def test_each_statement_of_the_page_works_or_is_refused_in_words(spark, tmp_path, by):
    """None gives a stack of Java or a misleading "not found", and none is ignored: counts are compared at the end."""
    spark.sql("CREATE DATABASE of_the_page")
    spark.sql("USE of_the_page")
    wrong = []
    try:
        for statement, note in listed():
            if by == "path" and note == "name":
                continue
            text = statement
            if by == "path":
                text = re.sub(r"\borders\b", f"indextables.`{tmp_path / 'orders'}`", text)
                text = text.replace("'all indextables.", "'all ")
            try:
                spark.sql(text).collect()
                said = "works"
            except IndexTablesError as error:
                said = f"refused: {error.message}"
            except ParseException as error:
                said = f"no such syntax: {error}"
            except Py4JJavaError as error:
                said = f"STACK: {error}"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            newer = re.fullmatch(r"\d\.\d", note) and note > seam.name
            fine = ("refused", "no such syntax") if note == "refused" or newer else ("works",)
            if not said.startswith(fine):
                wrong.append((text, said[:300]))
        assert not wrong, "\n".join(map(str, wrong))
    finally:
        spark.catalog.dropTempView("recent")
        spark.sql("USE default")
        spark.sql("DROP DATABASE of_the_page CASCADE")
