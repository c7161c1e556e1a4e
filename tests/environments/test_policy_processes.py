"""Actions that take minutes to parse, in a process that ends after its limit."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intercode.environments.base.policy import PolicyGuard
from intercode.environments.base.policy.parse_process import (
    PARSE_SECONDS,
    ParseLimitError,
    ParseProcess,
    processes,
)
from support.descriptions import guard as make_guard

SLOW = "cat <<E " * 40_000 + "\n"
LONG = {
    "here-documents": SLOW,
    "numbered here-documents": "".join(f"<<E{n} " for n in range(40_000)) + "\n",
    "a pipeline": "a |" * 80_000,
}
"""Actions whose parts tree-sitter finds in minutes, or not at all with the allowed memory."""
UNREAD = ("more than 2 s to parse", "too much memory")


@pytest.fixture(autouse=True)
def _end_processes() -> Iterator[None]:
    processes().close()  # those of other tests
    yield
    processes().close()


def strict(*deny: str) -> PolicyGuard:
    return make_guard({"deny": list(deny), "unparsed": "refuse"}, "bash")


@pytest.mark.parametrize(
    "name",
    [
        name if name == "here-documents" else pytest.param(name, marks=pytest.mark.slow)
        for name in LONG
    ],
)
def test_an_action_that_takes_minutes_counts_as_unparsed(name: str) -> None:
    before = time.process_time()
    refusal = strict("command:rm").refusal(LONG[name])
    assert refusal is not None and any(words in refusal for words in UNREAD)
    assert time.process_time() - before < PARSE_SECONDS  # the owner only waits
    assert strict("command:rm").refusal("ls | wc") is None


@pytest.mark.slow
def test_patterns_apply_to_an_action_that_cannot_be_parsed() -> None:
    rules = {"deny": ["command:rm", "pattern:curl"]}
    assert make_guard(rules, "bash").refusal(SLOW) is None  # as after a syntax error
    refusal = make_guard(rules, "bash").refusal(f"{SLOW}curl x")
    assert refusal is not None and "pattern:curl" in refusal


@pytest.mark.slow
def test_a_pattern_that_takes_exponential_time_is_bounded() -> None:
    refusal = strict("pattern:^(x+x+)+y").refusal("x" * 60)
    assert refusal is not None and UNREAD[0] in refusal


@pytest.mark.slow
def test_other_environments_do_not_wait_for_a_long_action() -> None:
    guard = strict("command:rm")
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(guard.refusal, SLOW)
        assert guard.refusal("rm x") is not None
        assert not long.done()
        assert long.result() is not None


def test_a_process_that_was_killed_is_replaced() -> None:
    guard = strict("command:rm")
    assert guard.refusal("rm x") is not None
    (process,) = processes()._idle
    os.kill(process._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process._process.pid, os.WEXITED | os.WNOWAIT)
    assert guard.refusal("rm x") is not None and guard.refusal("ls") is None


def test_a_forked_owner_has_processes_of_its_own() -> None:
    guard = strict("command:rm")
    assert guard.refusal("rm x") is not None
    pid = os.fork()
    if pid == 0:
        refused = guard.refusal("rm y") is not None and guard.refusal("ls") is None
        processes().close()
        os._exit(0 if refused else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert guard.refusal("rm z") is not None


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        b'{"refusal": 5}\n',
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b"x" * ((1 << 18) + 1),
    ],
    ids=["text", "list", "empty", "number", "bytes", "deep", "long"],
)
def test_an_answer_that_is_not_valid_counts_as_unparsed(answer: bytes) -> None:
    process = ParseProcess()
    mine, other = socket.socketpair()
    process._channel.close()
    process._channel = mine
    try:
        with other, ThreadPoolExecutor(1) as pool:
            refusal = pool.submit(process.refusal, {})
            other.recv(100)
            other.settimeout(60)
            other.sendall(answer)
            with pytest.raises(ParseLimitError, match="not valid"):
                refusal.result(60)
    finally:
        process.close()


def test_a_parser_does_not_have_the_keys_of_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret-key")
    assert strict("command:rm").refusal("rm x") is not None
    (process,) = processes()._idle
    environment = Path(f"/proc/{process._process.pid}/environ").read_bytes()
    assert b"PYTHONPATH=" in environment and b"a-secret-key" not in environment
