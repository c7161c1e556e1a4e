"""InterCode's tasks for verifiers: the model answers with code, the next message is its output."""

import asyncio
from collections.abc import Iterator

import verifiers.v1 as vf

import intercode
from intercode.agents.base import Feedback
from intercode.agents.parsing import language_of, parse_answer
from intercode.agents.prompt import format_observation

_INSTRUCTION = (
    "Do the task step by step. Answer each message with one fenced block of code, which is run; "
    "the next message is its output. When you are done, answer with a block that holds {submit}."
)
_NO_CODE = "No code was found in your answer. Write it in one fenced block."
_OBSERVATION_LIMIT = 4000  # characters of an observation that the model is sent


class InterCodeData(vf.TaskData):
    """A task of a dataset, by its id, and how it is played."""

    environment: str
    dataset: str
    task: str
    seed: int
    max_turns: int


class InterCodeTask(vf.Task[InterCodeData]):
    """A task. The environment that plays it records the reward."""


class InterCodeConfig(vf.TasksetConfig):
    environment: str = "bash"
    """The environment, as in ``intercode.make``."""
    dataset: str = "starter"
    """The dataset, as in ``intercode.make``."""
    seed: int = 0
    """The seed of every episode."""
    max_turns: int = 10
    """Answers of an episode. Then its present state is scored."""


class InterCodeTaskset(vf.Taskset[InterCodeTask, InterCodeConfig]):
    """The tasks of a dataset, in its order."""

    def load(self) -> Iterator[InterCodeTask]:
        config = self.config
        with intercode.make(config.environment, config.dataset) as env:
            submit = "`submit ANSWER`" if env.expects_answer else "`submit`"
            for task in env.dataset.tasks:
                yield InterCodeTask(
                    InterCodeData(
                        name=task.id,
                        system_prompt=_INSTRUCTION.format(submit=submit),
                        environment=config.environment,
                        dataset=config.dataset,
                        task=task.id,
                        seed=config.seed,
                        max_turns=config.max_turns,
                    ),
                    config.task,
                )


class InterCodeEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """The model. Its harness runs no code, so that it needs no sandbox of its own."""


class InterCodeEnv(vf.Env[InterCodeEnvConfig]):
    """Plays an episode in a sandbox of this process, and records its score as the reward."""

    async def run(self, task: InterCodeTask, agents: vf.Agents) -> None:
        data = task.data
        env = await asyncio.to_thread(intercode.make, data.environment, data.dataset)
        try:
            options = {"task": data.task}
            message, _ = await asyncio.to_thread(env.reset, seed=data.seed, options=options)
            async with agents.player.interaction(task) as interaction:
                for _ in range(data.max_turns):
                    segment = await interaction.turn(message)
                    code = parse_answer(segment.last_reply, language_of(data.environment)).code
                    if segment.terminated:
                        break
                    if code is None:
                        message = _NO_CODE
                        continue
                    result = await asyncio.to_thread(env.execute, code)
                    if result.done:
                        break
                    feedback = Feedback(result.observation, result.valid, result.timed_out)
                    message, _ = format_observation(feedback, _OBSERVATION_LIMIT)
            score = await asyncio.to_thread(env.score)
            interaction.trace.record_reward("intercode", score.value)
        finally:
            await asyncio.to_thread(env.close)
