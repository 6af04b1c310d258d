"""Imports engines that are installed only if the user wants them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from indextables.errors import MissingDependencyError


def require(name: str) -> ModuleType:
    """Returns the package; MissingDependencyError names the extra to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the package {name} is not installed",
            hint=f"pip install 'indextables[{name}]'",
            package=name,
        ) from error
