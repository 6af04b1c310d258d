"""The page of a report: its answers are the planner's, nothing in it can act, and a browser runs it without a complaint."""

import base64
import datetime as dt
import gzip
import json
import os
import re
import shutil
import subprocess
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_mini_racer import MiniRacer

import indextables as it
from indextables.cli.report.html import html_page
from indextables.cli.report.live import live_table, packed
from indextables.cli.report.table_report import table_report
from support.commands import run

ATOB = """
const ABC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
globalThis.atob = (text) => {
  const out = [];
  for (let i = 0; i < text.length; i += 4) {
    const part = [...text.slice(i, i + 4)].map((c) => ABC.indexOf(c));
    const bits = (part[0] << 18) | (part[1] << 12) | ((part[2] & 63) << 6) | (part[3] & 63);
    out.push(bits >> 16);
    if (part[2] >= 0) out.push((bits >> 8) & 255);
    if (part[3] >= 0) out.push(bits & 255);
  }
  return String.fromCharCode(...out);
};
"""
ASK = """
globalThis.answer = (text) => {
  try { return Array.from(Conditions.kept(table, text)).join(""); }
  catch (problem) { if (problem instanceof Conditions.Problem) return "? " + problem.message; throw problem; }
};
"""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int8()),
        ("title", pa.string()),
        ("score", pa.float64()),
        ("ratio", pa.float32()),
        ("price", pa.decimal128(20, 3)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
        ("inner", pa.struct([("n", pa.int32())])),
    ]
)
TEXTS = ["", "a", "abc", "abd", "b%", "é", "ｚ", "𝄞", "it's", "z" * 300, "z" * 300 + "a"]
NUMBERS = [-(2**63), 2**63 - 1, 2**53 + 1, 0, 1, 7, -3]
DOUBLES = [0.0, -0.0, 0.1, 1e300, float("inf"), float("-inf"), float("nan"), -2.5]
PRICES = [Decimal("0.100"), Decimal("-12.345"), Decimal("9999.999"), Decimal(3)]
DAYS = [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(d.year, d.month, d.day, 13, 5, 7, 123456, dt.UTC) for d in DAYS[:2]]


def rows_of(draw_from, number):
    rng = np.random.default_rng(number)
    pick = lambda values: (
        [values[i] for i in rng.integers(0, len(values), 3)] + [None] * int(rng.integers(0, 2))
    )
    columns = [pick(values) for values in draw_from]
    longest = max(map(len, columns))
    return pa.table(
        {
            name: pa.array((column * 4)[:longest], SCHEMA.field(name).type)
            for name, column in zip(SCHEMA.names, columns, strict=True)
        }
    )


@pytest.fixture(scope="module")
def table():
    """Splits with few values each, among them the edges of each type, NULL only, and unknown statistics."""
    found = it.Table.create("memory://live", SCHEMA)
    values = [
        NUMBERS,
        [-128, 127, 0, 5],
        TEXTS,
        DOUBLES,
        [0.1, -0.0, float("nan"), 3.4e38],
        PRICES,
        DAYS,
        TIMES,
        [True, False],
        [{"n": 1}, {"n": 5}, None, {"n": None}],
    ]
    for number in range(24):
        narrow = [column[number % len(column) :][:2] for column in values]
        found.append(rows_of(narrow, number))
    found.append(pa.table({name: pa.nulls(2, SCHEMA.field(name).type) for name in SCHEMA.names}))
    found.append(rows_of(values, 99), options={"spark.indextables.dataSkippingStatsColumns": "id"})
    return found


@pytest.fixture(scope="module")
def page(table):
    """The evaluator of the page, with the table in it."""
    engine = MiniRacer()
    engine.eval(ATOB)
    source = re.search(
        r"<script>(\n?// Which splits.*?)</script>", html_page(table_report(table.uri)), re.S
    )
    engine.eval(source[1].replace("const Conditions", "globalThis.Conditions", 1))
    engine.eval(f"globalThis.table = Conditions.read({json.dumps(live_table(table.snapshot()))})")
    engine.eval(ASK)
    return engine


def planned(table, where):
    wanted = {split.path for split in table.plan(where).files}
    return "".join("1" if split.path in wanted else "0" for split in table.snapshot().splits())


def asked(page, where):
    return page.call("answer", where)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def of_column(name, values):
    compared = st.builds(
        "{} {} {}".format,
        st.just(name),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]),
        values,
    )
    flipped = st.builds(
        "{} {} {}".format, values, st.sampled_from(["=", "<", ">=", "!="]), st.just(name)
    )
    listed = st.builds(
        "{} {} ({})".format,
        st.just(name),
        st.sampled_from(["IN", "NOT IN"]),
        st.lists(st.one_of(values, st.just("NULL")), min_size=1, max_size=4).map(", ".join),
    )
    between = st.builds(
        "{} {} {} AND {}".format,
        st.just(name),
        st.sampled_from(["BETWEEN", "NOT BETWEEN"]),
        values,
        values,
    )
    null = st.sampled_from([f"{name} IS NULL", f"{name} IS NOT NULL"])
    return st.one_of(compared, compared, flipped, listed, between, null)


