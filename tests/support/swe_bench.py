"""Two tiny instances in SWE-bench's layout, made from a generated package."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

PYTEST_PARTS = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "py")
"""What pytest consists of, all in Python: the images bring it, as this machine's may be missing."""
DOCKERFILE = """\
FROM host
COPY pytest /opt/pytest
COPY testbed /testbed
ENV PATH=/opt/pytest/bin:/usr/local/bin:/usr/bin:/bin
ENV PYTHONPATH=/opt/pytest/lib:/testbed
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /testbed
"""
RUNNER = "#!/usr/bin/python3\nimport sys\nfrom pytest import main\nsys.exit(main())\n"
BUGGY = "def double(n):\n    return n + n + 1\n\n\ndef half(n):\n    return n // 2\n"
FIXED = BUGGY.replace("n + n + 1", "n + n")
OLD_TESTS = "from pkg import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
NEW_TESTS = (
    "import pytest\nfrom pkg import double, half\n\n\n"
    "def test_half():\n    assert half(4) == 2\n\n\n"
    "class TestDouble:\n"
    "    @pytest.mark.parametrize('n', [1, 2], ids=['one of', 'two'])\n"
    "    def test_double(self, n):\n        assert double(n) == 2 * n\n"
)
SETTINGS = "[tool:pytest]\naddopts = -q\n"
CONFTEST = "import pytest\n"


def write_instances(folder: Path) -> Path:
    """Write the files of two instances, and return the file of rows.

    The rows name no image: ``images.json`` beside the file maps the instances to Dockerfiles.
    """
    rows, images = [], {}
    for name, fail in {"acme__pkg-1": BUGGY, "acme__pkg-2": BUGGY.replace("// 2", "// 3")}.items():
        context = folder / name
        repository = context / "testbed"
        base = _commit(repository, fail, OLD_TESTS)
        patch = _patch(repository, "pkg.py", FIXED)
        test_patch = _patch(repository, "tests/test_pkg.py", NEW_TESTS)
        half = "tests/test_pkg.py::test_half"
        rows.append(
            {
                "instance_id": name,
                "repo": "acme/pkg",
                "base_commit": base,
                "version": "1",
                "environment_setup_commit": base,
                "patch": patch,
                "test_patch": test_patch,
                "problem_statement": f"double(1) is 3 in {name}.",
                "hints_text": "none",
                "FAIL_TO_PASS": json.dumps(
                    [
                        # as published: cut at a space
                        "tests/test_pkg.py::TestDouble::test_double[one",
                        "tests/test_pkg.py::TestDouble::test_double[two]",
                        *([half] if "// 3" in fail else []),
                    ]
                ),
                "PASS_TO_PASS": json.dumps([] if "// 3" in fail else [half]),
            }
        )
        # An image may have what its repository has not committed, such as the results of a build.
        (repository / "built.txt").write_text(name)
        (repository / "setup.cfg").write_text(f"{SETTINGS}# of {name}\n")
        _write_pytest(context / "pytest")
        (context / "Dockerfile").write_text(DOCKERFILE)
        images[name] = f"dockerfile:{context}"
    (folder / "images.json").write_text(json.dumps(images))
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def git(repository: Path, *arguments: str) -> str:
    """Run git in a repository and return what it prints."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(repository), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _commit(repository: Path, code: str, tests: str) -> str:
    (repository / "tests").mkdir(parents=True)
    (repository / "pkg.py").write_text(code)
    (repository / "tests/test_pkg.py").write_text(tests)
    (repository / "tests/conftest.py").write_text(CONFTEST)
    (repository / "setup.cfg").write_text(SETTINGS)
    (repository / ".gitignore").write_text("*.log\n")
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "start")
    return git(repository, "rev-parse", "HEAD").strip()


def _patch(repository: Path, path: str, text: str) -> str:
    """Return the patch that gives a file another text, and leave the repository as it is."""
    (repository / path).write_text(text)
    patch = git(repository, "diff")
    git(repository, "checkout", "-q", "--", path)
    return patch


def _write_pytest(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/pytest").write_text(RUNNER)
    (folder / "bin/pytest").chmod(0o755)
    for name in PYTEST_PARTS:
        file = Path(str(import_module(name).__file__))
        if file.name == "__init__.py":
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(file.parent, folder / "lib" / name, ignore=ignored)
        else:
            (folder / "lib").mkdir(exist_ok=True)
            shutil.copy(file, folder / "lib")
