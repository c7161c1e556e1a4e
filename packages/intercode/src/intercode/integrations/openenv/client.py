"""The client: an environment on another machine, used like a local one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import gymnasium as gym

from intercode.core.errors import EnvironmentStateError, SandboxLostError, UsageError
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import SUBMIT, ActionError, Brief, Score, StepResult, Task, Tool
from intercode.environments.base.env import MAX_ACTION_LENGTH
from intercode.environments.base.options import checked_action
from intercode.environments.base.snapshots.snapshot import repeat_factory, restore_into_new
from intercode.environments.base.spaces import FreeText
from intercode.environments.recorded_descriptions import describe_environment
from intercode.integrations.openenv.imports import without_gradio

try:
    with without_gradio():
        from openenv.core.generic_client import GenericEnvClient
        from websockets.exceptions import ConnectionClosed

    from intercode.integrations.openenv.server import (
        EPISODE_LOST,
        REQUEST_KEY,
        SESSION_ENDED,
        TIMEOUT_KEY,
    )
except ImportError as e:
    raise ImportError("RemoteEnv needs OpenEnv: pip install 'intercode-gym[openenv]'") from e


MAX_SENT = 4 << 20
"""Characters of the longest action that is sent. The server reads messages of 64 MiB, and JSON may
take 12 bytes for a character."""


class RemoteEnv(gym.Env[str, str]):
    """The environment of a server of `intercode serve`. It has ``reset``, ``step``, ``submit``,
    ``score``, ``snapshot``, ``restore``, ``fork`` and ``close`` as InterCodeEnv does, so that
    agents and rollouts can drive it. ``reset`` takes the option ``prefix``, too: actions after
    which the episode begins, as a fork of an earlier episode with them.

    ``timeout`` is the number of seconds an action may take; the server enforces it. ``margin`` is
    how many seconds longer the client waits for a response. If none arrives, the connection is lost
    or the server loses the sandbox or ends the session as idle, the episode is lost:
    SandboxLostError is raised, and ``reset`` begins another.
    ``token`` is that of the server, if it requires one. Before ``reset`` the environment can be
    pickled, with the token: the copy connects to the same server.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self,
        base_url: str,
        timeout: float = 10.0,
        margin: float = 30.0,
        token: str | None = None,
    ) -> None:
        self._arguments = base_url, timeout, margin, token
        self.timeout, self.max_turns = timeout, None
        self.action_space = FreeText(MAX_ACTION_LENGTH)
        self.observation_space = FreeText(MAX_OBSERVATION_LENGTH)
        self._client = GenericEnvClient(
            base_url=base_url,
            message_timeout_s=timeout + margin,
            headers=None if token is None else {"Authorization": f"Bearer {token}"},
        ).sync()
        self.index, self.task_seed = -1, None
        self._task: Task | None = None
        self._brief: Brief | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        if self._task is not None:
            raise UsageError(
                "a RemoteEnv with an episode cannot be pickled: its sandbox belongs to its "
                "connection. Pickle it before reset() or after close()"
            )
        return type(self), self._arguments

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see ``InterCodeEnv.reset``. After a prefix, the observation is the
        query and what the prefix printed."""
        if options is not None and not isinstance(options, dict):
            raise UsageError(f"options are a dict such as {{'task': 0}}, not {options!r:.80}")
        options_sent = {"seed": seed, **(options or {})}
        self._begin(**{k: v for k, v in options_sent.items() if v is not None})
        return self._first_observation, {"task": self.task.id, "index": self.index}

    def snapshot(self) -> RemoteSnapshot:
        """Save the state of the running episode on the server, for ``restore`` of this or another
        environment of that server, and for ``fork``. It ends with this session.

        Raises UsageError if the server holds as many snapshots as it may.
        """
        answer = self._request_step({"code": "", "metadata": {REQUEST_KEY: "snapshot"}})
        info = answer.observation["info"]
        return RemoteSnapshot(info["snapshot"], tuple(info["omitted"]), self)

    def restore(self, snapshot: RemoteSnapshot, *, consume: bool = False) -> None:  # noqa: ARG002
        """Continue from a snapshot of this server. Raises UsageError if it was closed."""
        self._begin(snapshot=snapshot.id)

    def fork(self, n: int = 1) -> list[Self]:
        """Return ``n`` independent environments in the state of this one, each with a session of
        its own. The caller closes them.

        Raises EnvironmentStateError if no episode is running, UsageError if ``n`` is less than 1
        or the server has too few sessions left.
        """
        makers = repeat_factory(lambda: type(self)(*self._arguments), n)
        with self.snapshot() as snapshot:
            return restore_into_new(makers, snapshot)

    def _begin(self, **options: Any) -> None:
        """Begin an episode and read its task."""
        try:
            answer = self._request("reset", **options)
        except SandboxLostError as e:
            if SESSION_ENDED not in str(e):
                raise
            answer = self._request("reset", **options)  # in a session of its own
        self._first_observation = answer.observation["text"]
        metadata = self._request("state")["task_metadata"]
        if not metadata:
            raise SandboxLostError("the connection was lost, and with it the new episode")
        tools = tuple(Tool(**tool) for tool in metadata["brief"].pop("tools", ()))
        environment = metadata["brief"]["environment"]
        description = describe_environment(environment, metadata["brief"].pop("description", None))
        self._brief = Brief(**metadata["brief"], tools=tools, description=description)
        self.index, self.task_seed = metadata["index"], metadata["task_seed"]
        self._task = Task(
            self._brief.task,
            self._brief.query,
            group=metadata["group"],
            hardness=metadata["hardness"],
            tags=tuple(metadata["tags"]),
        )

    def execute(self, action: str) -> StepResult:
        """Run an action; see ``InterCodeEnv.execute``. Raises UsageError for one of more than
        ``MAX_SENT`` characters: a message too long would end the session."""
        code = checked_action(action)
        if len(code) > MAX_SENT:
            raise UsageError(
                f"the action has {len(code):,} characters, more than {MAX_SENT:,}, and was not "
                "sent: split it"
            )
        metadata = {TIMEOUT_KEY: self.timeout}
        answer = self._request_step({"code": code, "metadata": metadata})
        info = answer.observation["info"]
        score = _score(info) if "score" in info else None
        return StepResult(
            answer.observation["text"],
            reward=float(answer.reward or 0.0),
            terminated=info["terminated"],
            truncated=info["truncated"],
            task=self.task.id,
            valid=info["valid"],
            exit_code=info["exit_code"],
            timed_out=info["timed_out"],
            omitted_bytes=info["omitted_bytes"],
            changes=tuple(info["changes"]),
            score=score,
            refused=info.get("refused", False),
            sandbox_lost=info.get("sandbox_lost", False),
            hashes=info.get("hashes", {}),
        )

    def finish(self, answer: str | None = None) -> StepResult:
        """Submit; see ``InterCodeEnv.finish``."""
        return self.execute(f"{SUBMIT} {answer or ''}".rstrip())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run an action; see ``InterCodeEnv.step``."""
        return self.execute(action).as_gymnasium()

    def submit(self, answer: str | None = None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Submit; see ``InterCodeEnv.submit``."""
        return self.finish(answer).as_gymnasium()

    def check_gold(self) -> None:
        """Do nothing: only the server has the gold."""

    def score(self) -> Score:
        """Return the score of the present state; see ``InterCodeEnv.score``.

        This ends the episode, unless the server was started with ``--score-requests``.
        """
        info = self._request_step({"code": "", "metadata": {REQUEST_KEY: "score"}}).observation[
            "info"
        ]
        return _score(info)

    @property
    def task(self) -> Task:
        """The task, without what a client may not know. Raises EnvironmentStateError before
        reset."""
        if self._task is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._task

    @property
    def brief(self) -> Brief:
        """The task as an agent may know it."""
        if self._brief is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._brief

    def close(self) -> None:
        """End the session with its sandbox and its snapshots. May be called again."""
        self._task = None
        self._client.close()

    def _request_step(self, action: dict[str, Any]) -> Any:
        if self._task is None:
            raise EnvironmentStateError("step without a running episode: call reset() first")
        return self._request("step", action)

    def _request(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Send a request. Errors of the server become UsageError; a lost connection loses the
        episode."""
        try:
            return getattr(self._client, method)(*arguments, **named)
        except (OSError, ConnectionClosed) as e:
            self._task = None
            if (reason := _refusal(e)) is not None:
                raise UsageError(f"the server refuses this client: {reason}") from e
            raise SandboxLostError(f"the server does not respond, the episode is lost: {e}") from e
        except RuntimeError as e:
            if "step before reset" in str(e):
                self._task = None
                raise SandboxLostError(f"the connection was lost, and the episode: {e}") from e
            if EPISODE_LOST in str(e) or SESSION_ENDED in str(e):
                self._task = None
                if SESSION_ENDED in str(e):
                    self._client.disconnect()  # the next reset gets a session of its own
                raise SandboxLostError(str(e)) from e
            raise UsageError(str(e)) from e


@dataclass(frozen=True)
class RemoteSnapshot:
    """The state of an episode that a server holds. ``omitted``: what it does not contain.

    It ends when it is closed, and with the session of the environment that took it.
    """

    id: str
    omitted: tuple[str, ...]
    _env: RemoteEnv

    def close(self) -> None:
        """Free the snapshot on the server. May be called again."""
        if self._env._task is not None:  # else the server has freed it with the session
            request = {REQUEST_KEY: "release", "snapshot": self.id}
            with suppress(SandboxLostError):
                self._env._request_step({"code": "", "metadata": request})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refusal(error: Exception) -> str | None:
    """Return what the server said if it refused the connection itself."""
    response = getattr(error.__cause__, "response", None)
    status = getattr(response, "status_code", None)
    if status not in (401, 403):
        return None
    body = getattr(response, "body", None) or b""
    return body.decode(errors="replace") or f"HTTP {status}"


def _score(info: dict[str, Any]) -> Score:
    """Return the score that a server has sent."""
    failure = info.get("action_error")
    details = {"action_error": ActionError(**failure)} if failure else {}
    return Score(info["score"], info["parts"], details)
