"""Facts about a thing are on the thing: no table, comparison or class test by name elsewhere.

Counted are, outside the folder of the thing itself: dictionaries and collections of several names,
comparisons with a name or its beginning, and `isinstance` of its classes. Registries, which map a
name to its class, do not count. Engines of SQL are counted and printed; they have no aim yet.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from intercode.agents import AGENTS
from intercode.environments import ENVIRONMENTS
from intercode_sandbox.tiers.tier_table import tiers_of
from support.sources import PACKAGES

PRODUCT = [path for path in PACKAGES if path.name in ("intercode", "intercode_lab")]
SANDBOX = [path for path in PACKAGES if path.name == "intercode_sandbox"]
ENVIRONMENT_NAMES = frozenset(ENVIRONMENTS)
ENVIRONMENT_CLASSES = re.compile(
    r"isinstance\([^()]+, \(?.*\b"
    r"(?:Bash|Code|CTF|Harbor|Python|Sql|SweBench|Sandboxed|TaskImage)Env\b"
)
ENVIRONMENT_FOLDERS = re.compile(
    r"/(?:environments/(?:bash|code|ctf|python|sql)|integrations/(?:harbor|swe_bench)|paper)/"
    r"|base/sandboxed_env\.py$"
)
AGENT_NAMES = frozenset(AGENTS)
AGENT_FOLDERS = re.compile(r"/(?:agents|paper)/")
ABOUT = {"environment": re.compile(r"environment|\benv\b|\bkind\b"), "agent": re.compile(r"agent")}
TIERS = frozenset(
    name
    for back_end in ("namespace", "container", "chroot", "landlock", "docker", "podman", "remote")
    for name in (back_end, f"{back_end}/", *(tier.name for tier in tiers_of(back_end)))
)
TIER_FOLDERS = re.compile(
    r"/intercode_sandbox/(?:container|tiers/(?:tier_table|platforms|remedies)|backends)\b"
)
"""The folder of the engines, and the modules with the records of tiers and of machines around."""
ENGINES = frozenset({"embedded", "mysql", "sqlite", "duckdb"})


@cache
def sources(with_sandbox: bool = False) -> list[tuple[str, ast.Module]]:
    return [
        (f"/{path.relative_to(package.parent)}", ast.parse(path.read_text("utf-8")))
        for package in [*PRODUCT, *(SANDBOX if with_sandbox else [])]
        for path in sorted(package.rglob("*.py"))
    ]


def called(node: ast.AST) -> str:
    """Return the last name of the function that a node calls, empty if it calls none."""
    function = getattr(node, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def constants(node: ast.AST) -> list[str]:
    """Return the texts of a literal, or of one in a call such as ``frozenset({...})``."""
    if isinstance(node, ast.Call) and node.args:
        return constants(node.args[0])
    values = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]


def compared(tree: ast.Module, names: frozenset[str], about: re.Pattern[str]) -> Iterator[ast.AST]:
    """Yield comparisons with a name, in which the other side is about such a thing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = [side for side in sides if names & set(constants(side))]
            others = [side for side in sides if side not in named]
            if named and any(about.search(ast.unparse(side)) for side in others):
                yield node
        elif called(node) in ("startswith", "removeprefix", "partition"):
            assert isinstance(node, ast.Call)
            if names & set(constants(node)) and about.search(ast.unparse(node.func)):
                yield node


def tables(tree: ast.Module, names: frozenset[str], least: int) -> Iterator[ast.AST]:
    """Yield dictionaries and collections of at least so many names, but those of registries and of
    what a module exports."""
    registered = {
        inner
        for node in ast.walk(tree)
        if called(node) == "Registry" or (isinstance(node, ast.Assign) and is_exports(node))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        texts = {k.value for k in keys if isinstance(k, ast.Constant)}
        if node not in registered and len(names & texts) >= least:
            yield node


def is_exports(node: ast.Assign) -> bool:
    return getattr(node.targets[0], "id", "") == "__all__"


def uses_of(
    names: frozenset[str], about: re.Pattern[str], own: re.Pattern[str], with_sandbox: bool = False
) -> list[str]:
    found = []
    for path, tree in sources(with_sandbox):
        if not own.search(path):
            nodes = [*compared(tree, names, about), *tables(tree, names, 3)]
            found += [f"{path}:{getattr(n, 'lineno', 0)} {ast.unparse(n)[:80]}" for n in nodes]
    return found


def test_nothing_decides_by_the_name_of_an_environment() -> None:
    found = uses_of(ENVIRONMENT_NAMES, ABOUT["environment"], ENVIRONMENT_FOLDERS)
    assert found == []


def test_nothing_asks_for_the_class_of_an_environment() -> None:
    found = [
        f"{path} {ast.unparse(node)}"
        for path, tree in sources()
        if not ENVIRONMENT_FOLDERS.search(path)
        for node in ast.walk(tree)
        if called(node) == "isinstance" and ENVIRONMENT_CLASSES.match(ast.unparse(node))
    ]
    assert found == []


def test_nothing_decides_by_the_name_of_an_agent() -> None:
    found = uses_of(AGENT_NAMES, ABOUT["agent"], AGENT_FOLDERS)
    assert found == []


def test_nothing_decides_by_the_name_of_a_tier_or_back_end() -> None:
    about = re.compile(r"tier|sandbox|back_?end|engine|\bname\b")
    assert uses_of(TIERS, about, TIER_FOLDERS, with_sandbox=True) == []


def test_engines_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = uses_of(ENGINES, re.compile(r"engine|kind"), re.compile(r"^/nothing/"))
    assert len(found) < 20
    with capsys.disabled():
        print(f"\nengines: {len(found)} uses decide by a name")


def test_what_counts() -> None:
    """The count finds every form, and nothing else."""
    text = (
        "A = {'bash': 1, 'sql': 2, 'ctf': 3}\nB = Registry('x', {'bash': 1, 'sql': 2, 'ctf': 3})\n"
        "if environment == 'sql' or env.name in ('ctf', 'bash') or shell in ('bash', 'sh'): pass\n"
        "C = frozenset({'python', 'code', 'ctf'})\n"
        "if env.name.startswith(('sql', 'x')) or line.startswith('sql'): pass\n"
    )
    tree = ast.parse(text)
    names = frozenset({"bash", "sql", "ctf", "python", "code"})
    lines = [n.lineno for n in compared(tree, names, ABOUT["environment"])]  # type: ignore[attr-defined]
    assert lines == [3, 3, 5]
    assert {n.lineno for n in tables(tree, names, 3)} == {1, 4}  # type: ignore[attr-defined]
