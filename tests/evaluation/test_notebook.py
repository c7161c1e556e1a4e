"""A run in a notebook, with its real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CELLS = (
    "import intercode\n"
    "def gold(messages):\n"
    "    return '```bash\\necho 0\\n```'\n"
    "run = intercode.evaluate("
    "{squares!r}, 'single-turn', model=gold, limit=3, parallel=1, out={out!r})",
    "run",
    "run.episodes[0]",
    "again = await intercode.evaluate_async("
    "{squares!r}, 'single-turn', model=gold, limit=1, out={out!r} + '-2')\n"
    "print([t.success for t in again.episodes])",
)


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_run_and_its_progress_show_themselves(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "no notebook kernel: pip install 'intercode-gym[test]'"
    nbclient = pytest.importorskip("nbclient", reason=reason)
    nbformat = pytest.importorskip("nbformat", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    values = {"squares": squares, "out": str(tmp_path / "run")}
    cells = [nbformat.v4.new_code_cell(cell.format(**values)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    progress, shown, episode, asynchronous = (cell.outputs for cell in notebook.cells)
    assert len(progress) == 1, "one output, which was replaced as the run went on"
    html = html_of(progress[0])
    assert "single-turn" in html and "3/3" in html and "success 33.3 %" in html
    assert "<progress value='3' max='3'" in html and "in progress" not in html
    html = html_of(shown[-1])
    assert "sums/0" in html and "33.3" in html and "single-turn" in html
    html = html_of(episode[-1])
    assert "echo 0" in html and "print 0 squared" in html
    assert "1/1" in html_of(asynchronous[0]) and asynchronous[-1].text == "[True]\n"


def html_of(output: Any) -> str:
    return str(output.data["text/html"])
