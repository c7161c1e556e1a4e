"""Snapshots of live interpreters: restoring them, and what they leave behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from intercode.core.errors import EnvironmentStateError, SandboxError, TaskError
from intercode.environments.python.env import PythonEnv
from support.python_tasks import ALL, shown
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox


def test_the_unused_sandbox_of_a_task_is_closed_if_the_next_task_cannot_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: object) -> NoReturn:
        raise TaskError("no image")

    with PythonEnv(ALL) as env:
        env.reset(options={"task": 0})
        sandbox = env.sandbox
        env.end_episode()
        assert sandbox.run(["true"]).exit_code == 0
        monkeypatch.setattr(env, "_spec_for", fail)
        with pytest.raises(TaskError, match="no image"):
            env.reset(options={"task": 1})
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(["true"])


@pytest.fixture(scope="module")
def env() -> Iterator[PythonEnv]:
    with PythonEnv(ALL, timeout=20.0) as opened:
        yield opened


def test_restore_brings_back_the_same_objects_and_files(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("class A: pass\na = A(); a.n = 1; numbers = iter(range(9)); next(numbers)")
    env.step("import os, random; random.seed(3); os.chdir('/tmp')\nx = open('f', 'w').write('one')")
    name = shown(env, "repr(a)")
    with env.snapshot() as moment:
        assert moment.omitted == ()
        rest = shown(env, "(random.random(), next(numbers))")
        env.step("a.n = 2; os.remove('f'); open('g', 'w').close(); os.chdir('/')")
        for _ in range(2):
            env.restore(moment)
            assert shown(env, "repr(a)") == name
            assert shown(env, "(random.random(), next(numbers))") == rest
            assert shown(env, "(a.n, open('f').read(), os.listdir('.'), os.getcwd())") == (
                "(1, 'one', ['f'], '/tmp')\n"
            )
            env.step("a.n = 3; open('g', 'w').close()")
    assert shown(env, "a.n") == "3\n"


def test_forks_start_equal_and_are_independent(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("x = [1]; import os; os.mkdir('/tmp/d'); os.chdir('/tmp/d')")
    env.step("with open('/tmp/f', 'a') as f: count = f.write('one')")
    twins = env.fork(2)
    try:
        for n, other in enumerate(twins):
            other.step(f"x.append({n})")
            other.step("def add(a, b): return 3")
        assert [shown(t, "(x, open('/tmp/f').read(), os.getcwd())") for t in twins] == [
            f"([1, {n}], 'one', '/tmp/d')\n" for n in range(2)
        ]
        assert shown(env, "x") == "[1]\n"
        assert [t.score().value for t in twins] == [0.5, 0.5]
        assert env.score().value == 0.0
    finally:
        for other in twins:
            other.close()


_MADE = """import random, os
thing, chance, made_in = object(), random.Random(os.urandom(8)), os.getpid()
with open('/tmp/f', 'w') as f: written = f.write('abcdef')
f = open('/tmp/f'); head = f.read(2)
numbers = (n * n for n in range(99)); first = [next(numbers) for _ in range(5)]
kept = [bytearray(100) for _ in range(20000)]"""
_SHOWN = "(id(thing), chance.random(), made_in, f.read(2), f.tell(), next(numbers), len(kept))"
_USED = """import subprocess, threading, signal
done = []; t = threading.Thread(target=done.append, args=[1]); t.start(); t.join()
more = [bytearray(1000) for _ in range(20000)]; del more
try: signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt: done.append(2)
done, subprocess.run(['echo', 'x'], stdout=subprocess.PIPE).stdout, os.getpid() == os.getppid()"""


@pytest.mark.namespace_only("in containers the actions are run again")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="processes are moved on x86-64 only")
def test_the_process_itself_moves_to_another_sandbox(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step(_MADE)
    twins = env.fork(3)
    try:
        seen = [shown(e, _SHOWN) for e in (*twins, env)]
        assert len(set(seen)) == 1 and "'cd', 4, 25, 20000)" in seen[0]
        assert [shown(e, _USED) for e in twins] == ["([1, 2], b'x\\n', False)\n"] * 3
        again = twins[0].fork(1)[0]
        with again:
            assert shown(again, "(id(thing), len(kept))") == shown(env, "(id(thing), len(kept))")
        twins[1].timeout = 1.0
        _, _, _, _, info = twins[1].step("while True: pass")
        twins[1].timeout = 20.0
        assert info["timed_out"] and shown(twins[1], "len(kept)") == "20000\n"
    finally:
        for other in twins:
            other.close()


@pytest.mark.namespace_only("in containers the actions are run again")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="processes are moved on x86-64 only")
def test_a_process_with_a_socket_cannot_be_moved(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("import socket; a, b = socket.socketpair()")
    with pytest.raises(EnvironmentStateError, match=r"socket:.* is open"):
        env.fork(1)
    assert shown(env, "a.fileno() > 2") == "True\n"


def test_a_snapshot_outlives_its_environment() -> None:
    first = PythonEnv(ALL)
    first.reset(options={"task": 0})
    first.step("x = object(); y = id(x)")
    moment = first.snapshot()
    first.close()
    with PythonEnv(ALL) as second:
        second.restore(moment)
        sandbox = second.scored_sandbox
        assert shown(second, "id(x) == y") == "True\n"
        moment.close()
        second.step("import os; os._exit(0)")
        assert shown(second, "id(x) == y") == "True\n"
    eventually(lambda: sandbox.connection._socket is None, "the sandbox of a snapshot is closed")


def test_an_interpreter_that_cannot_be_forked_is_refused_with_the_reason(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    with pytest.raises(EnvironmentStateError, match="1 more threads are running"):
        env.snapshot()
    assert shown(env, "1 + 1") == "2\n"
    env.reset(options={"task": 0})
    env.step("f = open('/tmp/f', 'w')")
    with pytest.raises(EnvironmentStateError, match="/tmp/f is open for writing"):
        env.snapshot()


def test_a_fork_that_the_agent_killed_is_replaced(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("x = 1")
    with env.snapshot() as moment:
        env.step(
            "import os\nfor p in os.listdir('/proc'):\n"
            "    if p.isdigit() and int(p) not in (1, os.getpid()): os.kill(int(p), 9)"
        )
        env.step("x = 2")
        env.restore(moment)
        assert shown(env, "x") == "1\n"


def test_in_a_deterministic_sandbox_all_results_are_equal() -> None:
    runs = []
    for _ in range(2):
        with PythonEnv(ALL, deterministic=True) as env:
            env.reset(seed=1, options={"task": 0})
            code = (
                "import random, time, uuid\n(time.time(), random.random(), hash('a'), uuid.uuid4())"
            )
            steps = [env.step(c) for c in (code, "{'b', 'a'}, object()", "x = {'k': [1]}")]
            with env.snapshot() as moment:
                env.step("x['k'].append(random.random())")
                env.restore(moment)
            steps += [env.step("random.random()"), env.step("x")]
            runs.append([(s[0], s[4]["hashes"]) for s in steps])
    assert runs[0] == runs[1]
    assert runs[0][-1][0] == "{'k': [1]}\n"
    assert len({hashes["state"] for _, hashes in runs[0]}) == 2


def test_episodes_leave_no_descriptor_open() -> None:
    with PythonEnv(ALL, test_timeout=0.5) as env:
        counts = []
        for _ in range(4):
            for i in (0, 4):
                env.reset(options={"task": i})
                env.step("import os\ndef add(a, b): os._exit(0)")
                with env.snapshot() as moment:
                    env.step("import os; os._exit(1)")
                    env.restore(moment)
                env.score()
            assert env._workspaces.prewarmer._prewarmed is not None
            env._workspaces.prewarmer._prewarmed.result(60)  # the next sandbox
            counts.append(len(os.listdir("/proc/self/fd")))
        most = counts[0] + 2
        eventually(lambda: len(os.listdir("/proc/self/fd")) <= most, f"as at first: {counts}")
