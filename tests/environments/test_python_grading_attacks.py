"""More attacks on the reward by code without a solution; see also test_python_attacks.py.

These try to break a sandbox, an interpreter or the judge. Other tests check that the attacks work
against a naive grader, and that an episode learns nothing from being graded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode.core.types import Dataset, Score, Task
from intercode.environments.python.env import PythonEnv
from intercode.environments.python.profiles import StandardPythonProfile
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox

NUMBERS = (3, 20, -7001)
TASK = Task(
    "mine/double",
    "Write double(n).",
    gold="def double(n):\n    return n * 2",
    data={
        "entry": "double",
        "tests": tuple(f"assert double({n}) == {2 * n}" for n in NUMBERS),
        "setup": "",
        "mode": "assert",
    },
)
MINE = Dataset("mine", "python", (TASK,))

EQUAL = """
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def double(n): return Any(1)
"""
SEARCH = """
import gc, re, sys
def texts():
    for thing in gc.get_objects():
        things = thing.values() if isinstance(thing, dict) else thing
        if isinstance(thing, (dict, tuple, list)):
            yield from (str(v) for v in list(things) if isinstance(v, (str, bytes)))
def double(n):
    wanted = re.compile(r"double\\(%d\\) *== *(-?\\d+)" % n)
    frame, found = sys._getframe(), list(texts())
    while frame:
        found += [str(v) for v in list(frame.f_locals.values()) + list(frame.f_globals.values())]
        frame = frame.f_back
    matches = filter(None, map(wanted.search, found))
    return next((int(m[1]) for m in matches), None)
"""
PAGES = """
import re
def double(n):
    wanted = re.compile(rb"double\\(%d\\) *== *(-?\\d+)" % n)
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            try:
                memory.seek(start)
                match = " rw" in line and wanted.search(memory.read(min(end - start, 1 << 24)))
            except (OSError, ValueError, OverflowError):
                continue
            if match:
                return int(match[1])
"""
REAL = {"equal to everything": EQUAL, "searches objects": SEARCH, "searches its pages": PAGES}

ATTACKS = {
    **REAL,
    "ends with a fault": "import ctypes\ndef double(n): return ctypes.string_at(0)",
    "aborts": "import os\ndef double(n): os.abort()",
    "stops itself": "import os, signal\ndef double(n): os.kill(os.getpid(), signal.SIGSTOP)",
    "interrupts": "def double(n): raise KeyboardInterrupt",
    "too deep": "def double(n): return double(n)",
    "closes everything": "import os\ndef double(n): os.closerange(0, 4096)",
    "closes everything at once": "import os\ndef double(n): return 0\nos.closerange(3, 4096)",
    "floods every descriptor": (
        "import os\ndef double(n):\n    while True:\n        for fd in range(3, 256):\n"
        "            try: os.write(fd, b'a' * 65536)\n            except OSError: pass"
    ),
    "kills all others at once": (
        "import os\ndef double(n): return 0\nfor pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if int(pid) not in (os.getpid(), 1):\n        try: os.kill(int(pid), 9)\n"
        "        except OSError: pass"
    ),
    "deaf to signals": (
        "import signal\nfor number in range(1, 32):\n"
        "    try: signal.signal(number, lambda *a: None)\n    except (OSError, ValueError): pass\n"
        "def double(n):\n    while True: pass"
    ),
    "fork bomb": (
        "import os\ndef double(n):\n    while True:\n        try: os.fork()\n"
        "        except OSError: pass"
    ),
    "a thread that answers": (
        "import os, threading, time\ndef double(n):\n    def later():\n        while True:\n"
        "            for fd in range(3, 70):\n                try: os.write(fd, b'[6]\\0')\n"
        "                except OSError: pass\n            time.sleep(.01)\n"
        "    threading.Thread(target=later, daemon=True).start()"
    ),
    "endless truth": (
        "class Slow:\n    def __bool__(self):\n        while True: pass\n"
        "    __eq__ = __len__ = __repr__ = __hash__ = __bool__\ndef double(n): return Slow()"
    ),
    "endless range": "def double(n): return range(10**15)",
    "huge text": "def double(n): return 'x' * (1 << 28)",
    "huge list": "def double(n): return [[0] * 1000] * 100000",
    "all memory at once": "def double(n): return bytearray(1 << 40)",
    "looks in every file": (
        "import os, re\ndef double(n):\n    wanted = re.compile(rb'double\\(%d\\) == (\\d+)' % n)\n"
        "    for place in ('/tmp', '/dev/shm', '/var/tmp', '/run', '/root', '/home', '.'):\n"
        "        for folder, _, names in os.walk(place):\n            for name in names:\n"
        "                try: data = open(os.path.join(folder, name), 'rb').read(1 << 20)\n"
        "                except OSError: continue\n                found = wanted.search(data)\n"
        "                if found: return int(found[1])"
    ),
}


@pytest.fixture(scope="module")
def env() -> Iterator[PythonEnv]:
    with PythonEnv(MINE, timeout=20.0) as made:
        yield made


def scored(env: PythonEnv, action: str, seconds: float = 20.0) -> Score:
    """Return the score of an action. ``seconds``: limit of each test."""
    env.reset(options={"task": 0})
    env.step(action.strip("\n"))
    profile = env._profile_impl
    assert isinstance(profile, StandardPythonProfile)
    profile._limits = (seconds, profile._limits[1])
    return env.score()


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_cheat_scores_nothing(env: PythonEnv, name: str) -> None:
    assert scored(env, ATTACKS[name], 1.0).value == 0.0
    assert scored(env, str(TASK.gold)).value == 1.0


@pytest.mark.parametrize("name", REAL)
def test_the_cheats_are_real(name: str) -> None:
    """The attacks score 1 if tests run beside the tested code, as is common."""
    harness = (
        "import sys\ncode, *tests = sys.argv[1:]\nspace = {}\nexec(code, space)\n"
        "for test in tests:\n    exec(test, space)\nprint('passed')"
    )
    call = [sys.executable, "-c", harness, ATTACKS[name], *TASK.data["tests"]]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("passed\n", 0), done.stderr[-500:]


def test_grading_leaves_nothing_in_the_episode(env: PythonEnv) -> None:
    """Arguments of the tests reach the function while it is graded. The episode finds them neither
    in its variables nor in its files."""
    spy = (
        "seen = []\n"
        "def double(n):\n"
        "    seen.append(n)\n"
        "    with open('/tmp/seen', 'a') as f:\n"
        "        f.write(str(n))\n"
        "    return 2 * n\n"
    )
    assert scored(env, spy).value == 1.0
    observation, *_ = env.step("import os; print(seen, os.path.exists('/tmp/seen'))")
    assert observation.strip() == "[] False"


def test_a_function_that_is_right_only_once_is_not_right(env: PythonEnv) -> None:
    """The tests of a task run one after another in one interpreter."""
    once = "calls = []\ndef double(n):\n    calls.append(n)\n    return 2 * n // len(calls)"
    assert scored(env, once).value < 1.0


def test_a_test_that_never_ends_costs_no_other(env: PythonEnv) -> None:
    score = scored(env, "def double(n):\n    while n == 20: pass\n    return 2 * n", 4.0)
    assert score.value == pytest.approx(2 / 3)
    assert list(score.details["failed"]) == [1]


@pytest.mark.parametrize("answer", ["eval", "__import__", "no_such", "2 * 3", "double; 1", "sys"])
def test_an_answer_that_is_not_a_solution(env: PythonEnv, answer: str) -> None:
    env.reset(options={"task": 0})
    env.step("import sys\ndef double(n): return None")
    _, reward, terminated, _, _ = env.submit(answer)
    assert (terminated, reward) == (True, 0.0)


JUDGE = """
import resource, sys
from intercode.environments.python.grading import _AssertionCheck
from intercode.environments.python.assertions import split_assertion
from intercode_sandbox.long_output import Collector
from intercode.sessions.python.guest.values import Encoder

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

