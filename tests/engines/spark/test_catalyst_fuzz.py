"""Random conditions drawn from Spark's own functions: no row is lost, and no DELETE removes another one.

The truth is Spark over plain Parquet, each condition evaluated for each row by itself, so that a row on which a
condition raises does not hide what it is for the others. `make fuzz` runs this for as long as you like
(FUZZ_SECONDS, INDEXTABLES_CATALYST_SEED).
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from support.catalyst_conditions import Conditions
from support.catalyst_rows import plain_frame, write_both

from indextables.engines.spark.place.tables_and_options import open_table
from indextables.engines.spark.scan.scan_report import our_scans

# A fixed number of draws where no time is given, so that two runs of the suite draw the same.
SECONDS = float(os.environ.get("FUZZ_SECONDS", "120"))
BATCHES = 10**9 if "FUZZ_SECONDS" in os.environ else 14
SEED = int(os.environ.get("INDEXTABLES_CATALYST_SEED", "1"))
BATCH = 40
FEW, REPORT_EACH = 1000, 25
"""A run of more batches than a few says how far it is after each of these many."""
ZONES = [
    "UTC",
    "America/Havana",
    "Asia/Kathmandu",
    "Europe/Amsterdam",
    "America/New_York",
    "Pacific/Apia",
]
FAILURES = (PySparkException, Py4JJavaError)
"""What Spark raises: its own errors, and Java's where it did not expect any."""
RAISED = object()
"""In place of TRUE, FALSE or NULL: the condition raises on this row."""


class World:
    """A table, partitioned or not, the same rows as plain Parquet, and for each file the rows it holds."""

    def __init__(self, spark, path, seed, partition_by):
        write_both(path, seed, partition_by)
        self.spark, self.path = spark, path / "table"
        self.frame = spark.read.format("indextables").load(str(self.path))
        self.plain = plain_frame(spark, path)
        snapshot = open_table(spark, str(self.path)).log.snapshot()
        self.files = [
            pq.read_table(self.path / split.path, columns=["k"], partitioning=None)["k"].to_pylist()
            for split in snapshot.splits()
        ]
        self.rows = {k for file in self.files for k in file}
        jvm = spark._jvm
        self._column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
        self._guarded = jvm.org.apache.spark.sql.catalyst.expressions.TryEval

    def is_typed(self, frame, condition):
        """Whether Spark's analyser takes it: not every type casts to every other."""
        try:
            frame.where(condition)
        except FAILURES:
            return False
        return True

    def truth(self, frame, conditions):
        """For each condition what it is for each row, RAISED included; None if Spark cannot evaluate it at all."""
        if not conditions:
            return []
        from pyspark.sql.classic.column import Column

        parse = self.spark._jsparkSession.sessionState().sqlParser().parseExpression
        columns = [
            Column(self._column(self._guarded(parse(f"named_struct('v', ({c}))")))).alias(f"v{i}")
            for i, c in enumerate(conditions)
        ]
        try:
            rows = frame.select("k", *columns).collect()
        except FAILURES:
            if len(conditions) == 1:
                return [None]
            half = len(conditions) // 2
            return self.truth(frame, conditions[:half]) + self.truth(frame, conditions[half:])
        return [
            {row[0]: RAISED if row[i + 1] is None else row[i + 1][0] for row in rows}
            for i in range(len(conditions))
        ]

    def kept(self, frame, condition):
        """The rows of the files that a query by this condition opens; None if it raises before it has a plan."""
        try:
            plan = frame.where(condition)._jdf.queryExecution().sparkPlan()
            scans = list(our_scans(plan))  # none: Spark knows without looking that no row matches
            masks = [scan.plan().rows for scan in scans]
        except FAILURES:
            return None
        return {k for mask in masks for i in np.flatnonzero(mask) for k in self.files[i]}

    def is_planned(self, frame, condition):
        """Whether Spark's planner gets over the condition: it computes what is constant in it."""
        try:
            frame.where(condition)._jdf.queryExecution().sparkPlan()
        except FAILURES:
            return False
        return True

    def selected(self, frame, condition):
        """The rows of a query; None if it raises."""
        try:
            return {row.k for row in frame.where(condition).select("k").collect()}
        except FAILURES:
            return None

    def left_by_delete(self, condition, folder):
        """The rows a DELETE leaves; all and True if it raised."""
        shutil.copytree(self.path, folder)
        raised = False
        try:
            self.spark.sql(f"DELETE FROM indextables.`{folder}` WHERE {condition}")
        except FAILURES:
            raised = True
        frame = self.spark.read.format("indextables").load(str(folder))
        left = {row.k for row in frame.select("k").collect()}
        shutil.rmtree(folder)
        return left, raised


def of(truth, value):
    """The rows of a truth with one value."""
    return {k for k, v in truth.items() if v is value}


