"""From a seed to a scenario, from a scenario to a run, and from a failing run to a small one.

python -m simulation.run --seeds 1000            # seeds 0 to 999
python -m simulation.run --seed 17 --trace       # one of them, call by call
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random, seed as seed_global
from typing import Any, Literal

from indextables.errors import IndexTablesError, LogCorruptedError, VersionNotFoundError
from indextables.log.transaction_log import TransactionLog
from indextables.ops.check.log import check_log
from simulation.processes import Process, rows_of, setup
from simulation.record import LOG_RETENTION, Op, Record
from simulation.scheduler import DAY, START, Chances, World
from simulation.stores import Bucket, Disk, FoldingDisk, SimulatedStore

Kind = Literal["posix", "folding", "s3"]
DISKS = {"posix": Disk, "folding": FoldingDisk, "s3": Bucket}
MAX_STEPS = 3000


@dataclass(frozen=True)
class Scenario:
    """Everything a run depends on."""

    seed: int
    kind: Kind = "posix"
    scripts: tuple[tuple[str, ...], ...] = ()
    skews: tuple[int, ...] = ()
    chances: Chances = Chances()
    keyed: bool = False
    partitioned: bool = False
    interval: int = 3
    log_retention: str = "30 days"

    @property
    def swaps(self) -> bool:
        """True if a log is repaired and replaced in it."""
        return any(line in ("repair", "undo") for line in self.scripts[-1])


@dataclass(frozen=True)
class Run:
    """What came of it."""

    scenario: Scenario
    violations: tuple[str, ...]
    steps: int
    commits: int
    digest: int
    trace: tuple[str, ...] = ()


_WRITES = ("append", "append", "append", "delete", "delete", "overwrite", "overwrite all", "restore")
_UPKEEP = ("optimize", "analyze", "vacuum", "checkpoint", "cleanup", "read", "read", "sleep")
_WRONG = (-21 * DAY, -2 * DAY, 2 * DAY, 365 * DAY, 3653 * DAY)


def scenario_of(seed: int) -> Scenario:
    """The scenario with this number: each has its own mixture, so that rare things meet often."""
    random = Random(seed)
    kind: Kind = random.choice(("posix", "posix", "folding", "s3", "s3"))
    keyed = random.random() < 0.12
    swaps = not keyed and kind == "posix" and random.random() < 0.35
    verbs = random.sample(_WRITES + _UPKEEP, random.randrange(4, 11)) + ["append", "read"]
    if random.random() < 0.6:
        verbs += ["vacuum now"] * random.randrange(1, 3)
    if random.random() < 0.15:
        verbs += ["truncate"]
    if keyed:
        verbs = [v for v in verbs if v not in ("optimize", "analyze")] + ["upsert", "upsert", "compact"]
    ids = iter(range(10_000))
    count = random.randrange(2, 5)
    scripts = [
        tuple(_line(random, random.choice(verbs), ids) for _ in range(random.randrange(2, 6)))
        for _ in range(count)
    ]
    chances = Chances(switch=random.choice((0.1, 0.3, 0.6)))
    if random.random() < 0.5:
        trouble = {"error": 0.02, "kill": 0.01, "delay": 0.05, "power_cut": 0.005}
        chosen = random.sample(sorted(trouble), random.randrange(1, 4))
        chances = replace(chances, **{name: trouble[name] * random.uniform(0.3, 2) for name in chosen})
    if swaps:
        moves = ("repair", "repair", "undo")
        scripts = [
            tuple(
                _line(random, random.choice(("append", "append", "read", *verbs)), ids)
                for _ in range(5)
            )
            for _ in scripts
        ]
        scripts.append(tuple(random.choice(moves) for _ in range(random.randrange(2, 8))))
        kill = 0.02 * random.randrange(2)
        chances = Chances(switch=random.choice((0.05, 0.1, 0.2)), kill=kill)
        upkeep = ("vacuum", "truncate")
        scripts = [tuple(x for x in script if not x.startswith(upkeep)) for script in scripts]
    skews = [random.randrange(-2000, 2000) for _ in scripts]
    if random.random() < 0.3:
        skews[random.randrange(len(skews))] = random.choice(_WRONG)
    return Scenario(
        seed,
        kind,
        tuple(scripts),
        tuple(skews),
        chances,
        keyed,
        partitioned=kind == "folding" or random.random() < 0.2,
        interval=random.choice((1, 2, 3, 5)),
        log_retention="30 days" if random.random() < 0.6 or swaps else "0 seconds",
    )


def _line(random: Random, verb: str, ids: Iterator[int]) -> str:
    value = random.randrange(3)
    fresh = ",".join(str(next(ids)) for _ in range(random.randrange(1, 4)))
    match verb:
        case "append":
            return f"append {fresh} {value}"
        case "upsert":
            return f"upsert {','.join(map(str, sorted(random.sample(range(8), 2))))} {value}"
        case "delete":
            return f"delete {value}"
        case "overwrite":
            return f"overwrite {value} {fresh}"
        case "overwrite all":
            return f"overwrite all {fresh}"
        case "restore":
            return f"restore {random.randrange(1, 4)}"
        case "sleep":
            return f"sleep {random.choice((0.1, 1, 2, 4, 8, 20))}"
        case _:
            return verb


def _inline(self: Any, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
    done: Future[Any] = Future()
    try:
        done.set_result(function(*args, **options))
    except BaseException as error:
        done.set_exception(error)
    return done


@contextmanager
def determined(seed: int, world: World) -> Iterator[None]:
    """Chance, time and threads of the library come from the run alone."""
    source = Random(seed)
    kept = (os.urandom, time.time_ns, ThreadPoolExecutor.submit)
    seed_global(seed)
    os.urandom = source.randbytes
    time.time_ns = lambda: world.now * 1_000_000
    ThreadPoolExecutor.submit = _inline
    try:
        yield
    finally:
        os.urandom, time.time_ns, ThreadPoolExecutor.submit = kept


def run(scenario: Scenario, *, keep_trace: bool = False) -> Run:
    """Runs it, then looks at what is left with a healthy store."""
    world = World(scenario.seed, scenario.chances, MAX_STEPS, keep_trace=keep_trace)
    with determined(scenario.seed, world):
        disk = DISKS[scenario.kind](world)
        record = Record(world, lambda: disk.objects)
        disk.spy = record
        world.is_calm = True
        record.history_is_cut = scenario.log_retention != "30 days"
        prefix = "spark.indextables"
        properties = {
            f"{prefix}.checkpoint.interval": str(scenario.interval),
            f"{prefix}.log.retention": scenario.log_retention,
        }
        shape = {"partitioned": scenario.partitioned, "keyed": scenario.keyed}
        setup(disk, properties, **shape)
        world.is_calm = False
        for number, (script, skew) in enumerate(zip(scenario.scripts, scenario.skews, strict=True)):
            process = Process(world, disk, record, list(script), **shape)
            world.spawn(f"p{number}", skew, process)
        world.run()
        _check(scenario, disk, record)
    return Run(
        scenario,
        tuple(record.violations),
        world.steps,
        len(record.log.entries),
        world.digest,
        tuple(world.trace or ()),
    )


def _check(scenario: Scenario, disk: Disk, record: Record) -> None:
    """Nothing acknowledged is lost, and every version that is kept can be read."""
    store = SimulatedStore(disk, None)
    log = TransactionLog(store, now_ms=lambda: disk.world.now)
    record.check_acknowledged()
    try:
        newest = log.snapshot()
        if newest.version != record.log.newest:
            record.violated(f"the newest version is {newest.version}, not {record.log.newest}")
            return
        for version in _kept(record, newest.min_read_version):
            try:
                snapshot = newest if version == newest.version else log.snapshot(version)
            except VersionNotFoundError:
                if not record.history_is_cut:
                    raise
                continue  # given up by whoever asked for that
            except LogCorruptedError:
                # A power cut may undo the deletion of one old commit and not that of the next, and a late
                # checkpoint of a version may be left whose next commits its owner gave up.
                if version == newest.version or not (disk.world.power_cuts or record.history_is_cut):
                    raise
                continue
            record.saw(record.log, version, rows_of(store, snapshot, keyed=scenario.keyed))
        # What is left of a history that was given up looks like a gap; so does a dead writer's put into a version
        # that was cleaned away, or an old commit that a power cut brought back.
        if not (record.log.strays or disk.world.power_cuts or record.history_is_cut):
            record.violations += [str(problem) for problem in check_log(log).problems]
    except IndexTablesError as error:
        record.violated(f"the table cannot be read: {type(error).__name__}: {error.message}")


def _kept(record: Record, mark: int) -> list[int]:
    """The newest version, and some that time travel must still reach: neither vacuum nor cleanup gave them up."""
    oldest = max(mark, record.current_before(record.log, LOG_RETENTION), 0)
    young = [v for v in sorted(record.log.entries) if v >= oldest]
    chosen = young[:2] + young[-3:]
    return sorted(set(chosen), reverse=True)


# -- shrinking -------------------------------------------------------------------------------------


def shrink(scenario: Scenario, tries: int = 12) -> Scenario:
    """A smaller scenario that still violates something: fewer lines, fewer kinds of trouble, fewer processes."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(scenario):
            found = _failing(candidate, tries)
            if found is not None:
                scenario, smaller = found, True
                break
    return scenario


