"""A writer process: appends one row per commit and says so, until it is done or dead.

    python -m support.appender <uri> <writer> <first> <count>

After each commit it prints the row's number; what it printed, it has committed.
"""

import sys

import pyarrow as pa

from indextables.table.table import Table


def main(uri: str, writer: int, first: int, count: int) -> None:
    table = Table(uri)
    print("ready", flush=True)
    for number in range(first, first + count):
        table.append(pa.table({"writer": [writer], "number": [number]}))
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