class Search:
    """Conditions compared one after the other; what is wrong, and how many of which kind there were."""

    def __init__(self, spark, folder, seed):
        self.spark, self.folder, self.seed = spark, folder, seed
        self.chance = random.Random(seed)
        self.conditions = Conditions(seed)
        self.worlds = [
            World(spark, made, seed, by)
            for by, name in (((), "plain"), (("p", "q"), "partitioned"))
            if (made := folder / f"{name}{seed}").mkdir() is None
        ]
        self.counts = Counter()
        self.wrong = []

    def batch(self, configured):
        """Some conditions under one choice of settings."""
        world = self.chance.choice(self.worlds)
        ansi, zone = self.chance.choice(["true", "false"]), self.chance.choice(ZONES)
        configured("spark.sql.ansi.enabled", ansi)
        configured("spark.sql.session.timeZone", zone)
        frame, plain = world.frame, world.plain
        drawn = [self.conditions.next() for _ in range(BATCH)]
        if self.chance.random() < 0.3 and (views := self.views(world)):
            frame, plain, kind = views
            drawn = [self.conditions.compared("v", kind) for _ in range(BATCH)]
            configured("spark.sql.ansi.enabled", self.chance.choice(["true", "false"]))
            configured("spark.sql.session.timeZone", self.chance.choice(ZONES))
        self.counts["drawn"] += len(drawn)
        known = [c for c in dict.fromkeys(drawn) if world.is_typed(plain, c)]
        settings = f"ansi {ansi}, {zone}, world {self.worlds.index(world)}, seed {self.seed}"
        for condition, truth in zip(known, world.truth(plain, known), strict=True):
            if truth is None:
                self.counts["not evaluated"] += 1
                continue
            self.check(world, frame, plain, condition, truth, settings)

    def views(self, world):
        """The table and the plain files with one value more, made under the settings of this moment."""
        value, kind = self.conditions.value()
        try:
            return (
                world.frame.selectExpr("*", f"{value} AS v"),
                world.plain.selectExpr("*", f"{value} AS v"),
                kind,
            )
        except FAILURES:
            return None

    def check(self, world, frame, plain, condition, truth, settings):
        """One condition: the files kept, sometimes its rows, sometimes what a DELETE leaves."""
        wanted, raised = of(truth, True), of(truth, RAISED)
        self.counts["compared"] += 1
        self.counts["raising"] += bool(raised)
        kept = world.kept(frame, condition)
        if kept is None:
            self.counts["raised by the planner"] += 1
            if not raised and world.is_planned(plain, condition):
                self.report(world, plain, condition, wanted, ("not planned", None), settings)
            return
        self.counts["files kept"] += len(kept) // 8
        self.counts["files"] += len(world.files)
        if lost := wanted - kept:
            self.report(world, plain, condition, wanted, ("lost", sorted(lost)), settings)
        if self.chance.random() < 0.15:
            self.counts["read"] += 1
            found = world.selected(frame, condition)
            if found is None and not raised:
                self.report(world, plain, condition, wanted, ("raised", None), settings)
            if found is not None and (wrong := (found ^ wanted) - raised):
                self.report(world, plain, condition, wanted, ("other rows", sorted(wrong)), settings)
        if frame is world.frame and self.chance.random() < 0.04:
            self.counts["deletes"] += 1
            left, failed = world.left_by_delete(condition, self.folder / "copy")
            if failed and not raised:
                self.report(world, plain, condition, wanted, ("DELETE raised", None), settings)
            gone = world.rows - left
            right = set() if failed else wanted
            if wrong := (gone ^ right) - (set() if failed else raised):
                self.report(world, plain, condition, wanted, ("DELETE", sorted(wrong)), settings)

    def report(self, world, plain, condition, wanted, what, settings):
        """Keeps what is wrong, if Spark itself gives these rows by a filter as well."""
        found = world.selected(plain, condition)
        if found == wanted or (found is None and "raised" not in what[0]):
            self.wrong.append((what, condition, settings))


def test_no_condition_drawn_from_sparks_own_functions_loses_a_row_or_deletes_another(
    spark, configured, tmp_path, capsys, monkeypatch
):
    """Skipped files hold no row the condition is TRUE for; what is read and deleted is what Spark itself finds."""
    # thousands of conditions that Spark refuses, each with a stack in the log
    logging.getLogger("SQLQueryContextLogger").disabled = True
    # PySpark itself fails while it logs an error that has no place in a statement
    monkeypatch.setattr(PySparkException, "_log_exception", lambda _: None)
    spark.sparkContext.setLogLevel("OFF")
    # what is shared by several conditions would be computed outside of the guard against what one raises
    configured("spark.sql.subexpressionElimination.enabled", "false")
    end = time.monotonic() + SECONDS
    search = Search(spark, tmp_path, SEED)
    for _ in range(BATCHES):
        if time.monotonic() > end or len(search.wrong) >= 20:
            break
        search.batch(configured)
        if BATCHES > FEW and search.counts["drawn"] % (REPORT_EACH * BATCH) == 0:
            with capsys.disabled():
                print(
                    f"\ncatalyst fuzzer so far: {dict(search.counts)}, wrong: {search.wrong}",
                    flush=True,
                )
    spark.sparkContext.setLogLevel("ERROR")
    counts = search.counts
    with capsys.disabled():
        print(f"\ncatalyst fuzzer: {dict(counts)}")
    assert not search.wrong, "\n".join(map(str, search.wrong))
    assert counts["compared"] >= 100
    assert counts["raising"] + counts["not evaluated"] <= 0.3 * (
        counts["compared"] + counts["not evaluated"]
    )
