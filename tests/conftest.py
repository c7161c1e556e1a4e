"""Where tests find the authors' data. A test that lacks it is skipped and says how to get it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support import back_end

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so begins what a shell has run with &
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--back-end", default="namespace", choices=back_end.NAMES,
        help="what gives the boxes; with an engine, tests marked namespace_only are left out",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    back_end.choose(config.getoption("--back-end"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker is left with it alone at the end. Leave out
    what only namespaces have, where another back end gives the boxes."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if back_end.is_container():
        others = [item for item in items if item.get_closest_marker("namespace_only")]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


def _find(name: str, variable: str) -> Path:
    path = Path(os.environ[variable]) if variable in os.environ else SHARED / name
    if not path.is_dir():
        pytest.skip(f"no {path}: set {variable} to a directory laid out like the authors' {name}")
    return path


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The authors' data files (``intercode data fetch`` makes such a directory)."""
    return _find("data", "INTERCODE_DATA")


@pytest.fixture(scope="session")
def recorded_dir() -> Path:
    """The authors' trajectory logs."""
    return _find("recorded", "INTERCODE_RECORDED")


@pytest.fixture(scope="session")
def reference_dir() -> Path:
    """The authors' actions re-run with the authors' code."""
    return _find("reference", "INTERCODE_REFERENCE")


os.environ.setdefault("INTERCODE_SQL_TRANSLATIONS", "")  # what is translated is to be tested


@pytest.fixture(autouse=True)
def sql_server(request: pytest.FixtureRequest) -> None:
    """Skips a test that is marked ``mysql`` where there is no server."""
    if request.node.get_closest_marker("mysql"):
        from support.sql_engines import engine_or_skip

        engine_or_skip("mysql").close()
