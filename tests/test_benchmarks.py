"""`make bench`: every program runs, whatever becomes of the others."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from shutil import copy

RUN = Path(__file__).parents[1] / "benchmarks/run.py"


def test_a_benchmark_that_fails_does_not_stop_the_others_and_is_named_at_the_end(tmp_path):
    """One misses its target, one crashes, and the last one still runs."""
    copy(RUN, tmp_path)
    programs = {"a_miss": "raise SystemExit(1)", "b_crash": "1 / 0", "c_fine": "print('measured')"}
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, tmp_path / "run.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "measured" in done.stdout
    summary = done.stdout.partition("=== summary ===")[2].splitlines()[1:]
    assert [line.split()[:2] for line in summary] == [
        ["a_miss", "FAILED"],
        ["b_crash", "FAILED"],
        ["c_fine", "ok"],
    ]


def test_the_page_of_numbers_is_what_the_results_say():
    """No number on it is typed: after a benchmark, `python benchmarks/report.py` writes it anew."""
    spec = importlib.util.spec_from_file_location("report", RUN.with_name("report.py"))
    report = importlib.util.module_from_spec(spec)
    sys.modules["report"] = report
    spec.loader.exec_module(report)
    assert report.PAGE.read_text() == report.page()
    assert {section.name for section in report.SECTIONS} == {
        path.stem for path in RUN.parent.glob("results/*.json")
    }
