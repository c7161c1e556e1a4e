"""tools/docs_docstrings.py: what the pages of the public names say that the sources do not."""

from __future__ import annotations

import importlib
import inspect
import runpy
from pathlib import Path

import pytest

from intercode_sandbox import AsyncSandbox

griffe = pytest.importorskip("griffe", reason="pip install 'intercode-gym[dev]'")
ROOT = Path(__file__).parents[1]


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
