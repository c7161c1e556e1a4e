"""InterCode's tasks for verifiers: the model answers with code, the next message is its output."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import verifiers.v1 as vf

import intercode
from intercode.datasets.load_cache import load_cached
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
    seed: int = 0
    """The seed of every episode; of ``families:`` without end, that of the first round of tasks."""
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


class InterCodeEnv(vf.Env[InterCodeEnvConfig]):
    """Plays an episode in a sandbox of this process, and keeps its score for the reward.

    If the sandbox fails, the episode fails, and is not scored: verifiers retries it.
    """

    async def run(self, task: InterCodeTask, agents: vf.Agents) -> None:
        episode, messages = await asyncio.to_thread(task.data.begin)
        try:
            async with agents.player.interaction(task) as interaction:
                message = "\n\n".join(messages)
                while not episode.done:
                    segment = await interaction.turn(message)
                    if segment.terminated:
                        break
                    message = (await asyncio.to_thread(episode.answer, segment.last_reply)).message
                score = episode.score
                if not episode.done:
                    score = (await asyncio.to_thread(episode.env.score)).value
                interaction.trace.state.score = score
        finally:
            await asyncio.to_thread(episode.env.close)
