"""The server's side: each session of OpenEnv's is an environment of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from pydantic import Field, field_validator

import intercode
from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.integrations.openenv.imports import without_gradio

with without_gradio():
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import (
        Action,
        ConcurrencyConfig,
        EnvironmentMetadata,
        Observation,
        State,
    )

REQUEST_KEY = "request"
"""A key of an action's metadata: ``score`` asks for the reward of the state as it is; the code is
not run then, and no turn is taken."""


class CodeAction(Action):
    """Code to run; ``submit``, or ``submit ANSWER``, hands in."""

    code: str

    @field_validator("code", mode="before")
    @classmethod
    def _to_text(cls, given: Any) -> Any:
        """Trainers that read JSON wherever they can make values of ``42`` and ``true``, which are
        code as well."""
        return given if isinstance(given, str | dict) else json.dumps(given)


class CodeObservation(Observation):
    """What the code printed (after ``reset``: the query), and what is known of it. Trainers show
    all of it to the model: nothing here says which task it is, or how it was made."""

    text: str = ""
    info: dict[str, Any] = Field(default_factory=dict)


class CodeState(State):
    """The running episode, for whoever runs it and not for a model; ``task`` is empty before the
    first ``reset``. ``task_metadata``: what a client has to know of the task."""

    task: str = ""
    live: bool = False
    task_metadata: dict[str, Any] = Field(default_factory=dict)


class ServedEnv(Environment[CodeAction, CodeObservation, CodeState]):
    """One session. ``reset`` takes ``task``, a position or an id, beside the seed; or OpenEnv's own
    ``index``. A session that has not been reset refuses to step: a client that lost its connection
    is given a new session, and must not go on as if nothing had happened."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, make: Callable[[], InterCodeEnv]) -> None:
        super().__init__()
        self._env = make()
        self._max_timeout = self._env.timeout
        self._state = CodeState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **chosen: Any
    ) -> CodeObservation:
        chosen.pop("split", None)
        task = chosen.pop("task", chosen.pop("index", None))
        if chosen:
            raise UsageError(f"reset takes seed, episode_id and task, not {', '.join(chosen)}")
        self._state = CodeState(episode_id=episode_id)
        query, info = self._env.reset(seed=seed, options={"task": task})
        brief = to_jsonable(self._env.brief)
        metadata = {"index": info["index"], "task_seed": self._env.task_seed, "brief": brief}
        metadata |= {k: getattr(self._env.task, k) for k in ("group", "hardness", "tags")}
        self._state = CodeState(
            episode_id=episode_id,
            task=self._env.task.id,
            live=True,
            task_metadata=to_jsonable(metadata),
        )
        known = {k: v for k, v in brief.items() if k not in ("task", "query")}
        return CodeObservation(text=query, info=known)

    def step(self, action: CodeAction, timeout_s: float | None = None, **_: Any) -> CodeObservation:
        """``timeout_s`` bounds the code's time in the sandbox, within the server's own bound."""
        if not self._state.task:
            raise EnvironmentStateError(
                "step before reset: this session is new. A client whose connection was lost, by a "
                "time-out of its own for instance, has lost its episode: reset begins another"
            )
        if action.metadata.get(REQUEST_KEY) == "score":
            score = self._env.score()
            info = {"score": score.value, "parts": dict(score.parts)}
            return CodeObservation(reward=score.value, done=not self._state.live, info=info)
        self._env.timeout = min(self._max_timeout, timeout_s or self._max_timeout)
        text, reward, terminated, truncated, info = self._env.step(action.code)
        self._state.step_count += 1
        self._state.live = not (terminated or truncated)
        info = {**info, "terminated": terminated, "truncated": truncated}
        del info["task"]
        return CodeObservation(
            text=text, reward=reward, done=terminated or truncated, info=to_jsonable(info)
        )

    @property
    def state(self) -> CodeState:
        return self._state

    def close(self) -> None:
        self._env.abort()
        self._env.close()

    def get_metadata(self) -> EnvironmentMetadata:
        metadata = self._env.result_metadata()
        return EnvironmentMetadata(
            name=f"intercode-{self._env.name}",
            description=f"InterCode: {self._env.name}, {metadata['dataset']}, {metadata['profile']}",
            version=intercode.__version__,
        )

    # ------------------------------------------------------ OpenEnv's task API
    def list_splits(self) -> list[str]:
        """The one dataset that is served."""
        return [self._env.dataset.name]

    def num_tasks(self, split: str) -> int:
        """How many tasks it has."""
        return len(self._tasks(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Every task's id and position."""
        return self._tasks(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One of them. Raises IndexError."""
        return self._tasks(split)[index]

    def _tasks(self, split: str) -> list[dict[str, Any]]:
        dataset = self._env.dataset
        if split != dataset.name:
            raise UsageError(f"there is no split {split!r} here: {dataset.name!r} is served")
        return [{"id": t.id, "index": i} for i, t in enumerate(dataset.tasks)]


def build_app(
    make: Callable[[], InterCodeEnv],
    name: str,
    sessions: int = 64,
    idle_timeout: float | None = 600.0,
) -> FastAPI:
    """The application for any ASGI server: at most so many ``sessions`` at once; one in which
    nothing happens for ``idle_timeout`` seconds is ended (None: never)."""
    bounds = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=idle_timeout)
    served: FastAPI = create_app(
        lambda: ServedEnv(make), CodeAction, CodeObservation, env_name=name,
        concurrency_config=bounds, state_cls=CodeState,
    )  # fmt: skip
    return served
