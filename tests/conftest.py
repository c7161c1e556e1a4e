"""Where tests find the authors' data. A test that lacks it is skipped and says how to get it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so begins what a shell has run with &
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"


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
