"""Every public name has an example that runs: in a docstring, on a page, or in ``examples``.

The examples of docstrings are run here, each in names of its own, and what they print is compared;
``...`` stands for any text. The others are run by tests/test_snippets.py and the like.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.snippets import read_snippets

ROOT = Path(__file__).parents[1]
INVENTORY = runpy.run_path(str(ROOT / "tools" / "inventory.py"))
OPENS = re.compile(
    r"Sandbox(\.open)?\(|open_sandbox|Pool\(|make(_vec)?\(|evaluate|Env(ironment)?\(|"
    r"tier_of|strongest_backend|describe_choice|architecture_of"
)
"""What an example calls that needs a sandbox."""
SHOWN_ELSEWHERE = {
    "intercode.integrations.verifiers": "its settings name the runtime, as docs/verifiers.md shows",
}
"""Packages whose names nobody writes, with what is written in their place."""
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Example:
    """The example of a docstring: the module, the name that it describes, and its lines."""

    module: str
    name: str
    text: str


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names and docstrings of a module, of what it defines, and of its constants."""
    for node in ast.walk(tree):
        if isinstance(node, Definition) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", ""), text
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                yield ast.unparse(target), after.value.value


def find_examples() -> Iterator[Example]:
    """Yield the examples of all docstrings."""
    for source in INVENTORY["SOURCES"]:
        for path in sorted(source.rglob("*.py")):
            text = path.read_text("utf-8")
            if ">>> " not in text:
                continue
            parts = path.relative_to(source).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for name, docstring in docstrings(ast.parse(text)):
                if re.search("(?m)^>>> ", docstring):
                    yield Example(module, name, docstring)


EXAMPLES = list(find_examples())


@pytest.mark.namespace_only("the examples choose their back end")
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            example,
            id=f"{example.module}.{example.name}",
            marks=[pytest.mark.sandbox] if OPENS.search(example.text) else [],
        )
        for example in EXAMPLES
    ],
)
def test_the_example_of_a_docstring_prints_what_it_shows(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        importlib.import_module(example.module)
    except ImportError as e:
        if not str(e).startswith("this needs"):
            raise
        pytest.skip(str(e))
    parsed = doctest.DocTestParser().get_doctest(
        example.text, {"__name__": "__example__"}, example.name, example.module, None
    )
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(parsed, out=report.append)
    assert not report, "".join(report)


@pytest.mark.heavy
def test_every_public_name_has_an_example_that_runs() -> None:
    shown = {definition for code in examples() for definition in named_definitions(code)}
    shown |= {
        INVENTORY["find"](example.module, example.name) for example in EXAMPLES if example.name
    }
    lacking = [
        f"{package}.{name}"
        for package in INVENTORY["public_packages"]()
        if package not in SHOWN_ELSEWHERE
        for name in INVENTORY["listed"](package)
        if name != "__version__" and definition_of(package, name) not in shown
    ]
    assert lacking == [], "write an example of 2 to 5 lines into the docstring, after >>>"


def examples() -> Iterator[str]:
    """Yield the code of all examples that run, in any language."""
    for example in EXAMPLES:
        parts = doctest.DocTestParser().get_examples(example.text)
        yield "".join(part.source for part in parts)
    for page in (
        ROOT / "README.md",
        *ROOT.glob("packages/*/README.md"),
        *ROOT.glob("docs/**/*.md"),
    ):
        for snippet in read_snippets(page.read_text("utf-8")):
            if not snippet.reason:
                setup = snippet.setup if snippet.language == "python" else ""
                yield f"{setup}\n{snippet.body}"
    for path in ROOT.glob("examples/**/*.py"):
        yield path.read_text("utf-8")


def named_definitions(code: str) -> Iterator[object]:
    """Yield what code names by an import, as an attribute of a module, or as ``module:name``."""
    yield from (definition_of(*found) for found in re.findall(r"\b(intercode[\w.]*):(\w+)", code))
    try:
        tree = compile(code, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:  # a language other than Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield definition_of(*node.module.rpartition(".")[::2])
            yield from (definition_of(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield definition_of(ast.unparse(node.value), node.attr)


def definition_of(module: str, name: str) -> object:
    """Return what a name of a module of ours stands for, the same for all its public places."""
    if not INVENTORY["path_of"](module):
        return None
    home, node = INVENTORY["find"](module, name)
    return (home, node or name) if node or not INVENTORY["path_of"](home) else (home, None)


def test_a_name_is_found_where_it_is_defined() -> None:
    code = "import intercode\nfrom intercode.core import UsageError\nintercode.make_vec('bash')\n"
    found = set(named_definitions(code))
    assert definition_of("intercode_sandbox.errors", "UsageError") in found
    assert definition_of("intercode.environments", "make_vec") in found
    assert definition_of("intercode.environments", "make") not in found
    assert definition_of("intercode.core.version", "__version__") not in found
