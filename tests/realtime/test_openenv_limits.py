"""Time limits of environments that are served by OpenEnv's protocol."""

from __future__ import annotations

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

from intercode.integrations.openenv.imports import without_gradio
from support.sandboxes import eventually
from support.serving import serving

with without_gradio():
    from openenv.core.generic_client import GenericEnvClient

pytestmark = pytest.mark.sandbox


def test_a_session_that_was_idle_is_a_lost_episode() -> None:
    """A trainer that leaves lost episodes out goes on, with a new session."""
    turns = (
        {"code": "pwd"},
        {"code": "submit"},
        {"code": "", "metadata": {"request": "score"}},
        {"code": "", "metadata": {"request": "snapshot"}},
    )
    served = ("-m", "intercode", "serve", "bash", "--idle-timeout", "5", "--sessions", "1")
    with serving(*served) as url, GenericEnvClient(base_url=url).sync() as client:
        for turn in turns:
            client.reset(task=0)
            eventually(lambda: not client.state()["live"], "the session ends")
            with pytest.raises(RuntimeError, match="the server has ended this session"):
                client.step(turn)
            with pytest.raises(RuntimeError, match="the server has ended this session"):
                client.reset(task=0)  # OpenEnv counts and ends the session no longer
            client.disconnect()  # the next reset gets a session of its own


def test_the_server_enforces_time_outs() -> None:
    with (
        serving("-m", "intercode", "serve", "bash", "--set", "timeout=5") as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(task=0)
        less = client.step({"code": "sleep 1000000", "metadata": {"timeout_s": 2}}).observation
        assert less["info"]["timed_out"] and "over the time limit of 2 s" in less["text"]
        assert client.step({"code": "echo on"}).observation["text"] == "on\n"
        client.reset(task=0)
        more = client.step({"code": "sleep 1000000", "metadata": {"timeout_s": 900}}).observation
        assert more["info"]["timed_out"] and "over the time limit of 5 s" in more["text"]
