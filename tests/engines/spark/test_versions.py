"""Versions of Spark: which are known, and what a version asks of the Python that its JVM calls."""

from __future__ import annotations

from types import SimpleNamespace

import pyspark
import pytest

from indextables.engines.spark.jvm.gateway import jvm_tools
from indextables.engines.spark.scan.file_index import TableFileIndex
from indextables.engines.spark.statement.plan_rewrite import Rewriter
from indextables.engines.spark.statement.views import _Reads
from indextables.engines.spark.versions import KNOWN, check_jvm, seam, seam_of
from indextables.errors import IndexTablesError
from indextables.table.table import Table

NEVER_ASKED = {
    # what Scala's own functions make of one; Catalyst asks for `applyOrElse` and `isDefinedAt` alone
    "scala.PartialFunction": {
        *("andThen", "compose", "elementWise", "lift", "orElse", "runWith", "toString", "unapply"),
    },
    "org.apache.spark.sql.execution.datasources.FileIndex": set(),
}


@pytest.mark.parametrize("version", ["3.4.4", "5.0.0", "4", ""])
def test_an_unknown_version_is_an_error_that_names_the_known_ones(version):
    """Nothing is tried on a version that nobody ran."""
    with pytest.raises(IndexTablesError, match=r"3\.5, 4\.0, 4\.1, 4\.2, 4\.3"):
        seam_of(version)


def test_a_cluster_of_another_version_is_an_error():
    """PySpark of one version talks to the JVM of another one until something is missing there."""
    other = next(name for name in KNOWN if name != seam.name)
    with pytest.raises(IndexTablesError, match=f"runs Spark {other}.9, and PySpark"):
        check_jvm(SimpleNamespace(version=f"{other}.9"))


def test_what_is_chosen_belongs_to_the_version_that_is_installed(spark):
    """A newer patch of a version is the same version."""
    assert spark.version == pyspark.__version__
    assert pyspark.__version__.startswith(seam.name + ".")


@pytest.mark.parametrize("proxy", [TableFileIndex, Rewriter, _Reads])
def test_a_proxy_has_every_method_that_the_jvm_may_call(spark, proxy):
    """py4j asks Python for default methods too, and a newer Spark may have more of them."""
    for interface in proxy.Java.implements:
        modifier = jvm_tools().lookup("java.lang.reflect.Modifier")
        methods = jvm_tools().find_class(interface).getMethods()
        asked = {m.getName() for m in methods if not modifier.isStatic(m.getModifiers())}
        plain = {name for name in asked if "$" not in name}
        assert plain
        missing = {name for name in plain if not callable(getattr(proxy, name, None))}
        assert missing <= NEVER_ASKED[interface], missing


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MILLIS"])
def test_timestamps_have_bounds_whatever_the_session_writes_elsewhere(
    spark, configured, tmp_path, kind
):
    """INT96 has no statistics: nothing would fail, and nothing would be skipped."""
    configured("spark.sql.parquet.outputTimestampType", kind)
    frame = spark.sql("SELECT id, timestamp_micros(id * 1000000 + 1) AS t FROM range(0, 100, 1, 2)")
    frame.write.format("indextables").save(str(tmp_path / "t"))
    table = Table(str(tmp_path / "t"))
    lows = sorted(split.stats.min_values["t",] for split in table.snapshot().splits())
    assert lows == [1, 50_000_001]
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == kind
    assert table.plan("t >= TIMESTAMP'1970-01-01 00:01:00Z'").report.kept_files == 1
