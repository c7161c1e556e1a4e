"""The profile ``standard`` of Bash, and what its other profiles implement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from intercode.core.errors import GoldError
from intercode.core.settings import setting
from intercode.core.types import TRUNCATED_CHANGES, ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.base.diffs.initial_files import changes_of_agent
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.probe import run_probe
from intercode.environments.base.profiles import GOLD_SECONDS, Profile
from intercode.environments.base.progress.initial_state import read_initial_state, read_texts
from intercode.environments.base.settings import SandboxSettings, is_flag
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.lines import split_lines
from intercode_sandbox.tiers.tier_table import tier_named

ShellKind = Literal["persistent", "fresh", "fresh-carried"]


@dataclass(frozen=True, kw_only=True)
class BashSettings(SandboxSettings):
    """The settings of Bash. The profile ``standard`` alone has other sessions than the first."""

    session: ShellKind = setting(
        "persistent",
        "persistent: one shell for the whole episode; fresh: a new shell per action, in the "
        "directory of the last one; fresh-carried: a new shell per action that also has the "
        "variables, functions and options of the last one",
        recorded=True,
        from_record=lambda value: isinstance(value, str),
    )
    separate_stderr: bool = setting(
        False,
        "the observation shows stderr after stdout instead of merged into it, and the reward "
        "ignores it",
        recorded=True,
        from_record=is_flag,
    )
    use_gold_cache: bool = setting(
        True,
        "golds that `check` has found to be stable do not run again to confirm a success",
        from_record=is_flag,
    )

    def recorded(self) -> dict[str, Any]:
        is_default = self.session == "persistent" and not self.separate_stderr
        return {"env_options": {}} if is_default else super().recorded()


class BashProfile(Profile):
    """A profile of Bash."""

    uses_gold_cache: bool = False
    """Whether stored results of golds may confirm a success."""

    def require_gold(self, task: Task) -> None:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")

    def may_cache_golds(self, episode: EpisodeContext) -> bool:  # noqa: ARG002
        """Return whether golds may be cached; see ``gold_cache.CachesGolds``."""
        return False

    def cache_golds(
        self,
        episode: EpisodeContext,  # noqa: ARG002
        states: Sequence[State],  # noqa: ARG002
    ) -> bool:
        """Save the golds' states; see ``gold_cache.CachesGolds``."""
        return False


