"""The import rules and the layout of the package, checked from the source itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from support.sources import PACKAGES

ORDER = [
    "sandbox",
    "core",
    "sql",
    "sessions",
    "datasets",
    "models",
    "agents",
    "environments",
    "results",
    "evaluation",
    "integrations",
    "cli",
    "paper",
    "lab",
]
"""The packages, lowest first: each imports only those before it."""
DISTRIBUTIONS = {"intercode_sandbox": "sandbox", "intercode_sql": "sql", "intercode_lab": "lab"}
"""Those of ORDER that are distributions of their own, by their import names. ``lab`` is a plug-in:
nothing imports it or names it in a text. Nor does anything import ``paper``, which is a folder."""
FORBIDDEN = {
    ("datasets", "sandbox"),
    ("datasets", "sessions"),
    ("models", "sandbox"),
    ("models", "sql"),
    ("models", "sessions"),
    ("models", "datasets"),
    ("agents", "sandbox"),
    ("agents", "datasets"),
    ("environments", "agents"),
    ("environments", "models"),
}
"""Imports that the order allows but the design forbids, of all but SHARED."""
SHARED = tuple(
    f"intercode_sandbox.{name}"
    for name in (
        "checks",
        "clock",
        "deprecation",
        "errors",
        "event_loop",
        "hidden_files",
        "platforms",
        "http",
        "lazy",
        "lines",
        "long_output",
        "plugins",
        "registry",
        "silence",
        "sizes",
        "toml",
        "types",
        "user_modules",
        "valid_text",
    )
)
"""What sandboxes are built on, which every package may import: it opens no sandbox."""
_KINDS = ("sandbox.namespace", "sandbox.container", "sandbox.chroot", "sandbox.landlock")
SIBLINGS = set(permutations(_KINDS, 2))
"""Folders inside a package that do not import each other."""
MUTUAL = {
    *(
        ("environments.base", f"environments.{name}")
        for name in ("bash", "code", "ctf", "python", "sql")
    ),
    *(("sandbox.tiers", folder) for folder in _KINDS),
}
"""Folders that need each other, where one of them names the other in a text: most are tables of
what should register itself. No pair may be added."""
BACKENDS = (*_KINDS, "sandbox.supervisor")
"""Folders that only ``sandbox`` imports. All other packages use the type ``BaseSandbox``."""


def modules() -> dict[str, Path]:
    """Return every module of the packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def tree_of(name: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[name].read_text("utf-8"))


