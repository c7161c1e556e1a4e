"""Environments served by OpenEnv's protocol, with its own client and validator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")


import intercode
from intercode import datasets
from intercode.agents import open_agent
from intercode.core.errors import SandboxLostError
from intercode.evaluation.rollout import rollout
from intercode.integrations.openenv.imports import without_gradio
from intercode.integrations.openenv.server import CodeAction, ServedEnv
from intercode_sandbox.valid_text import has_surrogates
from support.sandboxes import eventually, process_runs
from support.serving import serving
from support.snippets import read_snippets

with without_gradio():
    from openenv.core.generic_client import GenericEnvClient
    from websockets.exceptions import ConnectionClosed

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


def text(client: Any, code: str) -> str:
    """Run code in the session of a client, and return what it printed."""
    return client.step({"code": code}).observation["text"]


def ask(client: Any, request: str, **fields: str) -> dict[str, Any]:
    """Send a request that is no turn, and return the ``info`` of the answer."""
    action = {"code": "", "metadata": {"request": request, **fields}}
    return client.step(action).observation.get("info", {})


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
def test_actions_do_the_same_on_a_server_as_locally(served: tuple[str, str], agent: str) -> None:
    environment, url = served
    with intercode.make(environment) as env:
        env.reset(seed=7, options={"task": 2})
        golds = {env.task.id: (env.task.solution or "",)}
        here = rollout(open_agent(agent, golds=golds), env, 2, seed=7)
    with GenericEnvClient(base_url=url).sync() as client:
        assert client.reset(seed=7, task=2).observation["text"] == here.query
        assert client.state()["task"] == here.task
        there = [client.step({"code": s.action}) for s in here.steps]
    assert [(s.observation["text"], s.reward) for s in there] == [
        (s.observation, s.score_value or 0.0) for s in here.steps
    ]
    assert [s.done for s in there] == [False] * (len(there) - 1) + [True]


def test_sessions_are_independent_and_limited(served: tuple[str, str]) -> None:
    environment, url = served
    if environment != "bash":
        return
    with ExitStack() as stack:
        clients = [stack.enter_context(GenericEnvClient(base_url=url).sync()) for _ in range(4)]
        for i, client in enumerate(clients):
            client.reset(task=i)
            client.step({"code": f"echo {i} > /tmp/mine"})
        assert [text(client, "cat /tmp/mine") for client in clients] == ["0\n", "1\n", "2\n", "3\n"]
        with (
            GenericEnvClient(base_url=url).sync() as further,
            pytest.raises((RuntimeError, ConnectionClosed)),
        ):
            further.reset()


def test_the_validator_of_openenv_is_content(bash: str) -> None:
    command = [sys.executable, "-m", "openenv.cli", "validate", "--url", bash, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report.get("passed", report.get("ok", True)) is not False


def test_step_before_reset_is_refused(bash: str) -> None:
    with (
        GenericEnvClient(base_url=bash).sync() as client,
        pytest.raises(RuntimeError, match="step before reset"),
    ):
        client.step({"code": "pwd"})


def test_a_lost_connection_is_reported(bash: str) -> None:
    """OpenEnv's client reconnects by itself, to a new session without a reset."""
    with GenericEnvClient(base_url=bash, message_timeout_s=4.0).sync() as client:
        client.reset(task=0)
        client.step({"code": "touch /tmp/here"})
        with pytest.raises(TimeoutError):
            client.step({"code": "sleep 8"})
        with pytest.raises(RuntimeError, match="step before reset"):
            client.step({"code": "ls /tmp/here"})
        client.reset(task=0)
        assert text(client, "echo on") == "on\n"


