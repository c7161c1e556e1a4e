"""Each tutorial is a page and a notebook of the same cells, which a kernel runs in their order.

What the page shows below a cell is compared with what the cell prints.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support import requirements, sources
from support.snippets import Snippet, commands, compare, read_snippets

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import notebooks


def code_cells(notebook: Any, page: Path) -> list[Any]:
    """Return the cells of code after the one that every notebook begins with."""
    first, *cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert first["source"] == notebooks.setup(page.read_text("utf-8"))
    return cells


def shown(snippet: Snippet) -> str | None:
    """Return what the page shows as the output of a snippet."""
    if snippet.language == "python":
        return snippet.output
    return "".join(output or "..." for _, output in commands(snippet.body))


def test_there_are_five() -> None:
    names = ["local-model", "product", "search", "small-model", "world"]
    assert [page.stem for page in notebooks.TUTORIALS] == names


@pytest.mark.parametrize("page", notebooks.TUTORIALS, ids=lambda page: page.stem)
def test_a_notebook_has_the_cells_of_its_page(page: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install 'intercode-gym[test]'")
    notebooks.write(tmp_path)
    notebook = json.loads((tmp_path / f"{page.stem}.ipynb").read_text("utf-8"))
    nbformat.validate(notebook)
    snippets = list(read_snippets(page.read_text("utf-8")))
    cells = code_cells(notebook, page)
    for snippet, cell in zip(snippets, cells, strict=True):
        magic, _, rest = cell["source"].partition("\n")
        if snippet.file:
            assert (magic, rest) == (f"%%writefile {snippet.file}", snippet.body.rstrip())
        elif snippet.language == "python":
            assert cell["source"] == snippet.body.rstrip()
        else:
            assert rest.splitlines() == [command for command, _ in commands(snippet.body)]


def test_a_notebook_installs_the_package_that_its_page_names() -> None:
    installs = {
        page.stem: notebooks.setup(page.read_text("utf-8")).partition("%pip install -q ")[2]
        for page in notebooks.TUTORIALS
    }
    packages = {name: text.partition("\n")[0] for name, text in installs.items()}
    assert packages.pop("product") == "intercode-sandbox"
    assert set(packages.values()) == {"intercode-lab"}


def test_a_page_with_another_language_has_no_notebook() -> None:
    with pytest.raises(ValueError, match="not toml"):
        notebooks.notebook("# Title\n\n```toml\nx = 1\n```\n")


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.snippets
@pytest.mark.parametrize("page", notebooks.TUTORIALS, ids=lambda page: page.stem)
def test_a_notebook_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "no notebook kernel: pip install 'intercode-gym[test]'"
    nbclient = pytest.importorskip("nbclient", reason=reason)
    nbformat = pytest.importorskip("nbformat", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", sources.PYTHONPATH)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "200")
    text = page.read_text("utf-8")
    for need in {need for snippet in read_snippets(text) for need in snippet.needs}:
        requirements.require(need)
    notebook = nbformat.from_dict(notebooks.notebook(text))
    work = tmp_path / "work"
    work.mkdir()
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(work))
    for snippet, cell in zip(read_snippets(text), code_cells(notebook, page), strict=True):
        printed = "".join(o["text"] for o in cell["outputs"] if o.get("name") == "stdout")
        if not snippet.file and (expected := shown(snippet)) is not None:
            compare(printed, expected)
