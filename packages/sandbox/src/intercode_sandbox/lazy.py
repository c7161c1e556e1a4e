"""Loads the public names of a package on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_imports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package.

    ``modules`` gives for each public name the module that defines it, below the package if it
    begins with a dot. A module whose last part is the public name is that name itself.
    """

    def load(name: str) -> Any:
        """Import a public name on first use."""
        if name in modules:
            module = import_module(modules[name], package)
            return module if modules[name].endswith(f".{name}") else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
