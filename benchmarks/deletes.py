"""What a change of one row costs in Spark: time, CPU, and the files written, on a table that is not clustered by it.

    python benchmarks/deletes.py                            4M rows in 40 splits, about two minutes on two cores
    python benchmarks/deletes.py --rows 400000 --splits 8   a quick look

Every split may hold the value that is looked for; one does, or none. CPU is that of the JVM and of Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from common import print_table

FORMAT = "indextables"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def cpu_seconds(spark: Any) -> float:
    """Of the JVM, by /proc where there is one, and of this process."""
    stat = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat")  # noqa: SLF001
    if not stat.exists():
        return time.process_time()
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + time.process_time()


def files_in(path: Path) -> dict[Path, int]:
    return {file: file.stat().st_size for file in (path / "data").rglob("*.parquet")}


def measured(spark: Any, source: Path, statement: str) -> dict[str, float]:
    path = source.with_name("copy")
    shutil.copytree(source, path)
    before = files_in(path)
    wall, cpu = time.perf_counter(), cpu_seconds(spark)
    spark.sql(statement.format(table=f"{FORMAT}.`{path}`"))
    wall, cpu = time.perf_counter() - wall, cpu_seconds(spark) - cpu
    new = {file: size for file, size in files_in(path).items() if file not in before}
    shutil.rmtree(path)
    return {"wall_s": wall, "cpu_s": cpu, "files": len(new), "written_mb": sum(new.values()) / 1e6}


def main() -> None:
    from indextables.engines.spark.local_session import local_session
    from indextables.engines.spark.session import enable

    options = arguments()
    spark = enable(local_session("benchmark", memory="4g"))
    with tempfile.TemporaryDirectory(prefix="indextables-benchmark-") as directory:
        source = Path(directory) / "table"
        spark.range(0, options.rows, 1, options.splits).selectExpr(
            "id", "xxhash64(id) AS k", "rand(1) AS score", "concat(uuid(), uuid()) AS body"
        ).write.format(FORMAT).save(str(source))
        one = (
            spark.read.format(FORMAT).load(str(source)).where(f"id = {options.rows // 2}").first()["k"]
        )
        works = {
            "DELETE of one row": f"DELETE FROM {{table}} WHERE k = {one}",
            "DELETE of no row": f"DELETE FROM {{table}} WHERE k = {one + 1}",
            "UPDATE of one row": f"UPDATE {{table}} SET score = 0 WHERE k = {one}",
        }
        rows = []
        for name, statement in works.items():
            found = [measured(spark, source, statement) for _ in range(options.runs + 1)][1:]
            medians = {key: statistics.median(each[key] for each in found) for key in found[0]}
            rows.append({"what": name, **medians, "files": int(medians["files"])})
    print_table(f"{options.rows:,} rows in {options.splits} splits", rows)
    spark.stop()


if __name__ == "__main__":
    main()
