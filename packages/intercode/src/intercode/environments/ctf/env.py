"""The Capture-the-Flag environment: a task is to find a flag that is hidden in files."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from intercode.core.errors import DataError, GoldError
from intercode.core.types import Brief, ExecResult, Layer, Score, State, Task
from intercode.environments.base.layers import git_layer, setup_layer
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.original import OriginalBashSession, wrap_ctf_action
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox

WRONG_FLAG = {
    "standard": "That is not the flag. The episode goes on.\n",
    "original": "Submitted flag is incorrect. Keep trying!",  # as in the authors' logs
}
INSTRUCTIONS = (
    "The files of the task, if it has any, are in the directory where you start. `submit FLAG`, as "
    "an action of its own, hands the flag in; a wrong one costs a turn."
)


class CTFEnv(SandboxedEnv):
    """Find a hidden flag with Bash in the task's own folder, and ``submit FLAG``.

    The correct flag ends the episode with reward 1. After a wrong flag the episode continues.
    ``submit`` without a flag ends the episode. In the ``original`` profile, as in the authors'
    code, every action runs in a new shell, and upper and lower case are equal in flags.

    The flag is compared outside the sandbox, which contains only the files of this task. The files
    of a starter task are generated from the seed of ``reset``. The settings are those of
    InterCodeEnv.
    """

    name: ClassVar[str] = "ctf"
    expects_answer: ClassVar[bool] = True

    def brief_of(self, task: Task) -> Brief:
        brief = super().brief_of(task)
        return replace(brief, notes=f"{INSTRUCTIONS}\n{brief.notes}".strip())

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        task, original = self.task, self.profile == "original"
        wants_network = task.data.get("network_setup") if self.network == "host" else None
        if code := task.setup or wants_network:
            layers += (setup_layer(code, task.cwd, self.image, layers, self.network),)
        if original:
            layers += (git_layer(self.image, layers),)
        return SandboxSpec(
            self.image, layers, network=self.network, appearance="docker" if original else "plain"
        )

    def _open_session(
        self, sandbox: BaseSandbox, task: Task, state: SessionState | None
    ) -> Session:
        if self.profile == "original":
            return OriginalBashSession(sandbox, state.cwd if state else task.cwd, wrap_ctf_action)
        return BashSession(sandbox, cwd=task.cwd, state=state)

    def _open_workspace(self, task: Task) -> SandboxWorkspace:
        if absent := [spec.path for spec in task.files if not spec.path.exists()]:
            raise DataError(f"the files of {task.id} are missing: there is no {absent[0]}")
        return super()._open_workspace(task)

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        return State(last.output if last else "", answer=answer)

    def _require_gold(self, task: Task) -> None:
        if task.flag is None:
            raise GoldError(f"{task.id} has no flag: nothing to compare an answer with")

    def _gold_states(self, task: Task) -> list[State]:
        self._require_gold(task)
        assert task.flag is not None
        accepted = task.data.get("also_flags", ()) if self.profile == "standard" else ()
        return [State(answer=flag) for flag in (task.flag, *accepted)]

    def _reply_to_answer(self, score: Score) -> tuple[str, bool] | None:
        if score.success or self._answer is None:
            return None
        return WRONG_FLAG[self.profile], True