class Agent:
    def request(self, *args, **kwargs):
        return "[" + ",".join(map(encode, eval(sys.argv[2]))) + "]"

def encode(value):
    if isinstance(value, range):
        return '["r",%d,%d,%d]' % (value.start, value.stop, value.step)
    return Encoder().encode(value)

print(_AssertionCheck(split_assertion(sys.argv[1], "f"), [])(Agent(), Collector(0), 1.0) != "")
"""


@pytest.mark.namespace_only("needs no sandbox")
@pytest.mark.parametrize(
    ("test", "values"),
    [
        ("assert sum(f(1)) < 5", "[range(10**12)]"),
        ("assert max(f(1)) < 5", "[range(10**12)]"),
        ("assert 'x' in f(1)", "[range(10**12)]"),
        ("assert sorted(f(1)) < [2]", "[range(10**10)]"),
        ("assert f(1) % 2 < 1", "['%9999999999d']"),
        ("assert f(1) * f(2) < 1", "[[0] * 100000, 100000]"),
        ("assert f(1).join(f(2)) > 'a'", "['a' * 100000, ['b'] * 100000]"),
        ("assert f(1) ** f(2) > 1", "[10**19, 10**9]"),
        ("assert str(f(1)) < 'a'", "[10**5000]"),
    ],
)
def test_the_judge_is_neither_slowed_nor_filled(test: str, values: str) -> None:
    """The judge works on values from the agent's process. It runs in a process of its own here,
    because a busy judge cannot be interrupted."""
    call: list[Any] = [sys.executable, "-c", JUDGE, test, values]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr[-500:]


def test_no_process_survives_close() -> None:
    """The search runs outside the sandbox, for a number that is in no other command line."""
    mark = f"{os.getpid()}{time.monotonic_ns() % 10**6}"
    spawn = (
        "import os, subprocess\n"
        "def double(n):\n"
        f"    subprocess.Popen(['sleep', '9{mark}'], start_new_session=True)\n"
        "    if os.fork() == 0:\n"
        f"        os.execvp('sleep', ['sleep', '9{mark}'])\n"
        "double(1)"
    )
    with PythonEnv(MINE, timeout=20.0) as env:
        assert scored(env, spawn, 2.0).value == 0.0
        assert _running(mark)
    eventually(lambda: not _running(mark), "the processes end")


def _running(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"sleep\0{9}{mark}".encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found
