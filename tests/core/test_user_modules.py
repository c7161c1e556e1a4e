"""The working directory holds data: only modules that the user has named are imported from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode_sandbox.registry import is_module, load_object

PLANTED = (
    "__future__",
    "resource",
    "_decimal",
    "gzip",
    "uuid",
    "tarfile",
    "logging",
    "hmac",
    "sqlite3",
    "typing",
    "multiprocessing",
    "signal",
    "socket",
    "pickle",
    "concurrent",
    "numpy",
    "wandb",
    "pandas",
    "pyarrow",
    "sqlglot",
    "sitecustomize",
    "harbor",
    "bash",
)
"""Names of files beside the data: those of the standard library, and of other packages."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory of data with modules that leave a mark where they are executed."""
    directory = tmp_path / "data"
    directory.mkdir()
    for name in PLANTED:
        mark = f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r} + chr(10))\n"
        (directory / f"{name}.py").write_text(mark)
    return directory


def run(data: Path, *command: str, **variables: str) -> None:
    """Run a command in the directory, which executes none of its files."""
    executed = data.parent / "executed"
    done = subprocess.run(
        command,
        cwd=data,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert not executed.exists(), executed.read_text()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    ["list datasets", "list", "eval starter:sql --agent gold --limit 1 --out r"],
)
def test_a_command_imports_nothing_from_the_directory_in_which_it_runs(
    data: Path, words: str
) -> None:
    run(data, sys.executable, "-m", "intercode", *words.split())


@pytest.mark.sandbox
@pytest.mark.slow
def test_workers_of_ray_import_nothing_from_the_directory(data: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'intercode-gym[ray]'")
    words = "eval starter:bash --agent gold --limit 1 --set runner=ray:local --out r"
    run(data, sys.executable, "-m", "intercode", *words.split())


def test_an_empty_entry_of_the_search_path_is_not_the_directory(data: Path) -> None:
    for name in ("sitecustomize", "typing", "__future__"):  # imported before this package
        (data / f"{name}.py").unlink()
    script = data.parent / "intercode"
    script.write_text("import sys\nfrom intercode.cli import main\nsys.exit(main())\n")
    searched = f"{os.environ.get('PYTHONPATH', '')}{os.pathsep}{data.parent}"
    for program in ([str(script)], ["-m", "intercode"]):
        run(data, sys.executable, *program, "list", "datasets", PYTHONPATH=searched)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that is not in the search path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    return tmp_path


def write(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_a_module_of_the_user_and_what_it_imports_are_loaded_by_location(home: Path) -> None:
    files = {
        "um_agent.py": "import um_helper\ndef late():\n import um_late\n return um_late.N\n",
        "um_helper.py": "from um_package.part import N\n",
        "um_late.py": "N = 3\n",
        "um_package/__init__.py": "",
        "um_package/part.py": "from . import other\nN = other.N\n",
        "um_package/other.py": "N = 2\n",
    }
    write(home, files)
    before = list(sys.path)
    assert load_object("um_agent:um_helper").N == 2
    assert load_object("um_agent:late")() == 3  # an import that runs later
    assert load_object("um_package.other:N") == 2
    assert is_module("um_package.part") and not is_module("um_package.absent")
    assert sys.path == before


def test_a_file_of_the_user_imports_what_is_beside_it(home: Path) -> None:
    files = {
        "agents/mine.py": "import um_beside, um_above\nN = um_beside.N + um_above.N\n",
        "agents/um_beside.py": "N = 1\n",
        "um_above.py": "N = 10\n",
    }
    write(home, files)
    assert load_object("agents/mine.py:N") == 11


def test_other_code_does_not_import_what_is_beside_a_module_of_the_user(home: Path) -> None:
    write(home, {"um_plain.py": "N = 1\n", "um_optional.py": "raise SystemExit('executed')\n"})
    assert load_object("um_plain:N") == 1
    with pytest.raises(ModuleNotFoundError):
        import um_optional  # noqa: F401


def test_nothing_replaces_an_installed_module_and_the_error_says_so(home: Path) -> None:
    mine = "def mine(): ...\n"
    files = {"colorsys.py": mine, "numpy.py": mine, "um_uses.py": "import colorsys\n"}
    write(home, files)
    assert not hasattr(load_object("um_uses:colorsys"), "mine")
    for name in ("colorsys", "numpy"):
        with pytest.raises(UnknownNameError, match=rf"{name}.py was not .*: {name}.py:mine"):
            load_object(f"{name}:mine")
    with pytest.raises(UsageError, match=r"cannot import 'um_absent'"):
        load_object("um_absent:x")


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit(1)", "def (", "import um_absent"])
def test_a_module_that_fails_is_an_error_that_names_it(home: Path, code: str) -> None:
    write(home, {"um_fails.py": code})
    with pytest.raises(UsageError, match=r"cannot import 'um_fails' of 'um_fails:x'"):
        load_object("um_fails:x")
