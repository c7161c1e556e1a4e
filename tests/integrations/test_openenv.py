"""Environments served by OpenEnv's protocol: its own client, its validator, and our client."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")


import intercode
from intercode import datasets
from intercode.agents import open_agent
from intercode.core.errors import EnvironmentStateError, SandboxLostError, UsageError
from intercode.evaluation.rollout import rollout
from intercode.integrations.openenv.client import RemoteEnv
from intercode.integrations.openenv.imports import without_gradio
from intercode.integrations.openenv.server import CodeAction, ServedEnv
from intercode_sandbox.valid_text import has_surrogates
from support.sandboxes import eventually, process_runs
from support.serving import serving
from support.snippets import read_snippets

with without_gradio():
    from openenv.core.generic_client import GenericEnvClient

pytestmark = pytest.mark.sandbox
ENVIRONMENTS = ("bash", "sql", "python", "ctf")


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with serving("-m", "intercode", "serve", request.param, "--sessions", "4") as url:
        yield request.param, url


@pytest.fixture(scope="module")
def bash() -> Iterator[str]:
    with serving("-m", "intercode", "serve", "bash", "--set", "timeout=5") as url:
        yield url


def test_openenvs_own_client_plays_episodes(served: tuple[str, str]) -> None:
    environment, url = served
    task = datasets.load("starter", environment).tasks[1]
    with GenericEnvClient(base_url=url).sync() as client:
        begun = client.reset(seed=1, task=task.id)
        assert begun.observation["text"].strip() and not begun.done
        task_seed = client.state()["task_metadata"]["task_seed"]
        shown = str(begun.observation) + str(client.step({"code": "1"}).observation)
        assert task.id not in shown and "task_seed" not in shown and "tags" not in shown
        with intercode.make(environment) as env:
            env.reset(seed=task_seed if task_seed is not None else 1, options={"task": task.id})
            solution, answers = env.task.solution or "", env.expects_answer
        ran = client.step({"code": solution})
        answer = f" {ran.observation['text'].strip()}" if answers else ""
        done = client.step({"code": f"submit{answer}"})
        assert done.done and done.reward == 1.0
        assert client.state()["task"] == task.id


@pytest.mark.parametrize("agent", ["gold", "noop"])
def test_our_agents_play_on_a_server_as_locally(served: tuple[str, str], agent: str) -> None:
    environment, url = served
    with intercode.make(environment) as env:
        env.reset(seed=7, options={"task": 2})
        golds = {env.task.id: (env.task.solution or "",)}
        here = rollout(open_agent(agent, golds=golds), env, 2, seed=7)
    with RemoteEnv(url) as remote:
        there = rollout(open_agent(agent, golds=golds), remote, 2, seed=7)  # type: ignore[arg-type]
    assert [(s.action, s.observation, s.reward) for s in there.steps] == [
        (s.action, s.observation, s.reward) for s in here.steps
    ]
    assert (there.task, there.query, there.end, there.seed) == (
        here.task,
        here.query,
        here.end,
        here.seed,
    )


def test_sessions_are_independent_and_limited(served: tuple[str, str]) -> None:
    environment, url = served
    if environment != "bash":
        return
    clients = [RemoteEnv(url) for _ in range(4)]
    try:
        for i, client in enumerate(clients):
            client.reset(options={"task": i})
            client.step(f"echo {i} > /tmp/mine")
        assert [c.step("cat /tmp/mine")[0] for c in clients] == ["0\n", "1\n", "2\n", "3\n"]
        with pytest.raises((UsageError, SandboxLostError)):
            RemoteEnv(url).reset()
    finally:
        for client in clients:
            client.close()


def test_the_validator_of_openenv_is_content(bash: str) -> None:
    command = [sys.executable, "-m", "openenv.cli", "validate", "--url", bash, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report.get("passed", report.get("ok", True)) is not False


def test_an_environment_is_pickled_before_its_episode(bash: str) -> None:
    with RemoteEnv(bash, timeout=5.0) as remote, pickle.loads(pickle.dumps(remote)) as copy:
        assert copy.timeout == 5.0 and copy.reset(options={"task": 0})[0]
        with pytest.raises(UsageError, match=r"before reset\(\)"):
            pickle.dumps(copy)


def test_step_before_reset_is_refused(bash: str) -> None:
    with (
        GenericEnvClient(base_url=bash).sync() as client,
        pytest.raises(RuntimeError, match="step before reset"),
    ):
        client.step({"code": "pwd"})
    with RemoteEnv(bash) as remote, pytest.raises(EnvironmentStateError):
        remote.step("pwd")


def test_a_lost_connection_is_reported(bash: str) -> None:
    """OpenEnv's client reconnects by itself, to a new session without a reset."""
    with GenericEnvClient(base_url=bash, message_timeout_s=4.0).sync() as client:
        client.reset(task=0)
        client.step({"code": "touch /tmp/here"})
        with pytest.raises(TimeoutError):
            client.step({"code": "sleep 8"})
        with pytest.raises(RuntimeError, match="step before reset"):
            client.step({"code": "ls /tmp/here"})
    with RemoteEnv(bash) as remote:
        remote.reset(options={"task": 0})
        remote._client.disconnect()
        with pytest.raises(SandboxLostError, match="step before reset"):
            remote.step("pwd")
        remote.reset(options={"task": 0})
        assert remote.step("echo on")[0] == "on\n"


