"""Serves environments through OpenEnv, with one InterCode environment for each session."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import HTTPException, RequestValidationError
from pydantic import ConfigDict, Field, field_validator
from starlette.requests import Request
from starlette.responses import Response

import intercode
from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxLostError,
    UsageError,
)
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import Brief, to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.integrations.action_prefixes import PrefixSnapshots, Turns, describe_prefix
from intercode.integrations.checked_application import CheckedApplication, error_response
from intercode.integrations.openenv.imports import without_gradio
from intercode.integrations.served_sessions import ServedSessions
from intercode_sandbox.remote.access import Access
from intercode_sandbox.valid_text import sendable

# The snapshots that the clients of a server hold.
SNAPSHOTS = 16
"""How many snapshots the clients of a server may hold at once by default."""


@dataclass(frozen=True)
class _Held:
    """A snapshot, and the environment of the session that took it."""

    snapshot: EnvironmentSnapshot
    holder: InterCodeEnv
    lock: threading.Lock = field(default_factory=threading.Lock)


class ServedSnapshots:
    """The snapshots of all sessions, at most ``limit``, each under an id that nobody can guess.

    Any session that knows an id can continue from its snapshot. ``prefixes`` are further ones, at
    most as many, which the server makes for episodes that begin after the same actions.
    """

    def __init__(self, limit: int = SNAPSHOTS) -> None:
        self.limit, self.prefixes = limit, PrefixSnapshots(limit)
        self._held: dict[str, _Held | None] = {}  # None while it is being taken
        self._lock = threading.Lock()

    def take(self, env: InterCodeEnv) -> tuple[str, tuple[str, ...]]:
        """Save the running episode of a session. Return the id, and what the snapshot omits.

        Raises UsageError if the clients hold as many as they may.
        """
        key = secrets.token_urlsafe(16)
        with self._lock:
            if len(self._held) >= self.limit:
                raise UsageError(
                    f"the clients of this server hold {len(self._held)} snapshots, and may hold "
                    f"{self.limit}: close one, or start the server with more (--snapshots)"
                )
            self._held[key] = None
        try:
            held = _Held(env.snapshot(), env)
        except BaseException:
            del self._held[key]
            raise
        self._held[key] = held
        return key, held.snapshot.omitted

    def restore(self, env: InterCodeEnv, key: str) -> None:
        """Let a session continue from a snapshot. Raises UsageError if there is none of this id."""
        held = self._held.get(key)
        if held is not None:
            with held.lock:
                if self._held.get(key) is held:
                    env.restore(held.snapshot)
                    return
        raise UsageError(
            f"no snapshot {key!r:.40}: it was closed, or the session that took it has ended"
        )

    def release(self, holder: InterCodeEnv, key: str | None = None) -> None:
        """Free a snapshot of a session, or all of them. Does nothing if there is none."""
        with self._lock:
            keys = [
                found
                for found, held in self._held.items()
                if held and held.holder is holder and key in (None, found)
            ]
            freed = [self._held.pop(found) for found in keys]
        for held in freed:
            if held is not None:
                with held.lock:  # a session may be restored from it
                    held.snapshot.close()


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

EPISODE_LOST = "the episode is lost"
"""The beginning of the error of a request whose sandbox was lost."""
SESSION_ENDED = "the server has ended this session"
"""In the error of a step after the server closed its session. Its connection has no other."""
REQUEST_KEY = "request"
"""A key in an action's metadata, for a request that runs no code, counts no turn and pays nothing.

``score``: the server returns the score of the current state in ``info``. This ends the episode,
unless the server was started with ``score_requests``: a trainer may give the model control of the
whole action, and a model that reads scores can search for the highest. ``snapshot``: the server
saves the state, and returns the snapshot's id in ``info``. ``release``: it frees the snapshot that
the metadata's key ``snapshot`` names. Only ``reset`` restores one, so that no sequence of actions
returns to an earlier state of its episode."""
TIMEOUT_KEY = "timeout_s"
"""A key in an action's metadata: the seconds that the code may take, if they are fewer than the
server's. Over WebSocket, OpenEnv sends nothing of a step but the action."""


def _brief_record(brief: Brief) -> dict[str, Any]:
    """Return a brief as JSON types, with the plain fields of its description."""
    record: dict[str, Any] = to_jsonable(replace(brief, description=None))  # type: ignore[arg-type]
    return {**record, "description": brief.description.record()}


class CodeAction(Action):
    """An action: code to run, or ``submit`` or ``submit ANSWER``, which end the episode."""

    model_config = ConfigDict(extra="allow")  # else the client's error does not name the field

    code: str

    @field_validator("code", mode="before")
    @classmethod
    def _to_text(cls, value: Any) -> Any:
        """Convert a JSON value back to text.

        A trainer that parses JSON may have turned the code ``42`` or ``true`` into a value.
        """
        return value if isinstance(value, str | dict) else json.dumps(value)


