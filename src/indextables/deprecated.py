"""Keeps an old name working for a while, with a warning that names the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable


def renamed(old: str, new: str, *, removed_in: str) -> property:
    """Returns a property that warns and answers like the attribute that took its place.

    Args:
        old: The name that goes.
        new: The name of the attribute that stays.
        removed_in: The first version without the old name.

    Returns:
        A property for the class body, under the old name.

    Example:
        >>> class Split:
        ...     is_delta = True
        ...     is_log = renamed("is_log", "is_delta", removed_in="0.3")
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     Split().is_log
        True
        >>> print(caught[0].message)
        is_log is now is_delta; the old name goes with version 0.3
    """

    def value(self: object) -> object:
        warnings.warn(
            f"{old} is now {new}; the old name goes with version {removed_in}",
            DeprecationWarning,
            stacklevel=2,
        )
        found: object = getattr(self, new)
        return found

    getter: Callable[[object], object] = value
    return property(getter, doc=f"Returns `{new}`, under its old name.")
