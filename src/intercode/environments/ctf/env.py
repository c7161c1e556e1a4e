"""Capture the Flag: find a flag that is hidden in files, with whatever language helps."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from intercode.core.errors import DataError, GoldError
from intercode.core.types import Brief, ExecResult, Layer, Score, State, Task
from intercode.environments.base.layers import git_layer, setup_layer
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.task_instances import initial_file_entries
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.original import OriginalBashSession, wrap_ctf_action
from intercode.sessions.bash.persistent import BashSession

WRONG_FLAG = {
    "standard": "That is not the flag. The episode goes on.\n",
    "original": "Submitted flag is incorrect. Keep trying!",  # their runner's words, as logged
}
INSTRUCTIONS = (
    "The files of the task, if it has any, are in the directory where you start. `submit FLAG`, as "
    "an action of its own, hands the flag in; a wrong one costs a turn."
)


class CTFEnv(SandboxedEnv):
    """Find the flag, in Bash in the task's own folder, and ``submit FLAG``.

    The right flag ends the episode with reward 1; another one costs a turn and the episode goes on;
    ``submit`` alone gives up. In the ``original`` profile every action is a shell of its own and
    case does not count, as in the authors' code. The flag is compared outside the box, which holds
    the task's own files and nothing else of the dataset; a starter task's are drawn from the seed
    of ``reset``. The settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "ctf"
    expects_answer: ClassVar[bool] = True

    @property
    def brief(self) -> Brief:
        brief = super().brief
        return replace(brief, notes=f"{INSTRUCTIONS}\n{brief.notes}".strip())

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        task, original = self.task, self.profile == "original"
        if code := self._setup_code(task):
            layers += (setup_layer(code, task.cwd, self.image, layers, self.network),)
        if original:
            layers += (git_layer(self.image, layers),)
        return SandboxSpec(
            self.image, layers, network=self.network, appearance="docker" if original else "plain"
        )

    def _setup_code(self, task: Task) -> str | None:
        """What is run once, when the layer of a task is built, in the task's folder."""
        wants_network = task.data.get("network_setup") if self.network == "host" else None
        return task.setup or wants_network

    def _open_session(
        self, box: SupervisedSandbox, task: Task, state: SessionState | None
    ) -> Session:
        if self.profile == "original":
            return OriginalBashSession(box, state.cwd if state else task.cwd, wrap_ctf_action)
        return BashSession(box, cwd=task.cwd, state=state)

    def _open_episode(self, task: Task) -> None:
        if absent := [spec.path for spec in task.files if not spec.path.exists()]:
            raise DataError(f"the files of {task.id} are not here: there is no {absent[0]}")
        super()._open_episode(task)
        for path, (content, mode) in task.initial_files.items():
            self._current_workspace.sandbox.write_file(path, content, mode)

    def _changes(self) -> list[str]:
        """Without the files that the episode began with, unless they were changed themselves."""
        if not self.task.initial_files:
            return super()._changes()
        now, then = self._current_workspace.sandbox.changes(), initial_file_entries(self.task)
        gone = self.task.initial_files.keys() - now.keys()
        return sorted(gone | {path for path, entry in now.items() if then.get(path) != entry})

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        return State(last.output if last else "", answer=answer)

    def _gold_states(self, task: Task) -> list[State]:
        if task.flag is None:
            raise GoldError(f"{task.id} has no flag: nothing to compare an answer with")
        mended = task.data.get("also_flags", ()) if self.profile == "standard" else ()
        return [State(answer=flag) for flag in (task.flag, *mended)]

    def _answer_refusal(self, score: Score) -> str | None:
        return None if score.success or self._answer is None else WRONG_FLAG[self.profile]