def test_an_ended_session_begins_no_episode() -> None:
    served = ServedEnv(lambda: intercode.make("sql"))
    served.close()  # as an idle session is, before its first episode
    with pytest.raises(SandboxLostError, match="the server has ended this session"):
        served.reset(task=0)


def test_a_server_that_ends_loses_the_episode() -> None:
    with serving("-m", "intercode", "serve", "bash") as url:
        remote = RemoteEnv(url)
        remote.reset(options={"task": 0})
    with pytest.raises(SandboxLostError):
        remote.step("pwd")
    remote.close()


def test_a_field_that_an_action_does_not_have_is_named(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        client.reset(task=0)
        with pytest.raises(RuntimeError, match="fields code and metadata, not timeout_s"):
            client.step({"code": "pwd", "timeout_s": 1})
        with pytest.raises(RuntimeError, match="timeout_s is 'x'"):
            client.step({"code": "pwd", "metadata": {"timeout_s": "x"}})
        assert client.step({"code": "pwd", "metadata": {"timeout_s": 3}}).observation["text"]


def test_without_openenv_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, RemoteEnv.__module__)
    monkeypatch.setitem(sys.modules, "openenv.core.generic_client", None)
    with pytest.raises(ImportError, match=r"pip install 'intercode-gym\[openenv\]'"):
        importlib.import_module(RemoteEnv.__module__)


def test_an_unknown_task_is_an_error(bash: str) -> None:
    with RemoteEnv(bash) as remote:
        with pytest.raises(UsageError, match="out of range"):
            remote.reset(options={"task": 10_000})
        with pytest.raises(UsageError, match="reset takes"):
            remote.reset(options={"tusk": 1})