def test_a_refused_reset_leaves_the_episode(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        client.reset(task=0)
        text(client, "NAME=ada")
        refused: tuple[dict[str, Any], ...] = ({"task": 9999}, {"snapshot": "no"}, {"prefix": 1})
        for options in refused:
            with pytest.raises(RuntimeError):
                client.reset(**options)
        assert text(client, "echo $NAME") == "ada\n" and client.state()["step_count"] == 2


def test_an_error_after_a_failed_reset_does_not_blame_the_connection(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        with pytest.raises(RuntimeError):
            client.reset(task=9999)
        with pytest.raises(RuntimeError, match="the last reset failed"):
            client.step({"code": "ls"})


def test_an_ended_session_begins_no_episode() -> None:
    served = ServedEnv(lambda: intercode.make("sql"))
    served.close()  # as an idle session is, before its first episode
    with pytest.raises(SandboxLostError, match="the server has ended this session"):
        served.reset(task=0)


def test_a_field_that_an_action_does_not_have_is_named(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        client.reset(task=0)
        with pytest.raises(RuntimeError, match="fields code and metadata, not timeout_s"):
            client.step({"code": "pwd", "timeout_s": 1})
        with pytest.raises(RuntimeError, match="timeout_s is 'x'"):
            client.step({"code": "pwd", "metadata": {"timeout_s": "x"}})
        assert client.step({"code": "pwd", "metadata": {"timeout_s": 3}}).observation["text"]


def test_an_unknown_task_is_an_error(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        with pytest.raises(RuntimeError, match="out of range"):
            client.reset(task=10_000)
        with pytest.raises(RuntimeError, match="reset takes"):
            client.reset(tusk=1)


def test_values_that_a_trainer_read_as_json_are_code(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as client:
        client.reset(task=0)
        for value in (True, 42, ["a"]):
            info = client.step({"code": value}).observation["info"]
            assert info["exit_code"] == (0 if value is True else 127)


def test_a_long_action_does_not_end_the_session(bash: str) -> None:
    """Whoever chooses actions could otherwise lose an episode that goes wrong, and begin again."""
    # a server that decodes a long action on a busy machine answers no ping meanwhile
    patient = GenericEnvClient(base_url=bash, websocket_ping_interval_s=None)
    with patient.sync() as client:
        client.reset(task=0)
        text(client, "echo kept > /tmp/f")
        for character in ("x", "\0", "\U0001f600"):
            client.step({"code": character * 4_194_304})
        assert text(client, "cat /tmp/f") == "kept\n"


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
            client = GenericEnvClient(base_url=url).sync()
            client.reset(task=0)
            step = threads.submit(client.step, {"code": command})
            eventually(lambda: process_runs(command), "the action runs")
        with pytest.raises(ConnectionClosed):  # the server has ended, in the time it is given
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
def test_the_server_does_without_gradio() -> None:
    code = "import sys, intercode.integrations.openenv.server; print('gradio' in sys.modules)"
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
    with serving(*served) as url, ExitStack() as stack:
        client, *others = (
            stack.enter_context(GenericEnvClient(base_url=url).sync()) for _ in range(3)
        )
        client.reset(seed=1, task=0)
        text(client, write)
        snapshot = ask(client, "snapshot")["snapshot"]
        with pytest.raises(RuntimeError, match=r"may hold 1: close one.*--snapshots"):
            ask(client, "snapshot")
        for other in others:
            other.reset(snapshot=snapshot)
        printed = [text(branch, read) for branch in (client, *others)]
        tasks = {branch.state()["task"] for branch in (client, *others)}
        assert len(set(printed)) == 1 == len(tasks)
        after = text(client, read)
        client.reset(snapshot=snapshot)
        assert text(client, read) == printed[0] != after
        text(client, "submit")
        client.reset(snapshot=snapshot)  # also after the end of the episode
        ask(client, "release", snapshot=snapshot)
        with pytest.raises(RuntimeError, match="no snapshot"):
            client.reset(snapshot=snapshot)


def test_a_snapshot_ends_with_its_session_and_restores_in_others(bash: str) -> None:
    with GenericEnvClient(base_url=bash).sync() as other:
        with GenericEnvClient(base_url=bash).sync() as client:
            client.reset(task=0)
            text(client, "echo kept > /tmp/f")
            snapshot = ask(client, "snapshot")["snapshot"]
            other.reset(snapshot=snapshot)
            assert text(other, "cat /tmp/f") == "kept\n"

        def restores() -> bool:
            try:
                other.reset(snapshot=snapshot)
            except RuntimeError as e:
                assert "the session that took it has ended" in str(e)
                return False
            return True

        eventually(lambda: not restores(), "the server notices that the session has ended")
        with pytest.raises(RuntimeError, match="give reset nothing but its id"):
            other.reset(snapshot=snapshot, task=0)


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
    names: dict[str, Any] = {"url": bash, "token": "unused"}
    exec(first.replace("http://sandbox-host:8000", bash), names)
    assert names["query"] and names["observation"] and names["done"].done
    exec(second, names)
    assert [r.observation["text"] for r in names["results"]] == ["1\n1\n"] * 2


def test_an_episode_begins_after_a_prefix(bash: str) -> None:
    with (
        GenericEnvClient(base_url=bash).sync() as first,
        GenericEnvClient(base_url=bash).sync() as second,
    ):
        prefix = ["cd /tmp; echo $RANDOM > f; cat f"]
        texts = [
            client.reset(task=0, prefix=prefix).observation["text"] for client in (first, second)
        ]
        query = first.state()["task_metadata"]["brief"]["query"]
        assert texts[0] == texts[1] and texts[0].startswith(query)
        number = texts[0].splitlines()[-1]
        assert [text(client, "cat f") for client in (first, second)] == [f"{number}\n"] * 2
        with pytest.raises(RuntimeError, match="the prefix ends the episode"):
            first.reset(task=0, prefix=["submit"])
