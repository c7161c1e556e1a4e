"""tools/docs_docstrings.py: what the pages of the public names say that the sources do not."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode_sandbox import AsyncSandbox

griffe = pytest.importorskip("griffe", reason="pip install 'intercode-gym[dev]'")
ROOT = Path(__file__).parents[1]
INVENTORY = runpy.run_path(str(ROOT / "tools/inventory.py"))
WITHOUT_SECTIONS = {
    "intercode",
    "intercode.agents",
    "intercode.core",
    "intercode.environments",
    "intercode.integrations.harbor",
    "intercode.integrations.inspect",
    "intercode.integrations.swe_bench",
    "intercode.models",
    "intercode.sessions",
}
"""Packages whose docstrings still describe parameters or errors in prose."""


def test_every_method_of_an_asynchronous_sandbox_has_its_parameters_and_its_docstring() -> None:
    extensions = griffe.load_extensions(str(ROOT / "tools/docs_docstrings.py"))
    loader = griffe.GriffeLoader(
        search_paths=[ROOT / "packages/sandbox/src"], extensions=extensions
    )
    read = loader.load("intercode_sandbox")["api.async_sandbox.AsyncSandbox"]
    for name, method in inspect.getmembers(AsyncSandbox, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            assert read[name].is_function and "async" in read[name].labels, name
            assert read[name].docstring is not None, name
            expected = [*inspect.signature(getattr(method, "__func__", method)).parameters]
            assert [parameter.name for parameter in read[name].parameters] == expected, name


def test_no_public_name_is_that_of_a_module_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Griffe would show the module instead."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    for name in importlib.import_module("docs_build").PACKAGES:
        package = importlib.import_module(name)
        (folder,) = package.__path__
        for module in {path.stem for path in Path(folder).glob("*.py")} & set(package.__all__):
            beside = importlib.import_module(f"{name}.{module}")
            assert getattr(package, module) is beside, f"{name}.{module}"


def test_an_example_with_prompts_is_a_block_of_its_own() -> None:
    to_markdown = runpy.run_path(str(ROOT / "tools/docs_docstrings.py"))["to_markdown"]
    example = ">>> for x in (1, 2):\n...     print(x)\n1\n2"
    assert to_markdown(f"Text.\n\n{example}") == f"Text.\n\n```pycon\n{example}\n```\n"
    assert to_markdown(f"{example}\n\nText.") == f"```pycon\n{example}\n```\n\nText."


def documented(module: str, name: str) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield a public name with its docstring and, of a class, its public methods with theirs."""
    where, node = INVENTORY["find"](module, name)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield name, node, ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        for method in methods_of(node):
            if not method.name.startswith("_"):
                text = inherited_docstring(where, node, method.name)
                yield f"{name}.{method.name}", method, text


def methods_of(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def inherited_docstring(module: str, owner: ast.ClassDef, method: str) -> str:
    """Return the docstring of a method, or that of the method of a base which it overrides."""
    for found in methods_of(owner):
        if found.name == method and (text := ast.get_docstring(found)):
            return text
    for base in owner.bases:
        where, node = INVENTORY["find"](module, ast.unparse(base).partition("[")[0])
        if isinstance(node, ast.ClassDef) and (text := inherited_docstring(where, node, method)):
            return text
    return ""


@pytest.mark.parametrize("package", sorted({*INVENTORY["public_packages"]()} - WITHOUT_SECTIONS))
def test_docstrings_have_sections_for_parameters_and_errors(package: str) -> None:
    faults = []
    for public in INVENTORY["listed"](package):
        for name, node, text in documented(package, public):
            section = re.search(r"^Args:\n((?: .*\n?|\n)*)", text, re.MULTILINE)
            named = re.findall(r"^ {4}(\w+): ", section[1], re.MULTILINE) if section else []
            if not isinstance(node, ast.ClassDef):
                faults += [f"{name}: no {one} in Args" for one in parameters(node) - {*named}]
            if re.search(r"\bRaises (\w+Error|\w+Exception|as)\b", text):
                faults.append(f"{name}: an error outside of Raises")
    assert not faults


def parameters(function: Any) -> set[str]:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return {*names} - {"self", "cls"}