whole = st.sampled_from(
    [str(n) for n in NUMBERS[2:]] + ["3.5", "-2.50", "1e2", "9223372036854775807", "2.0"]
)
numbers = st.one_of(whole, st.integers(-300, 300).map(str))
doubles = st.sampled_from(["0.1", "0.0", "-0.0", "1e300", "-2.5", "7", "1e-5"])
texts = st.sampled_from(TEXTS).map(quoted)
patterns = st.sampled_from(["a%", "ab%", "a_c", "%b", "abc", "it''s%", "𝄞%", "zz%", "%"]).map(
    "'{}'".format
)
days = st.sampled_from([*DAYS[:2], dt.date(2024, 3, 1)]).flatmap(
    lambda day: st.sampled_from([f"'{day}'", f"DATE '{day}'"])
)
times = st.sampled_from(
    ["TIMESTAMP '2024-02-29 13:05:07.123456'", "TIMESTAMP '1969-12-31 13:05:07Z'", "'2024-02-29 00:00'"]
)
leaves = st.one_of(
    of_column("id", numbers),
    of_column("SMALL", numbers),
    of_column("title", texts),
    st.builds("title {} {}".format, st.sampled_from(["LIKE", "NOT LIKE"]), patterns),
    of_column("score", doubles),
    of_column("ratio", doubles),
    of_column("price", st.sampled_from(["0.1", "0.1005", "-12.345", "3", "1e3"])),
    of_column("day", days),
    of_column("at", times),
    of_column("inner.n", numbers),
    st.sampled_from(["ok", "NOT ok", "ok = false", "isnan(score)", "NOT isnan(ratio)", "ok IS NULL"]),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None)
@given(where=conditions)
def test_property_the_page_answers_what_the_planner_answers(table, page, where):
    """Split by split, for comparisons, lists, patterns and NULL, under AND, OR and NOT."""
    assert asked(page, where) == planned(table, where)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nope = 1", "no column nope"),
        ("id >", "expected a constant at the end"),
        ("id = 1 2", 'expected the end before "2"'),
        ("title = 3", "compare it with a text in quotes"),
        ("day = 'soon'", "no date"),
        ("at = '2024-02-30 00:00'", "no time"),
        ("id = small", "two columns"),
        ("lower(title) = 'a'", "no column lower"),
        ("id = 1 AND (", "expected"),
        ("title = 'a", "cannot read"),
        ("id", "no condition by itself"),
    ],
)
def test_what_the_page_cannot_read_it_says(page, where, words):
    """In a sentence, never as an answer."""
    answer = asked(page, where)
    assert answer.startswith("? ")
    assert words in answer


def test_an_empty_condition_keeps_everything(page, table):
    """As a query without one does."""
    assert set(asked(page, "  ")) == {"1"}
    assert len(asked(page, "")) == table.snapshot().num_files


def test_the_embedded_table_cannot_end_the_script_it_is_in(tmp_path):
    """Names and values are letters of base64; what the page shows of them is set as text."""
    hostile = "</script><script>alert(1)</script>"
    table = it.Table.create(tmp_path / "t", pa.schema([(hostile, pa.string())]))
    table.append(pa.table({hostile: [hostile, "<img src=x onerror=alert(1)>"]}))
    page = html_page(table_report(tmp_path / "t"))
    assert hostile not in page
    assert "<img" not in page
    packed_table = re.search(r'id="table">([^<]*)<', page)[1]
    read = json.loads(gzip.decompress(base64.b64decode(packed_table)))
    assert read["columns"][0]["name"] == hostile
    assert "http" not in re.sub(r'http-equiv="Content-Security-Policy"', "", page)


def test_a_page_of_many_splits_stays_small_enough_to_open(tmp_path):
    """Bounds are ranks and packed: a split with one column takes few bytes."""
    table = it.Table.create("memory://many", pa.schema([("id", pa.int64())]))
    for number in range(60):
        table.append(pa.table({"id": [number, number + 9]}))
    assert len(packed(live_table(table.snapshot()))) < 60 * 100


# In a real browser, where there is one. A workflow installs it and sets INDEXTABLES_BROWSER, which makes it required.

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
is_required = "INDEXTABLES_BROWSER" in os.environ
with_browser = pytest.mark.skipif(BROWSER is None and not is_required, reason="no Chromium here")


def browse(url):
    assert BROWSER is not None, "INDEXTABLES_BROWSER asks for a browser and there is none"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=5000", "--dump-dom", url],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, complaints


@with_browser
def test_a_browser_runs_the_page_without_a_complaint_or_a_request(articles, tmp_path):
    """The condition in the address is asked, its answer shown; the policy of the page forbids all loading."""
    assert run("report", articles, "--html", tmp_path / "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"\b(?:src|href)=", text.replace("default-src", ""))
    shown, complaints = browse(f"{(tmp_path / 'page.html').as_uri()}#where=id%20%3E%3D%20300")
    assert complaints == []
    assert 'data-kept="1"' in shown
    assert "Reads 1 of 4 splits" in shown
    assert "Zone map of id: 1 of 4 splits kept" in shown


@with_browser
def test_a_browser_answers_as_the_planner(table, tmp_path):
    """The same evaluator, unpacked by the browser's own decompression."""
    asked_for = [
        "id > 5",
        "title LIKE 'ab%' OR score < 0.1",
        "NOT (day >= '2024-02-29') AND ok",
        "price IN (0.1, 3)",
    ]
    page = html_page(table_report(table.uri)).replace(
        "const table = Conditions.read(",
        "const table = window.asked = Conditions.read(",
    )
    script = (
        "<pre id=answers></pre><script>const wait = setInterval(() => { if (!window.asked) return; clearInterval(wait);"
        f" document.getElementById('answers').textContent = {json.dumps(asked_for)}"
        ".map((c) => Array.from(Conditions.kept(window.asked, c)).join('')).join(' '); }, 10)</script></body>"
    )
    (tmp_path / "page.html").write_text(page.replace("</body>", script))
    shown, complaints = browse((tmp_path / "page.html").as_uri())
    assert complaints == []
    assert re.search(r'<pre id="answers">([01 ]+)</pre>', shown)[1].split() == [
        planned(table, c) for c in asked_for
    ]