class CodeObservation(Observation):
    """An observation: the output of the code, or the query after ``reset``, and ``info``.

    Trainers show all of it to the model, so it must not reveal the task's id or seed.
    """

    text: str = ""
    info: dict[str, Any] = Field(default_factory=dict)

    @field_validator("text", "info", mode="before")
    @classmethod
    def _without_surrogates(cls, value: Any) -> Any:
        return sendable(value)  # names of files that are not UTF-8, for instance


class CodeState(State):
    """The state of the episode, for the client program. It is not meant for the model.

    ``task`` is the task's id, empty before the first ``reset``. ``live`` is whether the episode is
    still running. ``task_metadata`` has the task's position, seed, brief, group, hardness and tags.
    """

    task: str = ""
    live: bool = False
    task_metadata: dict[str, Any] = Field(default_factory=dict)


class ServedEnv(Environment[CodeAction, CodeObservation, CodeState]):
    """The environment of one session.

    Besides the seed, ``reset`` takes ``task``, a position or an id, or OpenEnv's name for it,
    ``index``; ``prefix``, actions after which the episode begins; or, in place of all these,
    ``snapshot``, the id of a snapshot of any session, from which the episode continues. A ``reset``
    that is refused because of its arguments leaves the running episode as it is. ``step``
    before ``reset`` is an error. A client that lost its connection gets a new session with the next
    call, and the error informs it that its episode is lost.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        make: Callable[[], InterCodeEnv],
        score_requests: bool = False,
        allow_exploitable: bool = False,
        snapshots: ServedSnapshots | None = None,
    ) -> None:
        super().__init__()
        self._env = make()
        self._snapshots = snapshots or ServedSnapshots()
        check_training({"profile": self._env.profile}, allow_exploitable)
        self._score_requests = score_requests
        self._max_timeout = self._env.timeout
        self._state = CodeState()
        self._lock = threading.Lock()  # held by a call that uses the environment
        self._was_reset = False  # also in vain
        self._ended = False  # by ``close``: OpenEnv counts and ends this session no longer

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> CodeObservation:
        options.pop("split", None)
        task = options.pop("task", options.pop("index", None))
        prefix, snapshot = options.pop("prefix", None), options.pop("snapshot", None)
        if options:
            raise UsageError(
                "reset takes seed, episode_id, task, prefix and snapshot, not " + ", ".join(options)
            )
        if snapshot is not None and (task, seed, prefix) != (None, None, None):
            raise UsageError("a snapshot has its task and seed: give reset nothing but its id")
        turns: Turns = ()
        with self._lock:
            self._check_session()
            previous = self._env.episode if self._state.task else None
            self._was_reset = True
            self._env.timeout = self._max_timeout
            try:
                if snapshot is None:
                    turns = self._snapshots.prefixes.begin(self._env, task, seed, prefix)
                else:
                    self._snapshots.restore(self._env, str(snapshot))
            except BaseException:
                if previous is None or self._env.episode is not previous or previous.is_closed:
                    self._state = CodeState(episode_id=episode_id)
                raise
        brief = _brief_record(self._env.brief)
        metadata = {"index": self._env.index, "task_seed": self._env.task_seed, "brief": brief}
        metadata |= {k: getattr(self._env.task, k) for k in ("group", "hardness", "tags")}
        self._state = CodeState(
            episode_id=episode_id,
            task=self._env.task.id,
            live=True,
            task_metadata=to_jsonable(metadata),
        )
        known = {
            k: v for k, v in brief.items() if k not in ("task", "query", "tools", "description")
        }
        text = [self._env.brief.query, describe_prefix(turns, MAX_OBSERVATION_LENGTH)]
        return CodeObservation(text="\n\n".join(filter(None, text)), info=known)

    def step(self, action: CodeAction, timeout_s: float | None = None, **_: Any) -> CodeObservation:
        """Run an action for at most ``timeout_s`` seconds, or the server's limit if lower."""
        if not self._state.task and self._was_reset:
            raise EnvironmentStateError(
                "step without a running episode: the last reset failed; reset begins another"
            )
        if not self._state.task:
            raise EnvironmentStateError(
                "step before reset: this session is new. A client whose connection was lost, by a "
                "time-out of its own for instance, has lost its episode: reset begins another"
            )
        if action.model_extra:
            raise UsageError(
                f"an action has the fields code and metadata, not {', '.join(action.model_extra)}; "
                f'a time-out is {{"code": ..., "metadata": {{"{TIMEOUT_KEY}": SECONDS}}}}'
            )
        timeout_s = action.metadata.get(TIMEOUT_KEY, timeout_s)
        if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
            raise UsageError(f"{TIMEOUT_KEY} is {timeout_s!r}; it must be a number above 0")
        try:
            with self._lock:
                self._check_session()
                return self._answer(action, timeout_s)
        except InfrastructureError as e:
            self._state.live = False
            raise type(e)(f"{EPISODE_LOST}: {e}") from e

    def _check_session(self) -> None:
        if self._ended:
            raise SandboxLostError(
                f"{SESSION_ENDED}, as it does with one in which nothing happens for the idle "
                "time-out: reset in a new session begins another episode"
            )

    def _answer(self, action: CodeAction, timeout_s: float | None) -> CodeObservation:
        request = action.metadata.get(REQUEST_KEY)
        if request == "release":
            self._snapshots.release(self._env, str(action.metadata.get("snapshot")))
            return CodeObservation(reward=0.0, done=not self._state.live)
        if request == "score":
            score = self._env.score()
            self._state.live = self._state.live and self._score_requests
            info = {"score": score.value, "parts": dict(score.parts)}
            if (error := score.action_error) is not None:
                info["action_error"] = {"type": error.type, "message": error.message}
            return CodeObservation(reward=0.0, done=not self._state.live, info=info)
        if not self._state.live:
            raise EnvironmentStateError("step without a running episode: reset begins another")
        if request == "snapshot":
            key, omitted = self._snapshots.take(self._env)
            return CodeObservation(reward=0.0, info={"snapshot": key, "omitted": omitted})
        self._env.timeout = min(self._max_timeout, timeout_s or self._max_timeout)
        result = self._env.execute(action.code)
        self._state.step_count += 1
        self._state.live = not result.done
        info = result.info | {"terminated": result.terminated, "truncated": result.truncated}
        del info["task"]
        return CodeObservation(
            text=result.observation, reward=result.reward, done=result.done, info=to_jsonable(info)
        )

    @property
    def state(self) -> CodeState:
        return self._state

    def abort(self) -> None:
        """Interrupt the call that another thread makes, and refuse further ones."""
        self._ended = True
        self._env.abort()

    def close(self) -> None:
        """Interrupt the call that another thread makes, wait for its end, and free everything."""
        self._env.abort()
        with self._lock:
            self._ended = True
            self._state.live = False
            self._snapshots.release(self._env)
            self._env.close()

    def get_metadata(self) -> EnvironmentMetadata:
        metadata = self._env.result_metadata()
        dataset, profile = metadata["dataset"], metadata["profile"]
        return EnvironmentMetadata(
            name=f"intercode-{self._env.name}",
            description=f"InterCode: {self._env.name}, {dataset}, {profile}",
            version=intercode.__version__,
        )

    # ------------------------------------------------------ OpenEnv's task API
    def list_splits(self) -> list[str]:
        """Return the name of the dataset that is served."""
        return [self._env.dataset.name]

    def num_tasks(self, split: str) -> int:
        """Return the number of tasks."""
        return len(self._tasks(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return the id and position of every task."""
        return self._tasks(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return one task's id and position. Raises IndexError if there is no such task."""
        return self._tasks(split)[index]

    def _tasks(self, split: str) -> list[dict[str, Any]]:
        dataset = self._env.dataset
        if split != dataset.name:
            raise UsageError(f"there is no split {split!r}: this server has {dataset.name!r}")
        return [{"id": t.id, "index": i} for i, t in enumerate(dataset.tasks)]


def build_app(
    make: Callable[[], InterCodeEnv],
    name: str,
    sessions: int = 64,
    idle_timeout: float | None = 600.0,
    score_requests: bool = False,
    access: Access | None = None,
    allow_exploitable: bool = False,
    snapshots: int = SNAPSHOTS,
) -> FastAPI:
    """Return the ASGI application.

    At most ``sessions`` sessions are open at once. A session without a request for ``idle_timeout``
    seconds is closed (None: never). ``score_requests``: a request for the score does not end the
    episode, see ``REQUEST_KEY``. ``access``: who may use it; by default everybody who reaches it,
    except web pages of other origins. ``allow_exploitable``: allow a profile whose faults training
    would exploit; without this, no session of it begins. ``snapshots``: how many
    snapshots the clients may hold at once; each ends with the session that took it.
    ``application.state.abort()`` interrupts what runs in all sessions, before the server ends.
    """
    held = ServedSnapshots(snapshots)
    served = ServedSessions(partial(ServedEnv, make, score_requests, allow_exploitable, held))
    concurrency = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=idle_timeout)
    application: FastAPI = create_app(
        served.make,
        CodeAction,
        CodeObservation,
        env_name=name,
        concurrency_config=concurrency,
        state_cls=CodeState,
    )
    protect(application, access or Access())
    application.state.abort = served.abort
    return application


def protect(application: FastAPI, access: Access) -> None:
    """Let an application answer only the requests that ``access`` allows, and answer those that
    fail with a status and a message."""
    application.add_middleware(CheckedApplication, access=access)
    statuses = {
        UsageError: 400,
        IndexError: 400,
        EnvironmentStateError: 409,
        InfrastructureError: 503,
    }
    for kind, status in statuses.items():
        application.add_exception_handler(kind, _responder(status))
    application.add_exception_handler(RequestValidationError, _invalid_request)
    application.add_exception_handler(HTTPException, _http_error)


def _responder(status: int) -> Callable[[Request, Exception], Response]:
    return lambda _, error: error_response(status, str(error))


def _invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(422, _without_input(error.errors()))


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, _without_input(error.detail), error.headers)


def _without_input(detail: Any) -> Any:
    """Return the errors of a validation without the input, which JSON may not be able to hold."""
    if not isinstance(detail, list | tuple):
        return detail
    return [{k: error[k] for k in ("type", "loc", "msg") if k in error} for error in detail]
