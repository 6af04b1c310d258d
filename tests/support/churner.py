"""A writer process that changes a table as fast as it can, and cleans up behind itself.

    python -m support.churner <uri> <verb> <seconds>

`append` adds the next number; `overwrite` puts five rows with the next number in place of all. It prints the
last number it committed.
"""

import sys
import time

import pyarrow as pa

from indextables.table.table import Table


def main(uri: str, verb: str, seconds: float) -> None:
    table, number = Table(uri), 0
    print("ready", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        number += 1
        if verb == "append":
            table.append(pa.table({"n": [number]}))
        else:
            table.overwrite(pa.table({"n": [number] * 5}))
        if number % 8 == 0:
            table.vacuum(apply=True)
    print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
