"""The commits of another system: which are completed, which are pending, and which were rolled back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from indextables.errors import ConfigError
from indextables.plan.slices import State


@dataclass(frozen=True)
class Timeline:
    """Instants by what became of them; an instant is a text, and earlier instants are smaller texts.

    An instant may be rolled back and then used again. It is then in `rolled_back` and in another list, and
    only rollback blocks in log files can tell the two uses apart.
    """

    completed: Collection[str]
    pending: Collection[str] = ()
    """Instants that are requested or going on."""
    rolled_back: Collection[str] = ()
    start: str | None = None
    """Instants before this one are archived, so they were completed; None for the first completed instant."""
    completed_at: Mapping[str, str] = field(default_factory=dict)
    """When an instant was completed, if that is known, as from the name `<instant>_<completed>.deltacommit`."""
    _states: dict[str, State] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lists = {name: _instants(name, getattr(self, name)) for name in _LISTS}
        if both := sorted(lists["completed"] & lists["pending"]):
            raise ConfigError(
                f"the instant {both[0]!r} is both completed and pending",
                hint="make both lists from one listing of the timeline",
            )
        _check_completion(self.completed_at)
        states = dict.fromkeys(lists["rolled_back"], State.ROLLED_BACK)
        states |= dict.fromkeys(lists["pending"], State.FAILED)
        states |= dict.fromkeys(lists["completed"], State.COMMITTED)
        object.__setattr__(self, "_states", states)
        if self.start is None and lists["completed"]:
            object.__setattr__(self, "start", min(lists["completed"]))

    def state_of(self, instant: str) -> State:
        """Returns what became of an instant; one that the timeline does not know was never completed.

        Args:
            instant: The instant, as the timeline spells it.

        Returns:
            The state of files that this instant wrote.

        Examples:
            >>> Timeline(["002"], pending=["003"]).state_of("003")
            <State.FAILED: 1>
            >>> Timeline(["002"]).state_of("001")
            <State.COMMITTED: 0>
        """
        known = self._states.get(instant)
        if known is not None:
            return known
        is_archived = self.start is not None and instant < self.start
        return State.COMMITTED if is_archived else State.FAILED


_LISTS = ("completed", "pending", "rolled_back")


def _check_completion(times: Mapping[str, str]) -> None:
    for instant, time in times.items():
        if not isinstance(instant, str) or not isinstance(time, str) or time < instant:
            raise ConfigError(
                f"the instant {instant!r} cannot have been completed at {time!r}",
                hint="completed_at has texts as in the timeline, each of them not before its instant",
            )


def _instants(name: str, found: Collection[str]) -> set[str]:
    if isinstance(found, str) or not all(isinstance(instant, str) for instant in found):
        raise ConfigError(
            f"the timeline's {name} instants are not a list of texts: {found!a:.80}",
            hint='give them as in the timeline, for example ["20241018073000123"]',
        )
    return set(found)
