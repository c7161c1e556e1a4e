"""Options, markers and input directories that all tests share."""

from __future__ import annotations

import gc
import os
import re
import signal
import tomllib
from collections import Counter
from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from support import backend, requirements

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell ignores it for a job started with &
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine is slow, which says nothing about the code under test.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")
os.environ.setdefault("INTERCODE_SQL_TRANSLATIONS", "")  # tests exercise the SQL translator itself


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        default="namespace",
        choices=backend.NAMES,
        help="the sandbox back end; with another, tests marked namespace_only are deselected",
    )


def pytest_configure(config: pytest.Config) -> None:
    backend.choose(config.getoption("--backend"))
    for init in config.rootpath.glob("packages/*/src/*/__init__.py"):
        if find_spec(init.parent.name):  # a package may be tested without those that build on it
            _require_current_installation(init.parents[2] / "pyproject.toml")


def _require_current_installation(project: Path) -> None:
    """Stop if the entry points that were installed are older than those of the project, because
    what they add would be missing."""
    about = tomllib.loads(project.read_text("utf-8"))["project"]
    declared = about.get("entry-points", {})
    wanted = {(group, name, to) for group in declared for name, to in declared[group].items()}
    try:
        points = distribution(about["name"]).entry_points if wanted else ()
    except PackageNotFoundError:
        points = ()
    installed = {(p.group, p.name, p.value) for p in points}
    if missing := sorted(wanted - installed):
        group, name, _ = missing[0]
        raise pytest.UsageError(
            f"the installed package lacks the entry point {group} {name} of {project}: "
            "install the packages again (in the top directory: `make .venv/.tools`)"
        )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off what is imported, which it would walk through again and again:
    modules and tests live until the process ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start slow tests first, the slowest before the others, so that none of them is left for the
    end. If another back end than the default one is tested, deselect what it cannot have or what
    would repeat the same."""
    items.sort(key=_rank)
    if backend.is_container():
        markers = ("namespace_only", "not_in_chroot")[: 1 + backend.is_chroot()]
        others = [item for item in items if any(map(item.get_closest_marker, markers))]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


def _rank(item: pytest.Item) -> int:
    marker = item.get_closest_marker("slow")
    return 2 if marker is None else 0 if marker.args else 1


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker names a need that this machine does not meet."""
    for need in requirements.MARKERS:
        if item.get_closest_marker(need):
            requirements.require(need)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which tests were skipped because something is missing, and how to get it."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items(), key=lambda row: (-row[1], row[0])):
        text = re.sub(r"\s+", " ", reason)
        terminalreporter.write_line(f"skipped {count} test{'s'[: count != 1]}: {text[:200]}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The authors' data files (``intercode list --fetch`` makes such a directory)."""
    requirements.require("data")
    return requirements.input_directory("INTERCODE_DATA", "data")


@pytest.fixture(scope="session")
def recorded_dir() -> Path:
    """The authors' trajectory logs."""
    requirements.require("recorded")
    return requirements.input_directory("INTERCODE_RECORDED", "recorded")


@pytest.fixture(scope="session")
def reference_dir() -> Path:
    """The authors' actions, run again with the authors' code."""
    requirements.require("reference")
    return requirements.input_directory("INTERCODE_REFERENCE", "reference")
