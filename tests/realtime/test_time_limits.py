"""Time limits of actions: what runs too long is ended, and what came before stays."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.python.session import PythonSession
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.determinism import Determinism
from intercode_sql import open_engine
from intercode_sql.types import DatabaseSpec
from support.sandboxes import PATIENCE, open_test_sandbox
from support.shop import shop_in
from support.time_limits import limit_at

_HANG = (
    "rm /bin; mkdir /bin; printf '#!/usr/bin/python3\\nwhile 1: pass' > /bin/bash; "
    "chmod +x /bin/bash"
)
NOW = 1767225600  # 2026-01-01 00:00:00 UTC


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture
def session(sandbox: BaseSandbox) -> Iterator[PythonSession]:
    opened = PythonSession(sandbox)
    yield opened
    opened.close()


@pytest.fixture
def shell() -> Iterator[BashSession]:
    with open_test_sandbox() as opened, closing(BashSession(opened)) as session:
        yield session


@pytest.mark.sandbox
def test_a_timeout_returns_the_output_and_kills_the_process_tree(sandbox: BaseSandbox) -> None:
    code = "(sleep 600 & setsid sleep 600 & sleep 600) & echo before; sleep 600"
    with limit_at("before"):
        result = sandbox.run(["bash", "-c", code], timeout=PATIENCE)
    assert (result.output, result.exit_code, result.timed_out) == ("before\n", None, True)
    assert "sleep" not in sandbox.run(["bash", "-c", "cat /proc/[0-9]*/comm"]).output


@pytest.mark.sandbox
def test_a_timeout_keeps_earlier_processes(sandbox: BaseSandbox) -> None:
    old = sandbox.spawn(["sleep", "600"])
    time.sleep(0.05)  # the kernel gives start times in hundredths of a second
    assert sandbox.run(["sleep", "600"], timeout=0.2).timed_out
    assert old.wait(0) is None
    old.kill()
    assert old.wait(60) == -9


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass",
        "import subprocess\nsubprocess.run(['sleep', '1000000'])",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "while True: print('x' * 1000)",
    ],
)
def test_an_endless_action_is_interrupted_and_names_stay(
    session: PythonSession, sandbox: BaseSandbox, code: str
) -> None:
    session.run("kept = [1]", 60)
    result = session.run(code, 0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert "[killed: over the time limit of 0.5 s]" in result.note
    assert session.run("kept", 60).output == "[1]\n"
    assert not [name for name in sandbox.processes() if name.startswith("sleep")]


@pytest.mark.sandbox
def test_a_shell_that_does_not_start_costs_no_more_than_the_limit(shell: BashSession) -> None:
    replaced = shell.run(_HANG, 20)
    assert replaced.exit_code == 0 and not replaced.output, replaced
    for code in ("exit", "true"):
        note = shell.run(code, 2.0).note
        assert re.search(r"/bin/bash did not start within [012](\.\d+)? s", note), note


@pytest.mark.sandbox
def test_waiting_takes_real_time_although_the_clock_is_fixed() -> None:
    code = """python3 - <<'END'
import queue, subprocess, threading, time
waits = (
    lambda: time.sleep(0.2),
    lambda: threading.Event().wait(0.2),
    lambda: queue.Queue().get(timeout=0.2),
    lambda: subprocess.run(["sleep", "9"], timeout=0.2),
)
for wait in waits:
    start = time.monotonic()
    try:
        wait()
    except (queue.Empty, subprocess.TimeoutExpired):
        pass
    print(time.monotonic() - start > 0.19, time.time())
END"""
    with open_test_sandbox(determinism=Determinism()) as sandbox:
        assert BashSession(sandbox).run(code, 60.0).output == f"True {NOW}.0\n" * 4


@pytest.mark.parametrize(
    "code",
    [
        "SELECT SLEEP(1000000)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
    ],
)
def test_the_time_limit_stops_a_statement(code: str, tmp_path: Path) -> None:
    engine = open_engine("embedded")
    session = engine.open(shop_in(tmp_path))
    result = session.run(code, 0.1)
    assert (result.timed_out, result.exit_code) == (True, None), result
    assert session.run("SELECT 1", 60.0).output == "[(1,)]"
    session.close()
    engine.close()


def test_sqlite_stops_a_statement_at_its_time_limit(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    session = open_engine("sqlite").open(DatabaseSpec("sqlite", tmp_path / "empty.sqlite", "empty"))
    endless = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r"
    )
    assert session.run(endless, 0.1).timed_out
    assert session.run("SELECT 1", 60.0).output == "[(1,)]"
    session.close()