def test_values_that_a_trainer_read_as_json_are_code(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        client.reset(task=0)
        for value in (True, 42, ["a"]):
            info = client.step({"code": value}).observation["info"]
            assert info["exit_code"] == (0 if value is True else 127)


def test_no_action_ends_the_session_by_its_length_or_type(bash: str) -> None:
    """Whoever chooses actions could otherwise lose an episode that goes wrong, and begin again."""
    with RemoteEnv(bash) as remote:
        remote.reset(options={"task": 0})
        assert remote.step("x=kept")[0] == ""
        for long in ("x" * 4_194_305, "\0" * 40_000_000, "\U0001f600" * 40_000_000):
            with pytest.raises(UsageError, match="more than 4,194,304, and was not sent"):
                remote.step(long)
            with pytest.raises(UsageError, match="was not sent"):
                remote.submit(long)  # no prefix of it is the answer
        for wrong in (None, 3, b"ls", ["ls"], {"code": "ls"}):
            with pytest.raises(UsageError, match="an action is a str of code"):
                remote.step(wrong)  # type: ignore[arg-type]
        assert remote.step("echo $x")[0] == "kept\n"
        with pytest.raises(UsageError, match="options are a dict"):
            remote.reset(options=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment", "code", "seen"),
    [("bash", r"touch $'/root/\xfe'", ""), ("sql", "echo '\ud800'", "\ufffd")],
)
def test_names_and_text_that_are_not_unicode_are_sent(
    environment: str, code: str, seen: str
) -> None:
    """The client would send no lone surrogate, so that the server is called here."""
    served = ServedEnv(lambda: intercode.make(environment))
    try:
        served.reset(seed=1)
        observation = served.step(CodeAction(code=code))
        sent = json.loads(observation.model_dump_json())
        assert seen in sent["text"] and not has_surrogates(str(sent))
        assert environment == "sql" or sent["info"]["changes"] == ["/root/\ufffd"]
    finally:
        served.close()


def test_a_server_ends_while_actions_run() -> None:
    command = "sleep 1234.5678"
    with ThreadPoolExecutor() as threads:
        with serving("-m", "intercode", "serve", "bash", "--set", "timeout=3000") as url:
            remote = RemoteEnv(url)
            remote.reset(options={"task": 0})
            step = threads.submit(remote.step, command)
            eventually(lambda: process_runs(command), "the action runs")
        with pytest.raises(SandboxLostError):  # the server has ended, in the time it is given
            step.result()


def test_there_is_no_web_page_unless_it_is_enabled(bash: str) -> None:
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{bash}/web/", timeout=60)


@pytest.mark.slow
def test_the_web_page_is_shown_if_it_is_enabled() -> None:
    enabled = {**os.environ, "ENABLE_WEB_INTERFACE": "true"}
    with (
        serving("-m", "intercode", "serve", "bash", env=enabled) as url,
        urllib.request.urlopen(f"{url}/web/", timeout=60) as answer,
    ):
        assert answer.status == 200


@pytest.mark.slow
def test_the_client_and_the_server_do_without_gradio() -> None:
    code = "import sys, intercode.integrations.openenv.client; print('gradio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("option", [(), ("--score-requests",)], ids=["default", "score requests"])
def test_a_score_request_is_not_rewarded(option: tuple[str, ...]) -> None:
    with (
        serving("-m", "intercode", "serve", "bash", "--max-turns", "3", *option) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(seed=1, task=0)
        answers = [client.step({"code": "", "metadata": {"request": "score"}}) for _ in range(20)]
        assert [answer.reward for answer in answers] == [0.0] * 20
        assert all("score" in answer.observation["info"] for answer in answers)
        assert [answer.done for answer in answers] == [not option] * 20
        assert client.state()["step_count"] == 0
        if not option:
            with pytest.raises(RuntimeError, match="reset begins another"):
                client.step({"code": "ls"})


@pytest.mark.parametrize("environment", ["bash", "python"])
def test_episodes_are_forked_and_restored(environment: str) -> None:
    write, read = {
        "bash": ("x=7; echo $x > /tmp/f", 'echo "$x $(cat /tmp/f)"; x=8; echo 8 > /tmp/f'),
        "python": ("x = [7]", "x.append(8); print(x)"),
    }[environment]
    served = ("-m", "intercode", "serve", environment, "--sessions", "3", "--snapshots", "1")
    with serving(*served) as url, RemoteEnv(url) as env:
        env.reset(seed=1, options={"task": 0})
        env.step(write)
        forks = env.fork(2)
        try:
            printed = [branch.step(read)[0] for branch in (env, *forks)]
            assert len(set(printed)) == 1 and {b.task.id for b in forks} == {env.task.id}
            with pytest.raises((UsageError, SandboxLostError)):  # they count as sessions
                env.fork(1)
        finally:
            for branch in forks:
                branch.close()
        snapshot = env.snapshot()
        with pytest.raises(UsageError, match=r"may hold 1: close one.*--snapshots"):
            env.snapshot()
        after = env.step(read)[0]
        env.restore(snapshot)
        assert env.step(read)[0] == after != printed[0]
        env.submit()
        env.restore(snapshot)  # also after the end of the episode
        snapshot.close()
        with pytest.raises(UsageError, match="no snapshot"):
            env.restore(snapshot)


def test_a_snapshot_ends_with_its_session_and_restores_in_others(bash: str) -> None:
    with RemoteEnv(bash) as other:
        with RemoteEnv(bash) as env:
            env.reset(options={"task": 0})
            env.step("echo kept > /tmp/f")
            snapshot = env.snapshot()
            other.restore(snapshot)
            assert other.step("cat /tmp/f")[0] == "kept\n"
        with pytest.raises(UsageError, match="the session that took it has ended"):
            eventually_refused(other, snapshot)
        with pytest.raises(UsageError, match="give reset nothing but its id"):
            other.reset(options={"snapshot": snapshot.id, "task": 0})


def eventually_refused(env: RemoteEnv, snapshot: Any) -> None:
    """Restore until the server has noticed that the session of the snapshot has ended."""
    for _ in range(600):
        env.restore(snapshot)
        time.sleep(0.1)


@pytest.mark.parametrize("attempt", range(5))
def test_a_session_is_closed_after_the_step_of_another_thread_has_ended(attempt: int) -> None:
    """Otherwise that thread goes on with descriptors that are closed, or are other files by then.

    Most attempts have found this.
    """
    from intercode.integrations.openenv.server import CodeAction, ServedEnv

    env = intercode.make("bash")
    served = ServedEnv(lambda: env)
    served.reset(task=attempt)
    with ThreadPoolExecutor(1) as other:
        step = other.submit(served.step, CodeAction(code="sleep 616"))
        eventually(lambda: "sleep" in " ".join(env.sandbox.processes()), "the step runs")
        served.close()
        with pytest.raises(SandboxLostError, match="the episode is lost"):
            step.result(60)


def test_the_examples_of_the_page_run(bash: str) -> None:
    """The test of snippets has no server."""
    page = (Path(__file__).parents[2] / "docs/openenv.md").read_text("utf-8")
    first, second = [s.body for s in read_snippets(page) if s.language == "python"]
    names: dict[str, Any] = {"url": bash, "token": None}
    exec(first.replace("http://sandbox-host:8000", bash), names)
    assert names["query"] and names["observation"] and not names["terminated"]
    exec(second, names)
    assert names["observations"] == ["1\n1\n"] * 3


def test_an_episode_begins_after_a_prefix(bash: str) -> None:
    with RemoteEnv(bash) as first, RemoteEnv(bash) as second:
        prefix = ["cd /tmp; echo $RANDOM > f; cat f"]
        texts = [e.reset(options={"task": 0, "prefix": prefix})[0] for e in (first, second)]
        assert texts[0] == texts[1] and texts[0].startswith(first.task.query)
        number = texts[0].splitlines()[-1]
        assert [e.step("cat f")[0] for e in (first, second)] == [f"{number}\n"] * 2
        with pytest.raises(UsageError, match="the prefix ends the episode"):
            first.reset(options={"task": 0, "prefix": ["submit"]})