def imports(name: str, *, types_too: bool = True) -> Iterator[str]:
    """Yield the imports of a module, also those inside functions: our modules by their dotted
    names."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    tree = tree_of(name)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if not types_too and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(ast.walk(node))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in MODULES else module


def named_in_texts(name: str) -> Iterator[str]:
    """Yield our modules that a module names in texts, such as ``intercode.module:name`` in a
    registry, or the argument of ``import_module``."""
    for node in ast.walk(tree_of(name)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            text = str(node.values[0].value).rpartition(".")[0]  # of a package by its beginning
        if isinstance(text, str) and re.fullmatch(r"intercode(?:_[a-z]+)?(\.\w+)+(:\w+)?", text):
            module = text.partition(":")[0]
            if module in MODULES and module != name:
                yield module


def inside(name: str) -> str:
    """Return the name of a module of ours inside the workspace: without ``intercode``, and with
    ``sandbox`` in place of ``intercode_sandbox``."""
    top, _, rest = name.partition(".")
    return ".".join(filter(None, [DISTRIBUTIONS.get(top, ""), rest]))


def is_ours(name: str) -> bool:
    """Return whether a dotted name begins with one of our distributions."""
    return name.partition(".")[0] in {"intercode", *DISTRIBUTIONS}


def folder_of(name: str) -> str:
    """Return the folder of a module below the root: that of a package is itself."""
    found = inside(name)
    return found if MODULES[name].name == "__init__.py" else found.rpartition(".")[0]


def is_shared(name: str) -> bool:
    """Return whether a module, or one that holds it, is in SHARED."""
    return f"{name}.".startswith(tuple(f"{module}." for module in SHARED))


def package_of(name: str) -> str:
    """Return the top-level package of a dotted name of ours; empty for the root."""
    return inside(name).partition(".")[0]


def test_the_workspace_holds_the_fourteen_packages_and_nothing_else() -> None:
    assert {package_of(name) for name in MODULES} - {"", "__main__"} == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_lower_packages(package: str) -> None:
    for name in MODULES:
        if package_of(name) != package:
            continue
        for other in imports(name):
            other_package = package_of(other)
            if not is_ours(other) or other_package in ("", package, "__version__"):
                continue
            rule = f"{name} imports {other}"
            assert ORDER.index(other_package) < ORDER.index(package), rule
            assert (package, other_package) not in FORBIDDEN or is_shared(other), rule


def test_sandboxes_use_nothing_of_the_product() -> None:
    """Neither by imports nor by names in texts: it is a distribution of its own."""
    own = [name for name in MODULES if package_of(name) == "sandbox"]
    used = {(name, other) for name in own for other in (*imports(name), *named_in_texts(name))}
    assert len(own) > 100
    assert {
        (name, other) for name, other in used if other.partition(".")[0] == "intercode"
    } == set()


def test_what_every_package_may_import_opens_no_sandbox() -> None:
    for name in filter(is_shared, MODULES):
        ours = {other for other in imports(name) if other.startswith("intercode")}
        assert {other for other in ours if not is_shared(other)} == set(), name


def test_a_package_names_only_lower_packages_in_texts() -> None:
    named = {(name, other) for name in MODULES for other in named_in_texts(name)}
    above = {
        (name, other)
        for name, other in named
        if ORDER.index(package_of(other)) > ORDER.index(package_of(name))
        or ((package_of(name), package_of(other)) in FORBIDDEN and not is_shared(other))
    }
    assert above == set()


def test_no_further_folders_need_each_other_by_texts() -> None:
    """A folder inside another one does not count: a package names what is in it."""
    by_import = {
        (folder_of(name), folder_of(other))
        for name, path in MODULES.items()
        for other in imports(name, types_too=path.name != "__init__.py")
        if other in MODULES
    }
    by_text = {(folder_of(n), folder_of(other)) for n in MODULES for other in named_in_texts(n)}
    mutual = {
        frozenset((a, b))
        for a, b in by_text
        if (b, a) in by_import | by_text
        and not f"{a}.".startswith(f"{b}.")
        and not f"{b}.".startswith(f"{a}.")
    }
    assert mutual == {frozenset(pair) for pair in MUTUAL}


def test_sql_imports_and_names_nothing_of_ours_but_itself() -> None:
    own = [name for name in MODULES if package_of(name) == "sql"]
    used = {(name, other) for name in own for other in (*imports(name), *named_in_texts(name))}
    assert len(own) > 80
    assert {pair for pair in used if is_ours(pair[1]) and package_of(pair[1]) != "sql"} == set()


def test_siblings_do_not_import_each_other() -> None:
    for name in MODULES:
        for other in imports(name):
            for folder, sibling in SIBLINGS:
                is_inside = inside(name).startswith(f"{folder}.")
                assert not (is_inside and inside(other).startswith(sibling)), (name, other)


def test_only_the_sandbox_package_knows_its_backends() -> None:
    """So nothing else can ask for a back end with ``isinstance``, nor use what one alone has."""
    names = list(map(inside, MODULES))
    assert all(any(name.startswith(folder) for name in names) for folder in BACKENDS)
    importers = {
        name
        for name in MODULES
        for other in imports(name)
        if other in MODULES and inside(other).startswith(BACKENDS)
    }
    assert {name for name in importers if package_of(name) != "sandbox"} == set()


def test_a_public_class_has_a_name_of_its_own() -> None:
    """In all distributions, but for the classes that have the authors' names or those of PEP 249,
    and for what intercode-sql defines again because it stands alone."""
    found: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    twice = {name: modules for name, modules in found.items() if len(modules) > 1}
    authors = {"BashEnv", "CTFEnv", "PythonEnv", "SqlEnv"}
    standard = {"Connection", "DataError"}
    alone = {"DatabaseSpec", "ExecResult", "ForkSafeLock", "Table"}
    assert twice.keys() == authors | standard | alone, twice


def test_only_the_main_module_and_the_plug_in_import_the_command_line() -> None:
    importers = {name for name in MODULES for other in imports(name) if package_of(other) == "cli"}
    others = {name for name in importers if package_of(name) not in ("cli", "lab")}
    assert others <= {"intercode.__main__"}


def test_the_authors_package_is_reached_by_entry_points_only() -> None:
    """Nothing else imports ``intercode.paper`` or names a module of it."""
    used = {
        (name, other)
        for name in MODULES
        if package_of(name) != "paper"
        for other in (*imports(name), *named_in_texts(name))
    }
    assert {pair for pair in used if package_of(pair[1]) == "paper"} == set()
    assert sum(package_of(name) == "paper" for name in MODULES) > 20


def test_no_module_but_the_authors_names_their_profile() -> None:
    """The word is in no other module of the product, and no text of the plug-in is that word or
    gives it to ``--profile``. MBPP has a version of that name."""
    named = {
        name
        for name, path in MODULES.items()
        if package_of(name) not in ("paper", "lab")
        and re.search(r"\boriginal\b", path.read_text("utf-8"))
    }
    assert named == {"intercode.datasets.python.mbpp"}
    plugged = [name for name in MODULES if package_of(name) == "lab"]
    texts = [
        node.value
        for name in plugged
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    profile = re.compile(r"original|(?s:.*)(profile original|\(the default\) or original)(?s:.*)")
    assert len(plugged) > 100 and [text for text in texts if profile.fullmatch(text)] == []


def test_no_test_of_the_product_imports_the_plug_in() -> None:
    """Those of the whole workspace lie in the top folder of tests, those of the plug-in in its."""
    folders = [path for path in Path(__file__).parent.iterdir() if path.is_dir()]
    product = [
        path for f in folders if f.name not in ("frozen", "hostile") for path in f.rglob("*.py")
    ]
    assert len(product) > 300
    found = {
        path.name
        for path in product
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
        if name and name.partition(".")[0] == "intercode_lab"
    }
    assert found == set()


def test_no_import_cycles() -> None:
    """Imports for type checkers count too: two modules that import each other are one idea. Not
    those of a package, which name what it loads on first use."""
    graph = {
        name: {
            other
            for other in imports(name, types_too=path.name != "__init__.py")
            if other in MODULES and other != name
        }
        for name, path in MODULES.items()
    }
    assert strong_components(graph) == []


def strong_components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of two and more nodes that reach each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            group = sorted(stack[at:])
            del stack[at:]
            if len(group) > 1:
                found.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert strong_components(graph) == [["a", "b", "c"]]


def test_code_inside_the_sandbox_imports_only_the_standard_library_and_itself() -> None:
    """The launcher runs in a bare interpreter, without this package."""
    runtime = "intercode_sandbox.supervisor.runtime"
    names = [name for name in MODULES if name.startswith(runtime)]
    assert len(names) > 5
    for name in names:
        for other in imports(name):
            known = other.split(".")[0] in sys.stdlib_module_names
            assert known or other.startswith(runtime), f"{name} imports {other}"


def test_imports_are_read_in_every_form() -> None:
    """Relative and absolute imports, and imports inside functions."""
    runtime = "intercode_sandbox.supervisor.runtime"
    assert f"{runtime}.protocol" in set(imports(f"{runtime}.launcher"))
    assert "intercode_sandbox.registry" in set(imports("intercode_sandbox.backends"))


def test_texts_are_read_in_every_form() -> None:
    """References of registries, and arguments of ``import_module``."""
    assert "intercode.agents.react" in set(named_in_texts("intercode.agents"))
    assert "intercode.cli" in set(named_in_texts("intercode.cli.new"))
    environments = "intercode.environments"
    assert f"{environments}.base" in set(named_in_texts(environments))
    languages = set(named_in_texts(f"{environments}.languages"))
    assert f"{environments}.base.policy.bash" in languages


IMPORT = """
import os, sys, threading
import gymnasium
before = set(sys.modules)
import intercode
new = set(sys.modules) - before
heavy = ("aiohttp", "yarl", "sklearn", "scipy", "ray", "torch", "docker", "rich", "pandas",
         "matplotlib", "asyncio", "multiprocessing.pool", "concurrent.futures")
