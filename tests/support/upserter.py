"""A writer process: upserts shared keys and one key of its own per commit, until it is done.

    python -m support.upserter <uri> <writer> <count>

After each commit it prints its number; what it printed, it has committed.
"""

import sys

import pyarrow as pa

from indextables.table.table import Table

SHARED = 6


def main(uri: str, writer: int, count: int) -> None:
    table = Table(uri)
    print("ready", flush=True)
    for number in range(count):
        ids = [*range(number % SHARED, SHARED), 1000 * (writer + 1) + number]
        rows = {"id": ids, "writer": [writer] * len(ids), "number": [number] * len(ids)}
        table.upsert(pa.table(rows))
        if number % 3 == 2:
            table.delete(f"id = {1000 * (writer + 1) + number - 1}")
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
