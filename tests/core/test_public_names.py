"""The public names: each package lists them in one place, and each of them is documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import intercode

ROOT = Path(intercode.__file__).parent
PACKAGES = [
    "intercode_sandbox",
    "intercode_sql",
    *sorted(f"intercode.{path.parent.name}" for path in ROOT.glob("*/__init__.py")),
]
TOP_LEVEL = [
    "InfrastructureError",
    "Pool",
    "Sandbox",
    "__version__",
    "evaluate",
    "evaluate_async",
    "load_run",
    "make",
    "make_vec",
]


def public_names(package: str) -> list[str]:
    """Return what a package lists as public."""
    return list(importlib.import_module(package).__all__)


def imported(package: str, name: str) -> object:
    """Return a public name as a user gets it: ``from PACKAGE import NAME``."""
    scope: dict[str, object] = {}
    exec(f"from {package} import {name}", scope)
    return scope[name]


def documented_values(package: str) -> set[str]:
    """Return the values of a package's modules that a docstring follows."""
    found = set()
    home = Path(str(importlib.import_module(package).__file__)).parent
    for path in home.rglob("*.py"):
        body = ast.parse(path.read_text("utf-8")).body
        for node, after in pairwise(body):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_public_api_is_nine_names() -> None:
    assert intercode.__all__ == TOP_LEVEL
    for name in TOP_LEVEL:
        assert getattr(intercode, name).__doc__, name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_documented_names(package: str) -> None:
    names = public_names(package)
    assert names == sorted(
        set(names), key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
    values = documented_values(package)
    for name in names:
        found = imported(package, name)
        if isinstance(found, type):
            doc = vars(found).get("__doc__") or ""
            assert doc and not doc.startswith(f"{name}("), f"{package}.{name} has no docstring"
        elif isinstance(found, ModuleType) or inspect.isroutine(
            getattr(found, "__wrapped__", found)
        ):
            assert found.__doc__, f"{package}.{name} has no docstring"
        else:
            assert name in values, f"{package}.{name} has no docstring"


def test_an_unknown_name_is_refused_as_in_any_module() -> None:
    for package in ("intercode", "intercode.core", "intercode_sandbox", "intercode.environments"):
        module = importlib.import_module(package)
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute"):
            module.no_such_name  # noqa: B018


def test_listing_the_names_loads_nothing_heavy() -> None:
    code = """
import sys
import intercode.core, intercode.sessions, intercode.results, intercode.evaluation
import intercode.environments
heavy = ("httpx", "aiohttp", "sklearn", "scipy", "ray", "matplotlib", "rich",
         "intercode_sandbox.backends", "intercode_sandbox.contract", "intercode_sandbox.api",
         "intercode.models", "intercode.agents", "intercode.sessions.bash")
print([name for name in heavy if name in sys.modules])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "[]\n"


def test_a_public_module_is_imported_on_first_use() -> None:
    code = "from intercode.results import figures; print(figures.__name__)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "intercode.results.statistics.figures\n"


def test_the_engines_of_sql_have_a_name_here_too() -> None:
    engines = importlib.import_module("intercode.sql")
    assert engines.__all__ == importlib.import_module("intercode_sql").__all__
    assert engines.open_engine is importlib.import_module("intercode_sql").open_engine
