"""Python episodes in real sandboxes: rewards of different solutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

import intercode
from intercode.core.errors import DataError, GoldError
from intercode.core.types import Dataset
from intercode.environments.python.env import PythonEnv
from intercode.evaluation import check_env
from support.python_tasks import ADD, ALL, NODE, shown, task
from support.sandboxes import PATIENCE
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def env() -> Iterator[PythonEnv]:
    with PythonEnv(ALL, timeout=20.0) as opened:
        yield opened


@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
def test_it_is_an_environment(profile: str) -> None:
    settings: dict[str, Any] = {"profile": profile}
    check_env(PythonEnv(Dataset("own", "python", (ADD, NODE)), **settings))


def test_gymnasium_has_it() -> None:
    env = gym.make("intercode/Python-v1", dataset=ALL)
    env.reset(options={"task": "own/add"})
    env.step(ADD.gold)
    assert env.step("submit")[1] == 1.0
    env.close()


@pytest.mark.parametrize("i", range(len(ALL)))
def test_the_gold_scores_1_and_doing_nothing_0(env: PythonEnv, i: int) -> None:
    env.reset(options={"task": i})
    assert env.score().value == 0.0
    env.step(str(ALL.tasks[i].gold))
    assert env.score().value == 1.0
    assert env.submit()[1] == 1.0


def test_the_reward_is_the_share_of_tests(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("def add(a, b): return 3")
    score = env.score()
    assert score.value == 0.5
    assert score.details["failed"] == {1: "AssertionError"}
    env.step("def add(a, b): raise KeyError(a)")
    assert env.score().details["failed"] == {0: "KeyError: 1", 1: "KeyError: 'a'"}
    env.step("def add(a, b): return a + b")
    assert env.score().value == 1.0


def test_tests_run_on_the_episode_s_final_definitions(env: PythonEnv) -> None:
    """Definitions in several actions, before an exception, in an interrupted action; a helper."""
    env.reset(options={"task": 0})
    env.step("import operator\ndef helper(a, b): return operator.add(a, b)\n1 / 0")
    env.step("add = helper")
    assert env.score().value == 1.0
    env.timeout, before = 3.0, env.timeout
    env.step("def add(a, b): return 3\nwhile True: pass")
    env.timeout = before
    assert env.score().value == 0.5
    env.step("import os\ndef add(a, b): return a + b\nos._exit(1)")
    assert env.score().value == 0.5


def test_only_the_printed_output_of_a_program_counts(env: PythonEnv) -> None:
    """Only what it prints counts, not the value of its last line. Its name is ``__main__``."""
    env.reset(options={"task": "own/program"})
    env.step(
        "import sys\nif __name__ == '__main__':\n"
        "    n, numbers = sys.stdin.read().split('\\n')[:2]\n"
        "sys.stdout.write(f'{sum(map(int, numbers.split()))} {n}\\n')"
    )
    assert env.score().value == 1.0


PRINTS = {
    "to standard error": "import sys\nprint('debug', file=sys.stderr)\nprint(6)",
    "to standard error's own object": "import sys\nsys.__stderr__.write('debug')\nprint(6)",
    "a warning of the compiler": "x = 6\nif x is 6: print(x)\nelse: print(6)",
    "a warning": "import warnings\nwarnings.warn('old')\nprint(6)",
    "a log": "import logging\nlogging.warning('six')\nprint(6)",
    "a child's standard error": "import os\nos.system('echo debug >&2')\nprint(6)",
    "a message at its end": "import sys\nprint(6)\nsys.exit('done')",
    "and ends its process": "import os, sys\nprint(6)\nsys.stdout.flush()\nos._exit(0)",
    "and kills its process": "import os\nprint(6, flush=True)\nos.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("program", PRINTS.values(), ids=PRINTS)
def test_a_program_is_right_whatever_it_writes_beside_its_output(program: str) -> None:
    six = task("six", "print(6)", {"input": "", "output": "6\n"}, mode="stdin")
    with PythonEnv(Dataset("six", "python", (six,))) as made:
        made.reset(options={"task": 0})
        made.step(program)
        assert made.score().value == 1.0
        made.step(program.replace("6", "7"))
        assert made.score().value == 0.0


def test_a_program_may_print_megabytes_and_no_more_than_twice_what_is_expected() -> None:
    text = "ab " * 500_000
    long = task("long", "x", {"input": "", "output": text}, mode="stdin")
    with PythonEnv(Dataset("long", "python", (long,))) as made:
        made.reset(options={"task": 0})
        made.step("print('ab ' * 500_000)")
        assert made.score().value == 1.0
        made.step("for _ in range(3): print('ab ' * 500_000)")
        score = made.score()
        assert score.value == 0.0 and "more than 4048576 bytes" in score.details["failed"][0]


def test_a_program_that_raises_has_failed(env: PythonEnv) -> None:
    env.reset(options={"task": "own/program"})
    env.step("print(1 / 0)")
    _, agent, _ = env.episode.score_with_states()
    assert agent is not None and "ZeroDivisionError" in (agent.tests[0].output or "")


def test_sandboxes_are_recycled(env: PythonEnv) -> None:
    with PythonEnv(ALL, recycle=True) as recycled:
        for n in range(6):
            recycled.reset(options={"task": 0})
            assert shown(recycled, "import os; os.listdir('/tmp')") == "[]\n"
            recycled.step(f"x = {n}; open('/tmp/f', 'w').close()")
            with recycled.snapshot() as moment:
                recycled.step("x = 9")
                recycled.restore(moment)
                assert shown(recycled, "x, os.listdir('/tmp')") == f"({n}, ['f'])\n"
            recycled.step(ADD.gold)
            assert recycled.submit()[1] == 1.0


def test_submit_with_a_name(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("def plus(a, b): return a + b")
    assert env.score().value == 0.0
    assert env.step("submit plus")[1] == 1.0


def test_time_is_measured_test_by_test() -> None:
    with PythonEnv(ALL, test_timeout=PATIENCE) as env:
        env.reset(options={"task": 0})
        loop = "    if a == 1: print('loops', flush=True)\n    while a == 1: pass\n"
        env.step(f"def add(a, b):\n{loop}    return a + b")
        with limit_at("loops"):
            score = env.score()
        assert score.value == 0.5
        assert score.details["failed"] == {0: "over the time limit of 120 s"}


def test_a_test_that_ends_the_interpreter_is_followed_by_the_next_one(env: PythonEnv) -> None:
    env.reset(options={"task": 0})
    env.step("import os\ndef add(a, b): return os._exit(0) if a == 1 else a + b")
    assert env.score().value == 0.5
    env.step("def add(a, b): return exit() if a == 1 else a + b")
    assert env.score().details["failed"] == {0: "SystemExit: None"}


def test_a_test_sees_the_changes_of_the_test_before(env: PythonEnv) -> None:
    """Variables carry over as in consecutive assert statements; scoring again starts afresh."""
    env.reset(options={"task": 0})
    env.step("seen = []\ndef add(a, b):\n    seen.append(a)\n    return (a + b) * (len(seen) < 2)")
    assert env.score().value == 0.5
    env.step("x = 1")
    assert env.score().value == 0.5


def test_a_program_starts_again_for_each_test(env: PythonEnv) -> None:
    env.reset(options={"task": "own/program"})
    env.step(
        "try: print(seen)\nexcept NameError: print('3 2' if input() == '2' else '7 1')\nseen = 1"
    )
    assert env.score().value == 1.0


def test_a_task_without_tests_or_with_an_odd_one_is_named() -> None:
    odd = Dataset("odd", "python", (task("odd", "x = 1", 3, entry="f"),))
    with pytest.raises(DataError, match="odd, own/odd: a test has exactly 'input' and 'output'"):
        PythonEnv(odd)
    for tests in ((), ("assert 1 == 1",)):
        odd = Dataset("odd", "python", (task("odd", "x = 1", *tests, entry="f"),))
        with PythonEnv(odd) as env:
            env.reset(options={"task": 0})
            with pytest.raises(GoldError):
                env.score()


def test_make_creates_it_by_name() -> None:
    env = intercode.make("python", ALL)
    assert isinstance(env, PythonEnv)
    assert env.result_metadata()["scoring"] == "python-3"
    env.close()


def test_an_interpreter_that_can_start_no_process_stays_and_says_so() -> None:
    """Its threads, which its end would wait for, use up the limit on processes."""
    fill = (
        "def add(a, b): return a + b\nimport threading\ntry:\n    while True:\n"
        "        threading.Thread(target=threading.Event().wait).start()\n"
        "except RuntimeError: print('full')"
    )
    with PythonEnv(Dataset("own", "python", (ADD,)), timeout=20.0, limits={"processes": 20}) as env:
        env.reset()
        assert "full\n" in env.step(fill)[0]
        assert env.step("add(1, 2)")[0] == "3\n"
        failed = env.score().details["failed"].values()
        assert [error.partition(":")[0] for error in failed] == ["no process can be started"] * 2


@pytest.mark.parametrize("free", range(4))
def test_an_interpreter_with_few_free_processes_goes_on(free: int) -> None:
    """A fork for a backup starts two processes, one after the other."""
    jobs = (
        "import subprocess\njobs = []\ntry:\n"
        "    while True: jobs.append(subprocess.Popen(['sleep', '100']))\n"
        "except OSError: print('full')"
    )
    end = f"for job in jobs[:{free}]: job.kill(); job.wait()"
    with PythonEnv(Dataset("own", "python", (ADD,)), timeout=20.0, limits={"processes": 20}) as env:
        env.reset()
        env.step("x = 1")
        assert "full\n" in env.step(jobs)[0]
        env.step(f"{end}\nx = 2")
        for _ in range(3):
            text = env.step("print(x); eval('True')")[0]
            assert text.startswith("2\nTrue\n") and "ended" not in text
