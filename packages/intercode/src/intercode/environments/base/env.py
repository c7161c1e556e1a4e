"""The base class of every environment: Gymnasium's contract, tasks, turns, submitting, scoring."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from intercode.core.errors import (
    SandboxKilledError,
    SandboxLostError,
)
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import (
    ActionLanguage,
    Brief,
    Dataset,
    EnvironmentDescription,
    Payload,
    Score,
    Step,
    Task,
)
from intercode.environments.base.episode import (
    Episode,
    EpisodeEnvironment,
    Snapshots,
)
from intercode.environments.base.options import (
    check_columns,
    checked_seed,
    choose_task,
    default_reward,
    names_along_bases,
    pick_dataset,
    pick_reward,
)
from intercode.environments.base.policy import PolicyGuard
from intercode.environments.base.profiles import Profile, find_profile
from intercode.environments.base.rewards import open_episode_reward
from intercode.environments.base.settings import EnvironmentSettings
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot, check_snapshot
from intercode.environments.base.spaces import FreeText
from intercode.environments.base.tools.servers import EpisodeTools

MAX_ACTION_LENGTH = 1 << 17


class InterCodeEnv(EpisodeEnvironment):
    """An environment whose actions are code and whose observations are execution feedback.

    ``dataset``: ``name[:subset]``, a file, or a Dataset. ``settings``: the fields of
    ``settings_class``.

    A subclass opens workspaces (``open_workspace``); its profile reads the states that are
    compared. It may save workspaces in a better way than by their actions (``snapshots_class``).
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]
    name: ClassVar[str]
    settings_class: ClassVar[type[EnvironmentSettings]] = EnvironmentSettings
    """Declares the settings that the environment is made with."""
    scoring_version: ClassVar[int] = 1
    """Increased by every change after which the same episode is scored differently."""
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(ActionLanguage("code"))
    """What agents, policies, statistics and exports need to know of the environment."""
    scores_output: ClassVar[bool] = True
    """Whether what an action prints, or the scoring prints, may be a part of the result. If not,
    two runs of a gold are the same if they have the same state and reward."""
    payload_type: ClassVar[type[Payload]] = Payload
    """The columns that this environment reads of a task."""
    snapshots_class: ClassVar[type[Snapshots]] = Snapshots
    """Saves and restores workspaces."""
    standard_profile: ClassVar[type[Profile]]
    """The profile ``standard`` of this environment."""

    @staticmethod
    def obstacle_for_programs(task: Task) -> str:  # noqa: ARG004
        """Return what keeps a program as agent from playing a task, which would get the instruction
        once and act as root: ``several steps``, for example. Empty if nothing does."""
        return ""

    def __init__(self, dataset: str | Dataset = "starter", **settings: Any) -> None:
        self.settings = given = self.settings_class(**settings)
        self.profile_class = find_profile(type(self), given.profile)
        self._profile_impl = self.profile_class(given)
        self.determinism = given.determinism()
        self.hashes = self.determinism is not None if given.hashes is None else given.hashes
        self.policy = PolicyGuard(given.policy, self.name, self.description.language)
        self.tools = EpisodeTools(given.mcp)
        self.snapshots = self.snapshots_class(self)
        self.dataset = pick_dataset(dataset, *names_along_bases(type(self)))
        check_columns(self.dataset, self.payload_type)
        self.profile, self.backend, self.network = given.profile, given.backend, given.network
        self.image_name = given.image or self.dataset.image
        self.timeout, self.max_turns = given.timeout, given.max_turns
        self.render_mode = given.render_mode
        self.reward_name, self.reward_function = pick_reward(
            given.reward,
            self.dataset,
            self.profile_class.follows_dataset,
            default_reward(type(self), self.profile),
        )
        self.episode_reward = open_episode_reward(given.reward, self.dataset, vars(given))
        self.action_space = FreeText(MAX_ACTION_LENGTH)
        self.observation_space = FreeText(MAX_OBSERVATION_LENGTH)

    # ------------------------------------------------------------- Gymnasium
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode, and end the one before.

        Args:
            seed: A whole number of at least 0, from which a random task is drawn and a task that
                varies is made. None: a random number.
            options: ``{"task": …}`` selects the task by position or by id, also by the id of a
                drawn task, whose own seed then counts. None: a random task.

        Returns:
            The query, and ``{"task": id, "index": position}``.

        Raises:
            UnknownNameError: The dataset has no task with this id, or the option is unknown.
            UsageError: The seed or the position is invalid.
            InfrastructureError: The machine failed.
        """
        super().reset(seed=checked_seed(seed))
        index, task, task_seed = choose_task(self.dataset, options or {}, seed, self.np_random)
        self.end_episode()
        self._current = episode = Episode(self, task, index, task_seed)
        try:
            episode.workspace = self.open_workspace()
        except SandboxKilledError as e:  # nothing of the agent has run yet
            raise SandboxLostError(str(e)) from e
        episode.start()
        return task.query[:MAX_OBSERVATION_LENGTH], {"task": task.id, "index": index}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute code, or submit: ``execute``, as Gymnasium returns it."""
        return self.execute(action).as_gymnasium()

    def submit(self, answer: str | None = None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Submit, with or without an answer: ``finish``, as Gymnasium returns it."""
        return self.finish(answer).as_gymnasium()

    def render(self) -> str | None:
        """Return the transcript of the episode, or None unless ``render_mode`` is ``ansi``."""
        if self.render_mode != "ansi":
            return None
        return "" if self._current is None else "\n".join(self._current.transcript)

    def end_episode(self) -> None:
        """End the episode and free its sandbox. ``reset`` begins another. May be called again."""
        self._profile_impl.close()
        if self._current is not None:
            self._current.close()

    def close(self) -> None:
        """End the episode and free every resource. May be called again."""
        self.end_episode()
        if self.episode_reward is not None:
            self.episode_reward.close()

    def abort(self) -> None:
        """Interrupt the call that another thread makes, which then raises InfrastructureError."""
        for part in (self._current, self.tools, self.episode_reward):
            if part is not None:
                part.abort()

    # -------------------------------------------------- beyond Gymnasium's API
    @property
    def task(self) -> Task:
        """The task of the episode."""
        return self.episode.task

    @property
    def index(self) -> int:
        """The position of the task in the dataset."""
        return self.episode.index

    @property
    def task_seed(self) -> int | None:
        """The seed from which the task was instantiated. None: the task never varies."""
        return self.episode.seed

    @property
    def brief(self) -> Brief:
        """The part of the current task that an agent may see."""
        return self.brief_of(self.task)

    def execute(self, action: str) -> Step:
        """Execute code, or submit; see ``Episode.execute``."""
        return self.episode.execute(action)

    def finish(self, answer: str | None = None) -> Step:
        """Submit, with or without an answer; see ``Episode.finish``."""
        return self.episode.finish(answer)

    def score(self) -> Score:
        """Return the score of the present state; see ``Episode.score``."""
        return self.episode.score()

    def brief_of(self, task: Task) -> Brief:
        """Return the part of a task that an agent may see. No episode needs to run."""
        payload = self.payload_type.of(task)
        return Brief(
            task.id,
            task.query,
            self.name,
            self.max_turns,
            payload.notes,
            self.expects_answer,
            self.tools.tools,
            payload.only_changes and self.profile_class.follows_dataset,
            self.description_of(task),
        )

    def description_of(self, task: Task) -> EnvironmentDescription:  # noqa: ARG002
        """Return the description for a task, which may have a language of its own."""
        return self.description

    @property
    def expects_answer(self) -> bool:
        """Whether the submitted answer is scored, and not the state of the sandbox."""
        return self.description.expects_answer

    def check_gold(self) -> None:
        """Raise GoldError if the current task cannot be scored because its gold fails.

        ``score`` uses what the gold has reached here, so that it runs once. In a profile that does
        not run golds apart from the agent, it does not run here, and must only be there.
        """
        self._profile_impl.require_gold(self.task)
        if self.profile_class.runs_golds_separately:
            list(self.episode.reached_golds())

    @property
    def working_directory(self) -> str:
        """The directory, or the database, in which the next action runs. Empty before ``reset``."""
        workspace = None if self._current is None else self._current.workspace
        return "" if workspace is None else workspace.cwd

    def snapshot(self) -> EnvironmentSnapshot:
        """Save the state of the running episode, for ``restore`` of this or another environment.

        Raises:
            EnvironmentStateError: No episode is running.
        """
        return self.episode.snapshot()

    def restore(self, snapshot: EnvironmentSnapshot, *, consume: bool = False) -> None:
        """Continue from a snapshot of this dataset, and end the episode before.

        Args:
            snapshot: What ``snapshot`` returned, of this or another environment.
            consume: The snapshot will not be restored again, so that its files need not be copied.

        Raises:
            UsageError: It is no snapshot.
        """
        check_snapshot(snapshot)
        self.end_episode()
        self._current = episode = Episode.of_snapshot(self, snapshot)
        self.np_random.bit_generator.state = snapshot.random_state
        episode.workspace = self.snapshots.restore(snapshot.captured, consume)
        episode.start()

    def fork(self, n: int = 1) -> list[Self]:
        """Return independent environments in the state of this one. The caller closes them.

        Args:
            n: How many.

        Raises:
            EnvironmentStateError: No episode is running.
            UsageError: ``n`` is less than 1.
        """
        return [episode.env for episode in self.episode.fork(n)]  # type: ignore[misc]

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata that every result of this environment records."""
        return {
            "environment": self.name,
            "profile": self.profile,
            "reward": self.reward_name,
            "scoring": f"{self.name}-{self.scoring_version}",
            "dataset": self.dataset.name,
            "dataset_hash": self.dataset.hash,
            "comparable": self.dataset.comparable,
            "timeout": self.timeout,
            "network": self.network,
            "policy": self.policy.metadata(),
            **self.tools.metadata(),
            **self.settings.recorded(),
        }
