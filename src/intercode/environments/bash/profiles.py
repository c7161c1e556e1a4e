"""The two ways of playing and judging Bash: as it was meant, and as the authors' code does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base.layers import git_layer
from intercode.environments.base.workspaces import Workspace
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash import git_status
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.original import OriginalBashSession
from intercode.sessions.bash.persistent import BashSession

GOLD_SECONDS = 120.0
OpenPlace = Callable[[], Workspace]
ShellKind = Literal["persistent", "fresh", "fresh-carried"]
SHELL_KINDS = ("persistent", "fresh", "fresh-carried")


class BashProfile(Protocol):
    """What differs between the profiles. An instance belongs to one environment."""

    def sandbox_spec(
        self, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        """What every box of an episode is made of."""
        ...

    def open_session(
        self, box: SupervisedSandbox, task: Task, state: SessionState | None
    ) -> Session:
        """The session in which the agent's actions run, from a state if one is given."""
        ...

    def agent_state(
        self, box: SupervisedSandbox, session: Session, last: ExecResult | None, task: Task
    ) -> State:
        """What the agent has left behind, read without touching it."""
        ...

    def gold_states(
        self, task: Task, open_place: OpenPlace, cached: Callable[[], list[State] | None]
    ) -> list[State]:
        """What each gold leaves behind. ``known`` tells what is kept of that, if anything is."""
        ...

    def close(self) -> None:
        """End what was kept for the episode."""
        ...


class StandardBashProfile:
    """One shell per episode, or as ``shell`` says (see BashEnv); changes come from the overlay;
    each gold runs once, in a fresh box."""

    def __init__(
        self,
        shell: ShellKind = "persistent",
        separate_stderr: bool = False,
        probe: Callable[[SupervisedSandbox, bool], str] = lambda _box, _gold: "",
    ) -> None:
        """``look`` gives ``State.look`` of a box in its end state, and whether that is a gold's."""
        self._shell, self._separate_stderr, self._probe = shell, separate_stderr, probe
        self._golds: list[State] | None = None

    def sandbox_spec(
        self, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        return SandboxSpec(image, layers, network=network)

    def open_session(
        self, box: SupervisedSandbox, task: Task, state: SessionState | None
    ) -> Session:
        session: Session
        if self._shell == "persistent":
            session = BashSession(
                box, cwd=task.cwd, state=state, separate_stderr=self._separate_stderr
            )
        else:
            carry = self._shell == "fresh-carried"
            session = FreshShellSession(
                box, task.cwd, state=state, carry_state=carry, separate_stderr=self._separate_stderr
            )
        if task.setup and state is None:
            result = session.run(task.setup, GOLD_SECONDS)
            if not result.ok:
                said = f"{result.exit_code}: {result.output.strip()!r}"
                raise GoldError(f"the setup of {task.id} failed with exit status {said}")
        return session

    def agent_state(
        self,
        box: SupervisedSandbox,
        session: Session,
        last: ExecResult | None,
        task: Task,  # noqa: ARG002
    ) -> State:
        changes = box.changes(pause=True)
        shown = last.output if last else ""
        return State(shown, changes, cwd=session.cwd, probe_output=self._probe(box, False))

    def gold_states(
        self, task: Task, open_place: OpenPlace, cached: Callable[[], list[State] | None]
    ) -> list[State]:
        if self._golds is None:
            self._golds = cached()
        if self._golds is None:
            self._golds = [self._run_gold(task, gold, open_place()) for gold in task.golds]
        return self._golds

    def _run_gold(self, task: Task, gold: str, place: Workspace) -> State:
        try:
            result = place.session.run(gold, GOLD_SECONDS)
            if result.timed_out:
                raise GoldError(f"the gold of {task.id} did not end within {GOLD_SECONDS:g} s")
            return State(
                result.output, place.sandbox.changes(), cwd=place.session.cwd,
                exit_code=result.exit_code, probe_output=self._probe(place.sandbox, True),
            )  # fmt: skip
        finally:
            place.close()

    def close(self) -> None:
        self._golds = None


class OriginalBashProfile:
    """A shell per action; git sees the changes; the gold runs again for every score, in one box per
    episode that git resets before each run, so that dates and ignored directories carry over."""

    def __init__(self) -> None:
        self._gold_sandbox: SupervisedSandbox | None = None

    def sandbox_spec(
        self, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        layers += (git_layer(image, layers),)
        return SandboxSpec(image, layers, network=network, appearance="docker")

    def open_session(
        self,
        box: SupervisedSandbox,
        task: Task,  # noqa: ARG002
        state: SessionState | None,
    ) -> Session:
        return OriginalBashSession(box, state.cwd if state else "/")

    def agent_state(
        self,
        box: SupervisedSandbox,
        session: Session,  # noqa: ARG002
        last: ExecResult | None,
        task: Task,
    ) -> State:
        output = last.output if last else task.query  # theirs starts as the query
        with box.clone() as copy:
            return _git_state(copy, output)

    def gold_states(
        self,
        task: Task,
        open_place: OpenPlace,
        cached: Callable[[], list[State] | None],  # noqa: ARG002
    ) -> list[State]:
        if self._gold_sandbox is None:
            self._gold_sandbox = open_place().sandbox
            if self._gold_sandbox.tier.startswith("container/"):
                git_status.refresh(OriginalBashSession(self._gold_sandbox))
        session = OriginalBashSession(self._gold_sandbox)
        session.execute(git_status.RESET, "/", GOLD_SECONDS)
        result = session.execute(task.golds[0], "/", GOLD_SECONDS)
        malformed = result.exit_code is None and not result.timed_out
        return [_git_state(self._gold_sandbox, None if malformed else result.output)]

    def close(self) -> None:
        if self._gold_sandbox is not None:
            self._gold_sandbox.close()
        self._gold_sandbox = None


def _git_state(box: SupervisedSandbox, output: str | None) -> State:
    session = OriginalBashSession(box)
    entries = git_status.status(session)
    return State(output, status=entries, checksums=git_status.checksums(session, entries))
