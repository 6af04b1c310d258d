"""Processes that run one at a time: which one goes on, fails or dies at each call is drawn from one seed."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.faults import SimulatedCrash

SECOND = 1000
DAY = 24 * 3600 * SECOND
_CHANGES = ("put", "delete", "rename", "exchange")
START = 1_800_000_000_000


class OutOfSteps(BaseException):
    """The run has gone on for long enough."""


@dataclass(frozen=True)
class Chances:
    """How likely it is, at one call to the store, that something happens."""

    switch: float = 0.3
    error: float = 0.0
    kill: float = 0.0
    power_cut: float = 0.0
    delay: float = 0.0


@dataclass
class Task:
    """One process: a thread that runs only while it has the baton."""

    name: str
    skew: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    wake: int = 0
    boot: int = 0
    """The number of power cuts it knows of."""
    is_done: bool = False
    is_mortal: bool = True
    op: Any = None
    """What it is doing, for the record of who wrote what."""

    def __post_init__(self) -> None:
        self.lock.acquire()


class World:
    """Time, chance and whose turn it is."""

    def __init__(
        self, seed: int, chances: Chances, max_steps: int, *, keep_trace: bool = False
    ) -> None:
        self.random = Random(seed)
        self.chances = chances
        self.now = START
        self.steps = 0
        self.digest = 0
        self.trace: list[str] | None = [] if keep_trace else None
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.power_cuts = 0
        self.on_power_cut: Callable[[], None] = lambda: None
        self.is_calm = False
        """True once everything is over: nothing fails any more."""
        self._max_steps = max_steps
        self._main = threading.Lock()
        self._main.acquire()
        self._threads: list[threading.Thread] = []
        self.failure: BaseException | None = None

    # -- tasks -------------------------------------------------------------------------------------

    def spawn(
        self, name: str, skew: int, body: Callable[[Task], None], *, is_mortal: bool = True
    ) -> None:
        task = Task(name, skew, is_mortal=is_mortal)
        self.tasks.append(task)

        def run() -> None:
            task.lock.acquire()
            try:
                body(task)
            except (OutOfSteps, SimulatedCrash):
                pass
            except BaseException as error:  # a defect of the simulation itself
                self.failure = self.failure or error
            task.is_done = True
            self._hand_over(self._next())

        self._threads.append(threading.Thread(target=run, daemon=True))

    def run(self) -> None:
        """All tasks, until the last one is done."""
        for thread in self._threads:
            thread.start()
        self._hand_over(self._next())
        self._main.acquire()
        for thread in self._threads:
            thread.join()
        self.current = None
        self.is_calm = True
        if self.failure is not None:
            raise self.failure

    def _next(self) -> Task | None:
        alive = [task for task in self.tasks if not task.is_done]
        if not alive:
            return None
        ready = [task for task in alive if task.wake <= self.now]
        if not ready:
            self.now = min(task.wake for task in alive)
            ready = [task for task in alive if task.wake <= self.now]
        return ready[self.random.randrange(len(ready))]

    def _hand_over(self, task: Task | None) -> None:
        self.current = task
        (self._main if task is None else task.lock).release()

    def _give_way(self) -> None:
        me, other = self.current, self._next()
        if other is not me:
            self._hand_over(other)
            me.lock.acquire()

    # -- what a process sees -----------------------------------------------------------------------

    def clock(self, task: Task) -> Callable[[], int]:
        return lambda: self.now + task.skew

    def pause(self, seconds: float) -> None:
        """The current task sleeps; the others go on."""
        if self.is_calm:
            return
        me = self.current
        me.wake = self.now + int(seconds * SECOND)
        self._give_way()
        self._check_alive(me)

    def call(self, what: str, effect: Callable[[], Any], error: Callable[[str], Exception]) -> Any:
        """One call to the store, at which anything may happen."""
        if self.is_calm:
            return effect()
        me, chances, random = self.current, self.chances, self.random
        self.steps += 1
        if self.steps > self._max_steps:
            raise OutOfSteps
        # before a call that changes something, somebody else does so more often than elsewhere
        eager = 3 if what.startswith(_CHANGES) else 1
        if random.random() < chances.switch * eager:
            self._give_way()
            self._check_alive(me)
        self.now += random.randrange(3)
        fate = self._fate(me)
        self._note(me, what, fate)
        if fate == "error before":
            raise error(fate)
        if fate == "kill before":
            raise SimulatedCrash(what)
        result = effect()
        if fate == "error after":
            raise error(fate)
        if fate == "kill after":
            raise SimulatedCrash(what)
        return result

    def _fate(self, me: Task) -> str:
        chances, drawn = self.chances, self.random.random()
        for name, chance in (("error", chances.error), ("kill", chances.kill)):
            if drawn < chance and name == "kill" and not me.is_mortal:
                return ""
            if drawn < chance:
                return f"{name} {'before' if drawn < chance / 2 else 'after'}"
            drawn -= chance
        if drawn < chances.power_cut:
            self.power_cuts += 1
            self.on_power_cut()
            me.boot = self.power_cuts
            return "kill before"
        drawn -= chances.power_cut
        if drawn < chances.delay:
            self.now += self.random.choice((SECOND, 60 * SECOND, DAY // 4))
        return ""

    def _check_alive(self, me: Task) -> None:
        if me.boot != self.power_cuts:
            me.boot = self.power_cuts
            raise SimulatedCrash("power cut")
        if self.steps > self._max_steps:
            raise OutOfSteps

    def _note(self, me: Task, what: str, fate: str) -> None:
        line = f"{self.now} {me.name} {what} {fate}"
        self.digest = zlib.crc32(line.encode(), self.digest)
        if self.trace is not None:
            self.trace.append(line)

    def say(self, text: str) -> None:
        """A line of the trace that is no call."""
        if self.trace is not None and self.current is not None:
            self.trace.append(f"{self.now} {self.current.name}    {text}")
