"""Bash: do what a sentence asks for, in a shell of your own."""

from __future__ import annotations

import platform
from functools import cached_property
from typing import Any, ClassVar

from intercode import images
from intercode.builders.layers import git_layer, task_layer
from intercode.envs.base import InterCodeEnv
from intercode.errors import GoldError
from intercode.images.recipe import pinned
from intercode.sandboxes import SandboxSpec, open_sandbox
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions import git_view
from intercode.sessions.bash import BashSession
from intercode.sessions.fresh import FreshBashSession
from intercode.types import ExecResult, Image, State, Task

GOLD_SECONDS = 120.0


class BashEnv(InterCodeEnv):
    """Answer a request in Bash; the reward looks at what was printed and at the file system.

    In the ``standard`` profile one shell lives as long as the episode; in ``original`` every action
    is a shell of its own and git sees the changes, as in the authors' code.
    """

    name: ClassVar[str] = "bash"
    _sandbox: NamespaceSandbox | None = None
    _gold_box: NamespaceSandbox | None = None
    _session: BashSession | FreshBashSession | None = None

    @cached_property
    def image(self) -> Image:
        """The root file system, unpacked when it is first needed."""
        return images.resolve(self.image_name)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and pinned(self.image),
            "arch": platform.machine(),
            "tier": NamespaceSandbox.tier,
        }

    def _open_box(self, task: Task) -> NamespaceSandbox:
        layers = tuple(task_layer(spec, self.image) for spec in task.files)
        original = self.profile == "original"
        if original:
            layers += (git_layer(self.image, layers),)
        spec = SandboxSpec(
            self.image, layers, network=self.network, look="docker" if original else "plain"
        )
        sandbox = open_sandbox(spec, self.sandbox_kind)
        assert isinstance(sandbox, NamespaceSandbox)
        return sandbox

    def _open_session(self, box: NamespaceSandbox, task: Task) -> BashSession | FreshBashSession:
        if self.profile == "original":
            return FreshBashSession(box)
        session = BashSession(box, cwd=task.cwd)
        if task.setup:
            session.run(task.setup, GOLD_SECONDS)
        return session

    def _open_episode(self, task: Task) -> None:
        self._golds: list[State] | None = None
        self._sandbox = self._open_box(task)
        self._session = self._open_session(self._sandbox, task)

    def _close_episode(self) -> None:
        if self._session is not None:
            self._session.close()
        for box in (self._sandbox, self._gold_box):
            if box is not None:
                box.close()
        self._sandbox = self._session = self._gold_box = None

    def _is_open(self) -> bool:
        return self._sandbox is not None

    def _execute(self, action: str) -> ExecResult:
        assert self._session is not None
        return self._session.run(action, self.timeout)

    def _changes(self) -> list[str]:
        assert self._sandbox is not None
        return list(self._sandbox.changes())

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        assert self._sandbox is not None and self._session is not None
        if self.profile == "original":
            output = last.output if last else self.task.query  # the authors start with the query
            with self._sandbox.clone() as box:
                return _git_state(box, output)
        output = last.output if last else ""
        return State(output, self._sandbox.changes(), cwd=self._session.cwd, answer=answer)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        if self.profile == "original":
            return [self._run_gold_again(task, task.golds[0])]
        if self._golds is None:
            self._golds = [self._run_gold(task, gold) for gold in task.golds]
        return self._golds

    def _run_gold(self, task: Task, gold: str) -> State:
        with self._open_box(task) as box:
            session = self._open_session(box, task)
            result = session.run(gold, GOLD_SECONDS)
            if result.timed_out:
                raise GoldError(f"the gold of {task.id} did not end within {GOLD_SECONDS:g} s")
            return State(result.output, box.changes(), cwd=session.cwd, exit_code=result.exit_code)

    def _run_gold_again(self, task: Task, gold: str) -> State:
        """The authors' way: one box per episode, which git resets before every run of the gold."""
        if self._gold_box is None:
            self._gold_box = self._open_box(task)
        session = FreshBashSession(self._gold_box)
        session.execute(git_view.RESET, "/", GOLD_SECONDS)
        result = session.execute(gold, "/", GOLD_SECONDS)
        malformed = result.exit_code is None and not result.timed_out
        return _git_state(self._gold_box, None if malformed else result.output)


def _git_state(box: NamespaceSandbox, output: str | None) -> State:
    session = FreshBashSession(box)
    entries = git_view.status(session)
    return State(output, status=entries, checksums=git_view.checksums(session, entries))
