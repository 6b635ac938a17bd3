"""Names of a package that are loaded when they are asked for: `--help` must not wait for what it does not use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: each name with the module of the package that has it."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(name)
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
