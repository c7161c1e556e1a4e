"""The cut into parts, checked from the imports themselves: a part imports only parts above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import intercode

ROOT = Path(intercode.__file__).parent

ORDER = [
    {"types", "errors", "paths", "syntax", "templates"},
    {"plugins", "registry", "config"},
    {"trajectories", "logs"},
    {"datasets"},
    {"images"},
    {"sandboxes"},
    {"models"},
    {"sessions"},
    {"builders"},
    {"rewards"},
    {"agents"},
    {"envs"},
    {"pool"},
    {"rollout"},
    {"report"},
    {"exports"},
    {"view"},
    {"runner"},
    {"conformance", "integrations", "compat", "cli"},
]
"""Lowest first. What stands in one set may import each other, `cli` and `conformance` apart."""

BLIND = ("datasets", "images", "sandboxes", "models")
FORBIDDEN = {(a, b) for a in BLIND for b in BLIND if a != b} | {
    ("agents", "envs"), ("envs", "agents"), ("envs", "models"),
}  # fmt: skip
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}
TOP = {"__init__", "__main__"}  # the package itself: registers environments, starts the cli


def modules() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Absolute names of what a module imports, wherever in it, for types only too."""
    package = ["intercode", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module in ("intercode", ".".join(package)) and not node.module:
                yield from (f"{module}.{alias.name}" for alias in node.names)
            elif module == "intercode":
                yield from (f"intercode.{alias.name}" for alias in node.names)
            else:
                yield module


def parts_imported(path: Path) -> set[str]:
    names = (name.split(".") for name in imported(path))
    found = {name[1] for name in names if name[0] == "intercode" and len(name) > 1}
    return found - {part_of(path), "__version__", "make"}


def test_every_part_has_its_place() -> None:
    assert {part_of(p) for p in modules()} - TOP <= LEVEL.keys()


@pytest.mark.parametrize("part", sorted(LEVEL))
def test_a_part_imports_only_what_stands_above_it(part: str) -> None:
    for path in modules():
        if part_of(path) != part:
            continue
        for other in parts_imported(path):
            where = f"{path.relative_to(ROOT)} imports {other}"
            assert other in LEVEL, where
            assert LEVEL[other] <= LEVEL[part], where
            assert (part, other) not in FORBIDDEN, where
            assert other not in ("cli", "conformance"), where


def test_only_the_main_module_imports_the_command_line() -> None:
    importers = {part_of(p) for p in modules() if "cli" in parts_imported(p)}
    assert importers <= {"__main__"}


def test_the_far_side_of_a_sandbox_knows_the_standard_library_and_itself_only() -> None:
    box = ROOT / "sandbox" / "supervisor" / "runtime"
    files = sorted(box.glob("*.py"))
    assert len(files) > 5
    for path in files:
        for name in imported(path):
            own = name.startswith("intercode.sandbox.supervisor.runtime")
            known = name.split(".")[0] in {*sys.stdlib_module_names, "_sha2", "_sha256"}
            assert own or known, f"{path.name}: {name}"


def test_the_rules_see_what_an_import_says(tmp_path: Path) -> None:
    """Relative and absolute forms, inside functions too."""
    inside = ROOT / "sandbox" / "supervisor" / "runtime" / "supervisor.py"
    assert "intercode.sandbox.supervisor.runtime.protocol" in set(imported(inside))
    assert "registry" in parts_imported(ROOT / "sandboxes" / "__init__.py")
    assert "rollout" in parts_imported(ROOT / "runner" / "episode.py")


LOOK = """
import os, sys, threading
import gymnasium
before = set(sys.modules)
import intercode
new = set(sys.modules) - before
heavy = ("httpx", "sklearn", "scipy", "ray", "torch", "docker", "rich", "pandas", "matplotlib",
         "asyncio", "multiprocessing.pool", "concurrent.futures")
print([name for name in heavy if name in new])
lazy = ("intercode.sandbox", "intercode.agents", "intercode.models", "intercode.cli",
        "intercode.evaluation", "intercode.results.report", "intercode.evaluation.conformance")
print([name for name in sys.modules if name.startswith(lazy)])
print(threading.active_count(), os.path.exists(f"/proc/self/task/{os.getpid()}/children")
      and open(f"/proc/self/task/{os.getpid()}/children").read())
print("intercode/Bash-v1" in gymnasium.registry)
"""


def test_importing_it_does_nothing_and_loads_nothing_heavy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, timeout=60
    )
    heavy, lazy, activity, registered = run.stdout.splitlines()
    assert heavy == "[]"
    assert lazy == "[]"
    assert activity in ("1 ", "1 False")
    assert registered == "True"


def test_every_module_can_be_imported_by_itself() -> None:
    """In one fresh interpreter, in reverse order, so that no module leans on another's import."""
    names = [".".join(["intercode", *p.relative_to(ROOT).with_suffix("").parts]) for p in modules()]
    names = [n.removesuffix(".__init__") for n in names if not n.endswith("__main__")]
    code = f"import importlib\nfor n in {names[::-1]!r}: importlib.import_module(n)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_no_file_and_no_function_is_too_long() -> None:
    found = []
    for path in modules():
        text = path.read_text("utf-8")
        if text.count("\n") > 300:
            found.append(str(path))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 50:
                found.append(f"{path}: {node.name}")
    assert found == []
