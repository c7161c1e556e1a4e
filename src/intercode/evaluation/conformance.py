"""What every sandbox, session and environment must do, as checks that anybody can run on theirs.

A test of a new back end or a new environment is then two lines. Each check raises AssertionError
with a sentence that says what does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.core.errors import EnvironmentStateError, InfrastructureError, UsageError

if TYPE_CHECKING:
    from intercode.core.types import Dataset
    from intercode.environments.base.env import InterCodeEnv
    from intercode.sandbox.contract import Sandbox
    from intercode.sessions.base import Session

_TIMEOUT = 60.0  # seconds for what takes milliseconds on an idle machine
_FORBIDDEN_INFO_KEYS = (
    "gold",
    "golds",
    "also",
    "flag",
    "solution",
    "time",
    "seconds",
    "date",
    "pid",
)


def require(holds: bool, sentence: str) -> None:
    """Raise AssertionError with the sentence unless it holds (also under ``python -O``)."""
    if not holds:
        raise AssertionError(sentence)


def expect_error(error: type[BaseException], work: Callable[[], Any], what: str) -> str:
    """The message of the error that ``work`` raises. AssertionError for another or none."""
    try:
        work()
    except error as e:
        return str(e)
    except Exception as e:
        raise AssertionError(f"{what} raises {e!r} instead of {error.__name__}") from e
    raise AssertionError(f"{what} does not raise {error.__name__}")


# ------------------------------------------------------------------ sandboxes
def check_sandbox(open_sandbox: Callable[[], Sandbox]) -> None:
    """Check a sandbox against ``sandboxes.base.Sandbox``. ``open_one`` opens a box with a shell."""
    with open_sandbox() as box:
        _check_programs(box)
        _check_files(box)
        _check_clone(box)
    with open_sandbox() as box, open_sandbox() as other:
        box.write_file("/tmp/mine", b"1")
        expect_error(FileNotFoundError, lambda: other.read_file("/tmp/mine"), "reading another box")
    box.close()
    expect_error(InfrastructureError, lambda: box.run(["true"]), "a command in a closed box")


def _check_programs(box: Sandbox) -> None:
    code = "cat; echo out; echo err >&2; exit 3"
    result = box.run(["/bin/sh", "-c", code], stdin=b"in\n", timeout=_TIMEOUT)
    require(result.output == "in\nout\nerr\n", f"output comes out of order: {result.output!r}")
    require(result.exit_code == 3, f"`exit 3` gives the status {result.exit_code}")
    require(not result.timed_out, "a command that ends is said to have timed out")
    result = box.run(["/bin/sh", "-c", r"printf '\377'"], timeout=_TIMEOUT)
    require(result.ok and result.output != "", "output that is no UTF-8 is lost")
    result = box.run(["/bin/sh", "-c", "echo a; sleep 600 & sleep 600"], timeout=1.0)
    require(result.timed_out and result.exit_code is None, f"no time-out: {result}")
    require(result.output == "a\n", f"output before the time-out is lost: {result.output!r}")
    expect_error(OSError, lambda: box.run(["/no/such/program"]), "a program that is not there")
    result = box.run(["/bin/sh", "-c", "while :; do echo 0123456789; done"], timeout=1.0)
    longest = box.spec.limits.output + 200
    require(len(result.output) <= longest, f"{len(result.output)} characters pass the limit")
    require(
        result.omitted_bytes > 0 or len(result.output) < longest, "output is cut and `cut` is 0"
    )


def _check_files(box: Sandbox) -> None:
    require(not box.changes(), f"a fresh box has changes: {sorted(box.changes())}")
    box.write_file("/tmp/a b/c", b"\0\xff", mode=0o640)
    require(box.read_file("/tmp/a b/c") == b"\0\xff", "a file does not read as it was written")
    changes = box.changes()
    require({"/tmp/a b", "/tmp/a b/c"} <= changes.keys(), f"changes() lacks a file: {changes}")
    entry = changes["/tmp/a b/c"]
    require((entry.kind, entry.mode, entry.size) == ("file", 0o640, 2), f"wrong entry: {entry}")
    box.run(["/bin/sh", "-c", "ln -s /no /tmp/l; mkfifo /tmp/p; mkdir /tmp/d"], timeout=_TIMEOUT)
    expect_error(FileNotFoundError, lambda: box.read_file("/tmp/l"), "reading a dangling link")
    expect_error(IsADirectoryError, lambda: box.read_file("/tmp/d"), "reading a directory")
    expect_error(OSError, lambda: box.read_file("/tmp/p"), "reading a FIFO")
    kinds = {path: entry.kind for path, entry in box.changes().items()}
    found = [kinds.get(f"/tmp/{name}") for name in "lpd"]
    require(found == ["link", "fifo", "dir"], f"wrong kinds of changes: {found}")
    box.run(["/bin/sh", "-c", "rm -r /tmp/*"], timeout=_TIMEOUT)
    require(not box.changes(), f"what was made and removed remains: {sorted(box.changes())}")


def _check_clone(box: Sandbox) -> None:
    box.write_file("/tmp/before", b"1")
    with box.clone() as copy:
        require(copy.changes() == box.changes(), "a clone differs from its parent")
        copy.write_file("/tmp/before", b"2")
        box.write_file("/tmp/after", b"3")
        require(box.read_file("/tmp/before") == b"1", "a clone writes into its parent")
        expect_error(
            FileNotFoundError, lambda: copy.read_file("/tmp/after"), "a clone's parent's file"
        )


# ------------------------------------------------------------------- sessions
def check_session(open_session: Callable[[], Session], show: str = "echo {}") -> None:
    """Check a session against ``sessions.base.Session``.

    ``show`` is code that prints the number put into it, a line by itself.
    """
    with closing(open_session()) as session:
        for number in (1, 2):
            result = session.run(show.format(number), _TIMEOUT)
            require(result.ok, f"{show.format(number)!r} fails: {result}")
            require(result.output == f"{number}\n", f"prints {result.output!r}, not {number}")
        require(session.cwd.startswith("/"), f"cwd is no absolute path: {session.cwd!r}")
        for odd in ("'", '"', "((", "\\", "\0", "# ä 🙂", "", "x" * 50_000):
            session.run(odd, 5.0)
            result = session.run(show.format(3), _TIMEOUT)
            require(result.output == "3\n", f"after {odd[:20]!r} it prints {result.output!r}")


# --------------------------------------------------------------- environments
def check_env(env: InterCodeEnv) -> None:
    """Check an environment: Gymnasium's own ``check_env``, unseeded and seeded, and our contract.

    The environment needs a task with a gold. It is closed in the end.
    """
    try:
        _check_gymnasium(env)
        _check_tasks(env)
        _check_scoring(env)
        _check_order(env)
        _check_turns(env)
    finally:
        env.close()
    env.close()
    expect_error(EnvironmentStateError, lambda: env.step("true"), "step after close")
    expect_error(EnvironmentStateError, env.score, "score after close")
    env.reset()
    env.close()


def _check_gymnasium(env: InterCodeEnv) -> None:
    from gymnasium.utils.env_checker import check_env as gymnasium_check

    for seed in (None, 7):
        try:
            env.reset(seed=seed)
            env.action_space.seed(seed)
            gymnasium_check(env, skip_render_check=env.spec is None)
        except (TypeError, ValueError, AttributeError) as e:
            raise AssertionError(f"Gymnasium's check with seed {seed}: {e}") from e
    first, second = (env.reset(seed=3) for _ in "ab")
    require(first == second, "two resets with one seed differ")


def _check_tasks(env: InterCodeEnv) -> None:
    tasks = env.dataset.tasks
    last = len(tasks) - 1
    for choice, index in ((0, 0), (last, last), (tasks[0].id, 0), (tasks[last].id, last)):
        query, info = env.reset(options={"task": choice})
        require(info["index"] == index, f"task {choice!r} gives the position {info['index']}")
        require(info["task"] == env.task.id == tasks[index].id, f"task {choice!r} gives {info}")
        require(tasks[index].query.startswith(query), "the first observation is not the query")
        _check_info(env, info)
    for wrong in (len(tasks), -1, 0.5, True, ["x"]):
        what = f"reset with task {wrong!r}"
        expect_error(UsageError, lambda w=wrong: env.reset(options={"task": w}), what)  # type: ignore[misc]
    typo = tasks[0].id + "x"
    message = expect_error(UsageError, lambda: env.reset(options={"task": typo}), "an unknown task")
    require(tasks[0].id in message, f"the error for {typo!r} gives no near name: {message}")


def _check_scoring(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    first = env.score()
    require(first == env.score(), "score() twice gives two results")
    _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    _check_info(env, info)
    require(not terminated and not truncated, "the first action ends the episode")
    require(reward == 0.0, f"an action that does not submit gets the reward {reward}")
    expected = env.score()
    for _ in range(2):
        require(env.score() == expected, "score() changes what it scores")
    observation, reward, terminated, truncated, info = env.submit()
    require(terminated and not truncated, "submit does not end the episode")
    require(reward == expected.value, f"submit gives {reward}, score() gave {expected.value}")
    require(info["parts"] == dict(expected.parts), "submit's info lacks the parts of the reward")
    require(observation in env.observation_space, "submit's observation is not in the space")
    _check_info(env, info)
    env.reset(options={"task": 0})
    require(env.score() == first, "a new episode scores unlike the one before it")
    _, reward, terminated, _, info = env.step("  submit  some words ")
    if info.get("refused"):
        require(not terminated and reward == 0.0, "a refused answer ends the episode, or pays")
        env.score()
        terminated = env.submit()[2]
    require(terminated, "the action `submit some words` does not end the episode")


def _check_order(env: InterCodeEnv) -> None:
    expect_error(EnvironmentStateError, lambda: env.step("true"), "step after submit")
    expect_error(EnvironmentStateError, env.submit, "submit after submit")
    env.reset()
    for wrong in (None, 1, b"true"):
        expect_error(UsageError, lambda w=wrong: env.step(w), f"the action {wrong!r}")  # type: ignore[misc]
    *_, terminated, _, _ = env.step("submitted")
    require(not terminated, "`submitted` counts as `submit`")


def _check_turns(env: InterCodeEnv) -> None:
    before, env.max_turns = env.max_turns, 2
    try:
        env.reset(options={"task": 0})
        ends = [env.step(env.action_space.sample())[2:4] for _ in range(2)]
        require(ends == [(False, False), (False, True)], f"max_turns=2 ends like this: {ends}")
        expect_error(EnvironmentStateError, lambda: env.step("true"), "step after the turn limit")
        env.score()
    finally:
        env.max_turns = before


def _check_info(env: InterCodeEnv, info: dict[str, Any]) -> None:
    for key in info:
        require(key not in _FORBIDDEN_INFO_KEYS, f"info tells the agent {key!r}")
    try:
        text = json.dumps(info)
    except TypeError as e:
        raise AssertionError(f"info holds what JSON cannot: {e}") from e
    for gold in env.task.golds:
        inside = len(gold) > len("ls -l") and json.dumps(gold)[1:-1] in text
        require(not inside, f"info holds the gold of {env.task.id}")


# ------------------------------------------------------------------- datasets
def check_dataset(dataset: str | Path | Dataset, **settings: Any) -> None:
    """Check the tasks of a dataset as ``intercode check`` does: every gold scores 1 and always does
    the same, doing nothing does not, nothing of a gold can be read from inside.

    ``dataset``: a name, a file, a task package's directory or, for a test that lies in it, the
    test's own ``__file__``. ``settings`` are those of ``runner.check.check``.
    """
    from intercode.core.types import Dataset
    from intercode.evaluation.check.dataset import check

    if not isinstance(dataset, Dataset):
        place = Path(dataset)
        dataset = str(place.resolve().parent if place.suffix == ".py" else dataset)
    report = check(dataset, **settings)
    told = "; ".join(f"{f.task}: {f.kind}: {f.detail}" for f in report.faults)
    require(report.sound, f"{len(report.unsound)} of {report.tasks} tasks are not sound: {told}")