print([name for name in heavy if name in new])
lazy = ("intercode_sql", "intercode.agents", "intercode.models",
        "intercode.cli", "intercode.evaluation", "intercode.results", "intercode.integrations")
print([name for name in sys.modules if name.startswith(lazy)])
print(*[name for name in sys.modules if name.startswith("intercode_sandbox.")])
print(threading.active_count(), os.path.exists(f"/proc/self/task/{os.getpid()}/children")
      and open(f"/proc/self/task/{os.getpid()}/children").read())
print("intercode/Bash-v1" in gymnasium.registry)
"""


def test_importing_the_package_does_nothing_and_loads_nothing_heavy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True, timeout=60
    )
    heavy, lazy, of_sandboxes, activity, registered = run.stdout.splitlines()
    assert heavy == "[]"
    assert lazy == "[]"
    assert all(map(is_shared, of_sandboxes.split()))
    assert activity in ("1 ", "1 False")
    assert registered == "True"


@pytest.mark.heavy
def test_every_module_can_be_imported_by_itself() -> None:
    """In one fresh interpreter, in reverse order, so that no module relies on another's import."""
    elsewhere = ("intercode.integrations.harbor.provider", "intercode.integrations.verifiers")
    names = [  # those two have virtual environments of their own
        n for n in MODULES if not n.endswith("__main__") and not n.startswith(elsewhere)
    ]
    code = f"import importlib\nfor n in {names[::-1]!r}: importlib.import_module(n)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
