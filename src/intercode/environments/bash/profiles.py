"""The two ways of playing and judging Bash: as it was meant, and as the authors' code does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base.layers import git_layer
from intercode.environments.base.workspaces import Place
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.base import Session
from intercode.sessions.bash import git_status
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.original import FreshBashSession
from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.bash.shell_state import SessionState

GOLD_SECONDS = 120.0
OpenPlace = Callable[[], Place]
ShellKind = Literal["persistent", "fresh", "fresh-carried"]
SHELLS = ("persistent", "fresh", "fresh-carried")


class BashProfile(Protocol):
    """What differs between the profiles. An instance belongs to one environment."""

    def spec(self, image: Image, layers: tuple[Layer, ...], network: Network) -> SandboxSpec:
        """What every box of an episode is made of."""
        ...

    def open_session(self, box: KeptSandbox, task: Task, state: SessionState | None) -> Session:
        """The session in which the agent's actions run, from a state if one is given."""
        ...

    def agent_state(
        self, box: KeptSandbox, session: Session, last: ExecResult | None, task: Task
    ) -> State:
        """What the agent has left behind, read without touching it."""
        ...

    def gold_states(
        self, task: Task, open_place: OpenPlace, known: Callable[[], list[State] | None]
    ) -> list[State]:
        """What each gold leaves behind. ``known`` tells what is kept of that, if anything is."""
        ...

    def close(self) -> None:
        """End what was kept for the episode."""
        ...


class Standard:
    """One shell per episode, or as ``shell`` says (see BashEnv); changes come from the overlay;
    each gold runs once, in a fresh box."""

    def __init__(
        self,
        shell: ShellKind = "persistent",
        apart: bool = False,
        look: Callable[[KeptSandbox, bool], str] = lambda _box, _gold: "",
    ) -> None:
        """``look`` gives ``State.look`` of a box in its end state, and whether that is a gold's."""
        self._shell, self._apart, self._look = shell, apart, look
        self._golds: list[State] | None = None

    def spec(self, image: Image, layers: tuple[Layer, ...], network: Network) -> SandboxSpec:
        return SandboxSpec(image, layers, network=network)

    def open_session(self, box: KeptSandbox, task: Task, state: SessionState | None) -> Session:
        session: Session
        if self._shell == "persistent":
            session = BashSession(box, cwd=task.cwd, state=state, apart=self._apart)
        else:
            carry = self._shell == "fresh-carried"
            session = FreshShellSession(box, task.cwd, state=state, carry=carry, apart=self._apart)
        if task.setup and state is None:
            result = session.run(task.setup, GOLD_SECONDS)
            if not result.ok:
                said = f"{result.exit_code}: {result.output.strip()!r}"
                raise GoldError(f"the setup of {task.id} failed with exit status {said}")
        return session

    def agent_state(
        self,
        box: KeptSandbox,
        session: Session,
        last: ExecResult | None,
        task: Task,  # noqa: ARG002
    ) -> State:
        changes = box.changes(still=True)
        shown = last.output if last else ""
        return State(shown, changes, cwd=session.cwd, look=self._look(box, False))

    def gold_states(
        self, task: Task, open_place: OpenPlace, known: Callable[[], list[State] | None]
    ) -> list[State]:
        if self._golds is None:
            self._golds = known()
        if self._golds is None:
            self._golds = [self._run(task, gold, open_place()) for gold in task.golds]
        return self._golds

    def _run(self, task: Task, gold: str, place: Place) -> State:
        try:
            result = place.session.run(gold, GOLD_SECONDS)
            if result.timed_out:
                raise GoldError(f"the gold of {task.id} did not end within {GOLD_SECONDS:g} s")
            return State(
                result.output, place.box.changes(), cwd=place.session.cwd,
                exit_code=result.exit_code, look=self._look(place.box, True),
            )  # fmt: skip
        finally:
            place.close()

    def close(self) -> None:
        self._golds = None


class Original:
    """A shell per action; git sees the changes; the gold runs again for every score, in one box per
    episode that git resets before each run, so that dates and ignored directories carry over."""

    def __init__(self) -> None:
        self._gold_box: KeptSandbox | None = None

    def spec(self, image: Image, layers: tuple[Layer, ...], network: Network) -> SandboxSpec:
        layers += (git_layer(image, layers),)
        return SandboxSpec(image, layers, network=network, look="docker")

    def open_session(
        self,
        box: KeptSandbox,
        task: Task,  # noqa: ARG002
        state: SessionState | None,
    ) -> Session:
        return FreshBashSession(box, state.cwd if state else "/")

    def agent_state(
        self,
        box: KeptSandbox,
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
        known: Callable[[], list[State] | None],  # noqa: ARG002
    ) -> list[State]:
        if self._gold_box is None:
            self._gold_box = open_place().box
            if self._gold_box.tier.startswith("container/"):
                git_status.refresh(FreshBashSession(self._gold_box))
        session = FreshBashSession(self._gold_box)
        session.execute(git_status.RESET, "/", GOLD_SECONDS)
        result = session.execute(task.golds[0], "/", GOLD_SECONDS)
        malformed = result.exit_code is None and not result.timed_out
        return [_git_state(self._gold_box, None if malformed else result.output)]

    def close(self) -> None:
        if self._gold_box is not None:
            self._gold_box.close()
        self._gold_box = None


def _git_state(box: KeptSandbox, output: str | None) -> State:
    session = FreshBashSession(box)
    entries = git_status.status(session)
    return State(output, status=entries, checksums=git_status.checksums(session, entries))
