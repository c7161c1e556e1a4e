"""Profiles: how an environment carries out actions and judges what they have reached.

Every environment has the profile ``standard``, its attribute ``standard_profile``. Plug-ins add
further ones to it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from intercode.core.errors import UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.types import ExecResult, Image, Layer, Network, Score, State, Task
from intercode.environments.base.settings import EnvironmentSettings
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode_sandbox import SandboxSpec
from intercode_sandbox.registry import Registry, unknown_name_error

STANDARD = "standard"
GOLD_SECONDS = 120.0
"""Time limit of a gold, and of the setup of a task."""
PROFILES = Registry("profile", {}, group="intercode.profiles", owner=GYM_DISTRIBUTION)
"""Classes of further profiles, by environment and profile: ``ENVIRONMENT-PROFILE``."""


class Profile(ABC):
    """How one environment plays: the session, the state of the agent, and those of the golds. An
    instance belongs to the environment whose settings it gets. These three methods have to be
    written; the others have defaults.

    ``name``: what results record. ``has_exploits``: whether it gives rewards that training must not
    learn from. ``runs_golds_separately``: whether golds run on the initial state and apart from the
    agent, so that what they reach can be found in advance, and one that fails is a fault of its
    task. ``follows_dataset``: whether a dataset may say how its tasks are scored.
    """

    name: ClassVar[str] = STANDARD
    has_exploits: ClassVar[bool] = False
    runs_golds_separately: ClassVar[bool] = True
    follows_dataset: ClassVar[bool] = True

    def __init__(self, settings: EnvironmentSettings) -> None:
        """Read what the profile needs of an environment's settings."""

    @abstractmethod
    def open_session(self, sandbox: Any, task: Task, state: Any) -> Any:
        """Return the session in which the agent's actions run, in the state that
        ``Session.state`` returned if one is given.

        ``sandbox``: where the session runs; in SQL, an open connection to the database.
        """

    @abstractmethod
    def agent_state(self, episode: Any, last: ExecResult | None, answer: str | None) -> State:
        """Read the state that the agent has reached, without changing it.

        ``episode``: an ``EpisodeContext``; of an environment without a sandbox, its ``Episode``.
        ``last``: the result of the last action. ``answer``: what was submitted.
        """

    @abstractmethod
    def gold_states(self, episode: Any) -> Iterable[State]:
        """Return the state that each gold reaches, from runs that the agent cannot observe. An
        iterator runs a gold when its state is asked for."""

    def rerun_cached_golds(self, episode: Any) -> bool:
        """Run the golds whose states ``gold_states`` has taken from a cache, once in an episode.
        Return whether one of them has reached another state."""
        return False

    def require_gold(self, task: Task) -> None:
        """Raise GoldError if the task cannot be scored, as far as that is known without running its
        gold."""

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        """Return the specification of every sandbox of an episode of a task."""
        return SandboxSpec(image, layers, network=network)

    def session_key(self, task: Task) -> Any:
        """Return what a new session depends on of a task, beside its directory. A session that was
        opened ahead serves any task with an equal key."""
        return None

    def prepare(self, workspace: SandboxWorkspace, task: Task) -> None:
        """Bring a new workspace into the state in which a task begins. Raises GoldError if that
        fails, UsageError for a ``setup`` that the profile does not run."""
        if task.setup:
            raise UsageError(
                f"{task.id} has a setup, which this environment does not run: give what it makes "
                "as `files` or `initial_files`, or write `prepare` in a profile of your own"
            )

    def reply_to_answer(self, episode: Any, score: Score) -> tuple[str, bool] | None:
        """Return the observation with which an ``Episode`` goes on after an answer, and whether the
        answer is refused. None: the answer ends the episode."""
        return None

    def close(self) -> None:
        """Release what was opened or computed for the episode."""


def find_profile(environment: type, name: str) -> type[Profile]:
    """Return a profile of a class of environments, or of one that it is derived from.

    Raises UnknownNameError for an unknown name, UsageError for a profile that only other
    environments have.
    """
    if name == STANDARD:
        standard: type[Profile] | None = getattr(environment, "standard_profile", None)
        if standard is None:
            raise UsageError(
                f"{environment.__name__} has no standard_profile: name a class with the methods of "
                "intercode.environments.Profile"
            )
        return _checked(standard)
    names = [vars(kind)["name"] for kind in environment.__mro__ if "name" in vars(kind)]
    for own in names:
        if (key := f"{own}-{name}") in PROFILES:
            return _checked(PROFILES.load(key))
    if any(key.endswith(f"-{name}") for key in PROFILES):
        raise UsageError(f"this environment has no profile {name!r}: leave out the profile")
    others = [
        key.removeprefix(f"{own}-")
        for own in names
        for key in PROFILES
        if key.startswith(f"{own}-")
    ]
    raise unknown_name_error("profile", name, [STANDARD, *others])


def _checked(profile: type[Profile]) -> type[Profile]:
    """Return a profile. Raises UsageError if it lacks one of the three methods."""
    if inspect.isabstract(profile):
        missing = ", ".join(sorted(profile.__abstractmethods__))
        raise UsageError(f"the profile {profile.__module__}:{profile.__name__} lacks {missing}")
    return profile


def require_profile(name: str) -> None:
    """Raise UnknownNameError for a name that no environment has a profile of."""
    known = {STANDARD, *(key.rpartition("-")[2] for key in PROFILES)}
    if name not in known and not any(key.endswith(f"-{name}") for key in PROFILES):
        raise unknown_name_error("profile", name, sorted(known))


def has_exploits(name: str) -> bool:
    """Return whether a profile of any environment gives rewards that training must not learn
    from."""
    keys = [key for key in PROFILES if key.endswith(f"-{name}")]
    return any(PROFILES.load(key).has_exploits for key in keys)
