"""The profile ``standard`` of SWE-bench, with its settings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from intercode.core.errors import TaskImageError
from intercode.core.settings import setting
from intercode.core.types import ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.profiles import Profile
from intercode.environments.base.settings import SandboxSettings, is_recorded_timeout
from intercode.integrations.swe_bench.grading import grade_patch, read_patch
from intercode.integrations.swe_bench.rows import DIRECTORY, TESTBED_PROGRAMS, SweBenchPayload
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.images.build.capture import captured_layer, layer_key

_REMOVAL_SCRIPT = Path(__file__).with_name("remove_later_commits.sh")
_REMOVAL_PATH = "/dev/shm/remove_later_commits"
_REMOVAL_SECONDS = 1800.0
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIMITS = Limits(disk=4 << 30, file_size=4 << 30, memory=4 << 30, address_space=64 << 30)


@dataclass(frozen=True, kw_only=True)
class SweBenchSettings(SandboxSettings):
    """The settings of SWE-bench."""

    timeout: float = setting(120.0, "seconds for each action")
    test_timeout: float = setting(
        1800.0, "seconds for the tests", recorded=True, from_record=is_recorded_timeout
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_seconds("test_timeout")


class SweBenchProfile(Profile):
    """A shell in the repository, and the tests of the task on what it has become, in a fresh
    sandbox."""

    def __init__(self, settings: SweBenchSettings) -> None:
        self._test_timeout = settings.test_timeout
        self._graded: tuple[str | None, State] | None = None

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        path = f"{TESTBED_PROGRAMS}:{image.env.get('PATH', _DEFAULT_PATH)}"
        own = later_commits_layer(task, image, layers, _LIMITS)
        return SandboxSpec(
            image, (*layers, own), network=network, limits=_LIMITS, env={"PATH": path}
        )

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        return BashSession(sandbox, cwd=task.cwd, state=state)

    def agent_state(
        self,
        episode: EpisodeContext,
        last: ExecResult | None,  # noqa: ARG002
        answer: str | None,  # noqa: ARG002
    ) -> State:
        """Return the results of the tests. The same patch is tested once in an episode."""
        with episode.open_sandbox() as fresh:
            with episode.workspace.sandbox.fork() as copy:
                patch = read_patch(copy, fresh, episode.task)
            if self._graded is not None and self._graded[0] == patch:
                return self._graded[1]
            state = grade_patch(fresh, episode.task, patch, self._test_timeout)
        self._graded = patch, state
        return state

    def gold_states(self, episode: EpisodeContext) -> list[State]:  # noqa: ARG002
        return [State()]

    def close(self) -> None:
        self._graded = None


def later_commits_layer(
    task: Task, image: Image, layers: tuple[Layer, ...], limits: Limits
) -> Layer:
    """Return the layer that removes later commits from all repositories over an image, made once.

    Each repository keeps its checked out commit, the history of that, and the references into that
    history or the history of the task's commit. Other references, reflogs and objects are gone.
    Raises TaskImageError if git cannot do that.
    """
    script = _REMOVAL_SCRIPT.read_bytes()
    commit = SweBenchPayload.of(task).base_commit

    def work(sandbox: BaseSandbox) -> None:
        sandbox.write(_REMOVAL_PATH, script, 0o755)
        result = sandbox.run(
            ["/bin/sh", _REMOVAL_PATH, commit, DIRECTORY], timeout=_REMOVAL_SECONDS
        )
        if not result.ok:
            ended = "did not end" if result.timed_out else f"ended with {result.exit_code}"
            raise TaskImageError(
                f"{task.id}: removing later commits from its image {ended}, so an agent could find "
                f"the fix there: {result.output[-500:].strip()!r}"
            )

    digest = hashlib.sha256(script).hexdigest()
    key = layer_key(
        "later-commits", image.digest, digest, commit, *(layer.digest for layer in layers)
    )
    return captured_layer(key, image, layers, work, limits=limits)
