"""Print the size of each distribution at some commits.

    python benchmarks/sizes.py [COMMIT ...]

Without a commit, the last one is measured. Statements are nodes of the syntax without docstrings,
so that packed lines do not count as fewer. Public names are those in `__all__`. Tests and words of
pages are counted for the whole repository. The time of an import is the median processor time of
new interpreters. Needs git, and pip, which builds the wheels.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from measuring import search_path

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = 15
COLUMNS = (
    "commit",
    "distribution",
    "statements",
    "modules",
    "lines of C",
    "public names",
    "extras",
    "entry points",
    "dependencies",
    "wheel, KiB",
    "import, ms",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs="*", metavar="COMMIT", default=["HEAD"])
    shared: list[tuple[object, ...]] = [("commit", "lines of tests", "words of pages")]
    _print_row(COLUMNS)
    _print_row(["---"] * len(COLUMNS))
    for commit in parser.parse_args().commits:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            archive = subprocess.run(
                ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
            )
            subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
            for project in _projects(tree):
                _print_row([commit, *_figures(project, tree)])
            shared.append((commit, *_shared_figures(tree)))
    print()
    for row in shared:
        _print_row(row)


def _print_row(cells: Sequence[object]) -> None:
    print("|", *(f"{cell} |" for cell in cells), flush=True)


def _projects(tree: Path) -> Iterator[Path]:
    """Yield the directories of the distributions."""
    for file in sorted([tree / "pyproject.toml", *tree.glob("packages/*/pyproject.toml")]):
        if "project" in tomllib.loads(file.read_text()):
            yield file.parent


def _figures(project: Path, tree: Path) -> list[object]:
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    modules = [ast.parse(file.read_bytes()) for file in project.glob("src/**/*.py")]
    points = [*about.get("entry-points", {}).values(), about.get("scripts", {})]
    (package,) = (file.parent.name for file in project.glob("src/*/__init__.py"))
    return [
        about["name"],
        sum(map(_statements, modules)),
        len(modules),
        _lines(project.glob("src/**/*.[ch]")),
        sum(map(_public_names, modules)),
        len(about.get("optional-dependencies", {})),
        sum(map(len, points)),
        len(about.get("dependencies", [])),
        _wheel_size(project),
        _import_time(package, tree),
    ]


def _statements(module: ast.Module) -> int:
    """Return the number of statements, without docstrings."""
    return sum(
        isinstance(node, ast.stmt)
        and not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        for node in ast.walk(module)
    )


def _public_names(module: ast.Module) -> int:
    return sum(
        len(node.value.elts)
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, (ast.List, ast.Tuple))
        and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    )


def _shared_figures(tree: Path) -> tuple[int, int]:
    tests = [*tree.glob("tests/**/*.py"), *tree.glob("packages/*/tests/**/*.py")]
    pages = [*tree.glob("*.md"), *tree.glob("docs/**/*.md"), *tree.glob("packages/*/README.md")]
    return _lines(tests), sum(len(page.read_text().split()) for page in pages)


def _lines(files: Iterable[Path]) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in files)


def _wheel_size(project: Path) -> int:
    """Return the kibibytes of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "-w",
            folder,
            str(project),
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.stat().st_size // 1024


def _import_time(package: str, tree: Path) -> int:
    """Return the milliseconds of an import in a new interpreter, whose own start is included."""
    environment = {**os.environ, "PYTHONPATH": search_path(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times = []
    for _ in range(1 + IMPORTS):  # the first one compiles the modules
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", f"import {package}"], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(statistics.median(times[1:]) * 1000)


if __name__ == "__main__":
    main()
