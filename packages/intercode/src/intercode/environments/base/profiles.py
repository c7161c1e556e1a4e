"""Profiles: how an environment carries out actions and judges what they have reached.

Every environment has the profile ``standard``. Plug-ins add further ones to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from intercode.core.errors import UsageError
from intercode.core.packages import GYM
from intercode.core.types import ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base.settings import EnvironmentSettings
from intercode.sessions.base import Session
from intercode_sandbox import SandboxSpec
from intercode_sandbox.registry import Registry, unknown_name_error

STANDARD = "standard"
PROFILES = Registry("profile", {}, group="intercode.profiles", owner=GYM)
"""Classes of further profiles, by environment and profile: ``ENVIRONMENT-PROFILE``."""


class Profile:
    """How one environment plays: the session, the state of the agent, and those of the golds. An
    instance belongs to the environment whose settings it gets.

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

    def open_session(self, sandbox: Any, task: Task, state: Any) -> Any:  # noqa: ARG002
        """Return the session in which the agent's actions run, from a state if one is given.

        ``sandbox``: where the session runs; in SQL, an open connection to the database.
        """
        raise _missing_error("open_session")

    def agent_state(
        self,
        episode: Any,  # noqa: ARG002
        last: ExecResult | None,  # noqa: ARG002
        answer: str | None,  # noqa: ARG002
    ) -> State:
        """Read the state that the agent has reached, without changing it."""
        raise _missing_error("agent_state")

    def gold_states(self, episode: Any) -> Iterable[State]:  # noqa: ARG002
        """Return the state that each gold reaches, from runs that the agent cannot observe. An
        iterator runs a gold when its state is asked for."""
        raise _missing_error("gold_states")

    def require_gold(self, task: Task) -> None:
        """Raise GoldError if the task cannot be scored, as far as that is known without running its
        gold."""

    def sandbox_spec(
        self, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        """Return the specification of every sandbox of an episode."""
        return SandboxSpec(image, layers, network=network)

    def run_setup(self, session: Session, task: Task) -> None:
        """Run the setup of a task in a new session. Raises GoldError if it fails."""

    def close(self) -> None:
        """Release what was opened or computed for the episode."""


def _missing_error(method: str) -> UsageError:
    return UsageError(f"neither this environment nor its profile defines _{method}")


def find_profile(environment: type, name: str) -> type[Profile]:
    """Return a profile of a class of environments, or of one that it is derived from.

    Raises UnknownNameError for an unknown name, UsageError for a profile that only other
    environments have.
    """
    if name == STANDARD:
        found: type[Profile] = getattr(environment, "standard_profile", Profile)
        return found
    names = [vars(kind)["name"] for kind in environment.__mro__ if "name" in vars(kind)]
    for own in names:
        if (key := f"{own}-{name}") in PROFILES:
            further: type[Profile] = PROFILES.load(key)
            return further
    if any(key.endswith(f"-{name}") for key in PROFILES):
        raise UsageError(f"this environment has no profile {name!r}: leave out the profile")
    others = [
        key.removeprefix(f"{own}-")
        for own in names
        for key in PROFILES
        if key.startswith(f"{own}-")
    ]
    raise unknown_name_error("profile", name, [STANDARD, *others])


def has_exploits(name: str) -> bool:
    """Return whether a profile of any environment gives rewards that training must not learn
    from."""
    keys = [key for key in PROFILES if key.endswith(f"-{name}")]
    return any(PROFILES.load(key).has_exploits for key in keys)