class StandardBashProfile(BashProfile):
    """One shell per episode, or as ``session`` says (see BashEnv). Changes are read from the
    overlay. A gold runs at most once, in a fresh sandbox."""

    def __init__(self, settings: BashSettings) -> None:
        self._shell: ShellKind = settings.session
        self._separate_stderr = settings.separate_stderr
        self.uses_gold_cache = settings.use_gold_cache
        self._golds: list[State] | None = None
        self._cached: list[State] = []  # those of the golds that have not run in the episode
        self._spec: SandboxSpec | None = None  # the last one, as most episodes have an equal one

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        last = self._spec
        if last is None or (last.image, last.layers, last.network) != (image, layers, network):
            self._spec = last = super().sandbox_spec(task, image, layers, network)
        return last

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        session: Session
        if self._shell == "persistent":
            session = BashSession(
                sandbox, cwd=task.cwd, state=state, separate_stderr=self._separate_stderr
            )
        else:
            carry_state = self._shell == "fresh-carried"
            session = FreshShellSession(
                sandbox,
                task.cwd,
                state=state,
                carry_state=carry_state,
                separate_stderr=self._separate_stderr,
            )
        return session

    def prepare(self, workspace: SandboxWorkspace, task: Task) -> None:
        if not task.setup:
            return
        result = workspace.run(task.setup, GOLD_SECONDS)
        if not result.ok:
            failure = f"{result.exit_code}: {result.output.strip()!r}"
            raise GoldError(f"the setup of {task.id} failed with exit status {failure}")

    def agent_state(
        self, episode: EpisodeContext, last: ExecResult | None, answer: str | None
    ) -> State:
        here = episode.workspace
        changes = changes_of_agent(here.sandbox, episode.task, pause=True)
        initial_files, initial_texts = read_initial_state(here.sandbox, episode.task, changes)
        return State(
            last.output if last else "",
            changes,
            cwd=here.cwd,
            probe_output=run_probe(episode, here.sandbox, gold=False),
            texts=read_texts(here.sandbox, changes),
            initial_files=initial_files,
            initial_texts=initial_texts,
            answer=answer,
        )

    def gold_states(self, episode: EpisodeContext) -> Iterator[State]:
        """Yield the state that each gold leaves. A gold runs once in an episode, when its state is
        asked for."""
        if self._golds is None:
            self._cached = self.cached_golds(episode) or []
            self._golds = self._cached.copy()
        for number, gold in enumerate(episode.task.golds):
            if number == len(self._golds):
                self._golds.append(self._run_gold(episode, gold))
            yield self._golds[number]

    def _run_gold(self, episode: EpisodeContext, gold: str) -> State:
        task = episode.task
        with episode.gold_workspace() as workspace:
            sandbox = workspace.sandbox
            prepared = changes_of_agent(sandbox, task) if task.setup else {}
            prepared_texts = read_texts(sandbox, prepared)
            result = workspace.run(gold, GOLD_SECONDS)
            if result.timed_out:
                raise GoldError(f"the gold of {task.id} did not end within {GOLD_SECONDS:g} s")
            changes = changes_of_agent(sandbox, task)
            if TRUNCATED_CHANGES in changes:
                raise GoldError(f"the gold of {task.id} changes more files than can be compared")
            if unread := [path for path, entry in changes.items() if entry.is_unread]:
                raise GoldError(
                    f"setup and gold of {task.id} change more content than is read to compare it, "
                    f"as in {unread[0]}: put large files into the image of the task"
                )
            initial_files, initial_texts = read_initial_state(sandbox, task, changes)
            return State(
                result.output,
                changes,
                cwd=workspace.cwd,
                exit_code=result.exit_code,
                probe_output=run_probe(episode, sandbox, gold=True),
                texts=read_texts(sandbox, changes),
                initial_files=initial_files | prepared,
                initial_texts=initial_texts | prepared_texts,
            )

    # ------------------------------------------------------------- gold cache
    def cached_golds(self, episode: EpisodeContext) -> list[State] | None:
        """Return the states of the first golds from the cache, or None if all have to run."""
        if not self.uses_gold_cache or episode.task.probe is not None:  # no probe output is cached
            return None
        return gold_cache.load_golds(episode.task, episode.spec, self._shell_key(episode))

    def rerun_cached_golds(self, episode: EpisodeContext) -> bool:
        if not self._cached or self._golds is None:
            return False
        golds = episode.task.golds[: len(self._cached)]
        reached = [self._run_gold(episode, gold) for gold in golds]
        cached, self._cached = self._cached, []
        self._golds[: len(cached)] = reached
        if reached == cached:
            return False
        gold_cache.remove_golds(episode.task, episode.spec, self._shell_key(episode))
        return True

    def may_cache_golds(self, episode: EpisodeContext) -> bool:
        return episode.task.probe is None and gold_cache.may_cache(episode.spec)

    def cache_golds(self, episode: EpisodeContext, states: Sequence[State]) -> bool:
        if not self.may_cache_golds(episode):
            return False
        return gold_cache.save_golds(episode.task, episode.spec, self._shell_key(episode), states)

    def _shell_key(self, episode: EpisodeContext) -> str:
        """Return the kind of shell and sandbox, as a part of the gold cache's key."""
        shell = f"{self._shell}, separate stderr" if self._separate_stderr else self._shell
        tier = episode.tier
        return shell if tier_named(tier).own_layers else f"{shell}, {tier}"

    def close(self) -> None:
        self._golds, self._cached = None, []


def gold_failure(state: State) -> str:
    """Return why the state that a gold left cannot be scored against, empty if it can.

    A gold fails with an exit status above 1, if its shell is killed, and with 1 if it has done
    nothing but print errors: ``grep`` and ``diff`` return 1 for `no`.
    """
    lines = [line for line in split_lines(state.output or "") if line.strip()]
    only_errors = bool(lines) and not state.files and all(map(_ERROR_LINE.fullmatch, lines))
    if state.exit_code == 0 or (state.exit_code == 1 and not only_errors):
        return ""
    how = "its shell is killed" if state.exit_code is None else f"exit status {state.exit_code}"
    return f"{how}, after it printed {lines[-1]!r:.200}" if lines else f"{how}, without any output"


_ERROR_LINE = re.compile(r"(?!.*/proc/).+: (?:command not found|No such file or directory)")
"""An error that says that a gold cannot work. Files of processes come and go."""
