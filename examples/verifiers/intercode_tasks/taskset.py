"""InterCode's tasks for verifiers: the model answers with code, the next message is its output."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from math import inf

import verifiers.v1 as vf
from pydantic import Field

import intercode
from intercode.datasets.load_cache import load_cached
from intercode.datasets.salt import secret_seed
from intercode.integrations.text_episode import MAX_TURNS, TextEpisode

_INSTRUCTION = (
    "Do the task step by step. Answer each message with one fenced block of code, which is run; "
    "the next message is its output. When you are done, answer with a block that holds {submit}."
)


class InterCodeData(vf.TaskData):
    """A task of a dataset, by its id, and how it is played."""

    environment: str
    dataset: str
    task: str
    seed: int
    max_turns: int
    prefix: tuple[str, ...]

    def begin(self) -> tuple[TextEpisode, list[str]]:
        """Begin an episode in a new environment, and return it with its first messages."""
        dataset = load_cached(self.dataset, self.environment)
        env = intercode.make(self.environment, dataset, max_turns=self.max_turns)
        try:
            episode = TextEpisode(env)
            return episode, episode.begin(self.task, self.seed, self.prefix)
        except BaseException:
            env.close()
            raise


class InterCodeState(vf.State):
    """The state of a rollout."""

    score: float | None = None
    """The score of the episode. None: nobody has played it."""


class InterCodeTask(vf.Task[InterCodeData, InterCodeState]):
    """A task. ``InterCodeEnv`` plays it."""

    @vf.reward
    async def intercode(self, trace: vf.Trace) -> float:
        """Return the score of the episode, or of a task that nobody has played."""
        score = trace.state.score
        return await asyncio.to_thread(self._untouched_score) if score is None else score

    async def validate(self, runtime: vf.Runtime) -> bool | None:  # noqa: ARG002
        """Return whether the task's solution scores 1, None if the dataset has no solution."""
        return await asyncio.to_thread(self._solution_scores)

    def _untouched_score(self) -> float:
        episode, _ = self.data.begin()
        with closing(episode.env):
            return episode.env.score().value

    def _solution_scores(self) -> bool | None:
        episode, _ = self.data.begin()
        with closing(episode.env) as env:
            if env.task.solution is None:
                return None
            printed = env.execute(env.task.solution).observation.strip()
            return bool(env.finish(printed if env.expects_answer else None).score.success)


class InterCodeConfig(vf.TasksetConfig):
    environment: str = "bash"
    """The environment, as in ``intercode.make``."""
    dataset: str = "starter"
    """The dataset, as in ``intercode.make``."""
    seed: int = Field(default_factory=secret_seed)
    """The seed of every episode; of ``families:`` without end, that of the first round of tasks.
    Unless set, one that nobody can guess: generators of tasks are public."""
    max_turns: int = MAX_TURNS
    """Answers of an episode. Then its present state is scored."""
    prefix: tuple[str, ...] = ()
    """Actions after which every episode begins. The rollouts of a task fork from the state after
    them. They count as turns."""


class InterCodeTaskset(vf.Taskset[InterCodeTask, InterCodeConfig]):
    """The tasks of a dataset, in its order. Those of task families without end come in rounds: one
    of each family and difficulty, then the same with the next seed."""

    def __init__(self, config: InterCodeConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.dataset.startswith("families:") and "@seed=" not in config.dataset

    def load(self) -> Iterator[InterCodeTask]:
        config = self.config
        dataset = load_cached(config.dataset, config.environment)
        with intercode.make(config.environment, dataset) as env:
            submit = "`submit ANSWER`" if env.expects_answer else "`submit`"
            names = [task.id for task in dataset.tasks]
        seed = config.seed
        while seed == config.seed or self.INFINITE:
            for name in names:
                yield InterCodeTask(
                    InterCodeData(
                        name=f"{name}@{seed}" if self.INFINITE else name,
                        system_prompt=_INSTRUCTION.format(submit=submit),
                        environment=config.environment,
                        dataset=config.dataset,
                        task=name,
                        seed=seed,
                        max_turns=config.max_turns,
                        prefix=config.prefix,
                    ),
                    config.task,
                )
            seed += 1


class InterCodeEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """The model. Its harness runs no code, so that it needs no sandbox of its own."""
    branches: int = Field(1, ge=1)
    """Continuations of an episode, each with a trace and a reward of its own."""
    branch_after: int = Field(1, ge=0)
    """Answers after which the episode is forked into its continuations. An episode that ends with
    them or before has one trace."""


class InterCodeEnv(vf.Env[InterCodeEnvConfig]):
    """Plays an episode in a sandbox of this process, and keeps its score for the reward.

    With ``branches``, the model gives the first answers once, and the live episode is then forked.
    The first trace goes on in it, each other one in a fork, with the messages so far as its prompt.
    If a sandbox fails, the episode fails, and is not scored: verifiers retries it.
    """

    async def run(self, task: InterCodeTask, agents: vf.Agents) -> None:
        first, messages = await asyncio.to_thread(task.data.begin)
        forks: list[TextEpisode] = []
        count = self.config.branches - 1
        try:
            async with agents.player.interaction(task) as interaction:
                shared = self.config.branch_after if count else 0
                message = await _play(interaction, first, "\n\n".join(messages), shared)
                if message is None:
                    return
                if count:
                    forks += await asyncio.to_thread(first.fork, count)
                said = [m for m in interaction.trace.messages if m.role != "system"]
                branch = task.with_data(prompt=[*said, vf.UserMessage(content=message)])
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_play(interaction, first, message))
                        for fork in forks:
                            group.create_task(_play_branch(agents, branch, fork))
                except ExceptionGroup as failed:
                    raise failed.exceptions[0] from None
        finally:
            for episode in (first, *forks):
                await asyncio.to_thread(episode.env.close)


async def _play_branch(agents: vf.Agents, task: InterCodeTask, episode: TextEpisode) -> None:
    """Play a fork to its end, in a trace that begins with the messages in the task's prompt."""
    async with agents.player.interaction(task) as interaction:
        await _play(interaction, episode, None)


async def _play(
    interaction: vf.Interaction, episode: TextEpisode, message: str | None, answers: float = inf
) -> str | None:
    """Play at most ``answers`` answers, and return the next message; None: the episode is over, and
    its score is in the state of the trace. Without ``message``, the prompt asks for the first."""
    while answers > 0:
        segment = await interaction.turn(message)
        if not segment.terminated:
            message = (await asyncio.to_thread(episode.answer, segment.last_reply)).message
        if segment.terminated or episode.done:
            over = episode.done
            score = episode.score if over else (await asyncio.to_thread(episode.env.score)).value
            interaction.trace.state.score = score
            return None
        answers -= 1
    return message