def _failing(scenario: Scenario, tries: int) -> Scenario | None:
    for seed in range(scenario.seed, scenario.seed + tries):
        attempt = replace(scenario, seed=seed)
        if run(attempt).violations:
            return attempt
    return None


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    for number, script in enumerate(scenario.scripts):
        rest = scenario.scripts[:number], scenario.scripts[number + 1 :]
        if len(scenario.scripts) > 1:
            skews = scenario.skews[:number] + scenario.skews[number + 1 :]
            yield replace(scenario, scripts=(*rest[0], *rest[1]), skews=skews)
        for at in range(len(script) if len(script) > 1 else 0):
            yield replace(scenario, scripts=(*rest[0], (*script[:at], *script[at + 1 :]), *rest[1]))
    for name in ("error", "kill", "power_cut", "delay"):
        if getattr(scenario.chances, name):
            yield replace(scenario, chances=replace(scenario.chances, **{name: 0.0}))
    for number, skew in enumerate(scenario.skews):
        if skew:
            skews = (*scenario.skews[:number], 0, *scenario.skews[number + 1 :])
            yield replace(scenario, skews=skews)


# -- the command -----------------------------------------------------------------------------------


_TELL_EACH = 500


def search(
    seeds: range, *, until: float = float("inf"), tell: Any = None
) -> tuple[int, int, int, Run | None]:
    """Runs seeds until one fails: (seeds, steps, commits, the failing run). `tell` is a stream for progress."""
    logging.disable(logging.CRITICAL)
    steps = commits = done = 0
    for seed in seeds:
        if tell is not None and done and done % _TELL_EACH == 0:
            print(f"{done} of {len(seeds)} seeds, {steps} steps", file=tell, flush=True)
        if time.monotonic() > until:
            break
        found = run(scenario_of(seed))
        done, steps, commits = done + 1, steps + found.steps, commits + found.commits
        if found.violations:
            return done, steps, commits, found
    return done, steps, commits, None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--no-shrink", action="store_true")
    arguments = parser.parse_args()
    gc.disable()
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        found = run(scenario_of(arguments.seed), keep_trace=True)
        print("\n".join(found.trace) if arguments.trace else "", found, sep="\n")
        return bool(found.violations)
    began = time.process_time()
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    done, steps, commits, failed = search(seeds, tell=sys.stderr)
    print(f"{done} seeds, {steps} steps, {commits} commits, {time.process_time() - began:.1f} s of CPU")
    if failed is None:
        return 0
    print(f"seed {failed.scenario.seed}: {failed.violations}")
    if not arguments.no_shrink:
        small = shrink(failed.scenario)
        again = run(small, keep_trace=True)
        print("\n".join(again.trace), small, *again.violations, sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
