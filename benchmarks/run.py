"""Run every benchmark program in this folder, one after the other.

    make bench                       all of them
    make bench ARGS="prune open"     some of them
    python benchmarks/prune.py       one, with its own options (--help)

Each program prints its table and writes its last result to benchmarks/results/<name>.json; at the end
docs/performance.md is written anew from all of them (`report.py`). Nothing here needs Maven: peers are the ones PyPI has (deltalake, pyiceberg, plain Parquet). A peer that is not
installed is named and left out. A program that misses its target or crashes does not stop the others: the
summary at the end names it, and the exit code is 1.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"run", "common", "report"}


def programs() -> dict[str, Path]:
    found = {path.stem: path for path in sorted(HERE.glob("*.py"))}
    return {name: path for name, path in found.items() if name not in NOT_BENCHMARKS}


def main(wanted: list[str]) -> int:
    known = programs()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(
            f"no benchmark named {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr
        )
        return 2
    outcomes = {name: run(name, known[name]) for name in wanted or list(known)}
    print("\n=== summary ===")
    for name, (outcome, seconds) in outcomes.items():
        print(f"  {name:<12} {outcome:<24} {seconds:>6.0f} s", flush=True)
    if (HERE / "report.py").exists():
        subprocess.run([sys.executable, str(HERE / "report.py")], check=True)
    return 0 if all(outcome == "ok" for outcome, _ in outcomes.values()) else 1


def run(name: str, program: Path) -> tuple[str, float]:
    """(how it ended, seconds); one that misses its target or crashes does not stop the others."""
    print(f"\n=== {name} ===", flush=True)
    started = time.perf_counter()
    code = subprocess.run([sys.executable, str(program)], check=False).returncode
    seconds = time.perf_counter() - started
    return ("ok" if code == 0 else f"FAILED (exit code {code})"), seconds


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
