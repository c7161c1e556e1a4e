"""Time limits of environments that are served by OpenEnv's protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

from intercode.core.errors import EnvironmentStateError, SandboxLostError
from intercode.integrations.openenv.client import RemoteEnv
from intercode.integrations.openenv.imports import without_gradio
from support.sandboxes import eventually
from support.serving import serving

with without_gradio():
    from openenv.core.generic_client import GenericEnvClient

pytestmark = pytest.mark.sandbox


def test_a_session_that_was_idle_is_a_lost_episode() -> None:
    """A trainer that leaves lost episodes out goes on, with a new session."""
    turns: tuple[Callable[[RemoteEnv], object], ...] = (
        lambda e: e.step("pwd"),
        RemoteEnv.submit,
        RemoteEnv.score,
        RemoteEnv.snapshot,
    )
    with serving("-m", "intercode", "serve", "bash", "--idle-timeout", "5") as url:
        remotes = [RemoteEnv(url) for _ in turns]
        for remote in remotes:
            remote.reset(options={"task": 0})
        for remote, turn in zip(remotes, turns, strict=True):
            with remote:
                state = remote._client.state
                eventually(lambda state=state: not state()["live"], "the session ends")  # type: ignore[misc]
                with pytest.raises(SandboxLostError, match="the server has ended this session"):
                    turn(remote)
                remote.reset(options={"task": 0})
                assert remote.step("echo on")[0] == "on\n"


def test_reset_of_a_session_that_was_idle_begins_another_session() -> None:
    """OpenEnv counts and ends the old one no longer: its sandbox would stay open."""
    with serving(
        "-m", "intercode", "serve", "bash", "--idle-timeout", "5", "--sessions", "1"
    ) as url:
        with GenericEnvClient(base_url=url).sync() as client:
            client.reset(task=0)
            eventually(lambda: not client.state()["live"], "the session ends")
            with pytest.raises(RuntimeError, match="the server has ended this session"):
                client.reset(task=0)
        with RemoteEnv(url) as remote:
            for _ in range(2):
                remote.reset(options={"task": 0})
                assert remote._client.state()["task"]
                eventually(lambda: not remote._client.state()["live"], "the session ends")


@pytest.mark.slow
def test_a_missing_answer_ends_the_episode() -> None:
    """With our client, a time-out of its own is an error, and the episode does not continue."""
    with (
        serving("-m", "intercode", "serve", "bash", "--set", "timeout=20") as url,
        RemoteEnv(url, timeout=20.0, margin=-17.0) as remote,
    ):
        remote.reset(options={"task": 0})
        remote.step("touch /tmp/here")
        with pytest.raises(SandboxLostError, match="the episode is lost"):
            remote.step("sleep 1000000")
        for again in (lambda: remote.step("ls /tmp/here"), remote.submit, remote.score):
            with pytest.raises(EnvironmentStateError, match=r"call reset\(\) first"):
                again()
        remote.reset(options={"task": 0})
        assert remote.step("ls /tmp/here")[4]["exit_code"] != 0


def test_the_server_enforces_time_outs() -> None:
    with serving("-m", "intercode", "serve", "bash", "--set", "timeout=5") as url:
        _enforces_time_outs(url)


def _enforces_time_outs(url: str) -> None:
    with RemoteEnv(url, timeout=2.0) as remote:
        remote.reset(options={"task": 0})
        _, _, _, _, info = remote.step("sleep 1000000")  # less than the server's limit
        assert info["timed_out"]
        assert remote.step("echo on")[0] == "on\n"
    with RemoteEnv(url, timeout=900.0) as remote:  # more than the server's limit
        remote.reset(options={"task": 0})
        shown, _, _, _, info = remote.step("sleep 1000000")
        assert info["timed_out"] and "over the time limit of 5 s" in shown
