"""Plays an episode of an environment with an agent, and branches of an episode with several."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from intercode.agents.base import Agent
from intercode.agents.programs import ProgramAgent
from intercode.core.errors import BudgetError, UsageError
from intercode.core.types import (
    ActionError,
    AgentOutput,
    Brief,
    EndReason,
    Score,
    Step,
    Trajectory,
    Usage,
)
from intercode.environments.base.contract import BranchingEnvironment, Environment
from intercode.evaluation.programs.episode import play_program
from intercode.evaluation.saving import EpisodeSaver
from intercode.evaluation.tracebacks import action_error_metadata
from intercode.evaluation.tracking.base import EpisodeTracker


def rollout(
    agent: Agent,
    env: Environment,
    task: int | str,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
    check_gold: bool = False,
    tracker: EpisodeTracker | None = None,
    is_limited: bool = False,
    check: Callable[[], None] | None = None,
    saver: EpisodeSaver | None = None,
) -> Trajectory:
    """Play one task to its end and return its record.

    The episode ends when the agent submits or stops, at the turn limit, and at a limit of the
    episode on tokens, cost or time. It also ends when what ran in the sandbox ended it and, with an
    agent that sees its score after each turn, when that score is 1 (unless ``ends_when_solved`` is
    false). If an action causes an exception while the machine works, the episode ends with the
    score 0 (``action_error``). A final state that was not scored yet is scored.

    Where nothing limits the turns and the agent does not stop by itself, 100 turns without code in
    a row end the episode (``agent_stopped``), and so do 1000 turns (``turn_limit``; its ``run`` has
    this number as ``turn_limit``).

    Args:
        agent: The agent, which is started.
        env: The environment. It stays open.
        task: The position or id of the task.
        seed: The seed of the episode; None: a random one.
        max_turns: The turn limit, if the agent and the environment have no lower one. A turn
            without code counts.
        check_gold: Whether the gold of the task has to run before the agent begins, so that no
            model is paid for an episode that cannot be scored.
        tracker: Is told of turns and actions.
        is_limited: Whether the agent or ``check`` raises BudgetError some time, so that no other
            limit is needed.
        check: Is called before each of the agent's decisions, and may raise BudgetError.
        saver: Saves the episode after its turns. What it has saved already is not played again: the
            agent is told of these turns, with the answers that its model gave, and has to do the
            same again; ``run`` says under ``resumed`` where it went on. Programs are not saved.

    Raises:
        GoldError: The gold of the task fails, and ``check_gold`` is true.
        UsageError: There is no such task, or the agent does not do again what was saved.
        InfrastructureError: A sandbox or a model failed. The episode has no result.
        BudgetError: A limit of the run was reached. The episode has no result.
    """
    started = time.monotonic()
    env.reset(seed=seed, options={"task": task})
    if check_gold:
        env.check_gold()
    if isinstance(agent, ProgramAgent):
        steps, end, failure = play_program(agent, env, max_turns=max_turns, tracker=tracker)
        return make_trajectory(env, steps, end, time.monotonic() - started, failure)
    agent.start(env.brief)
    return play(
        agent,
        env,
        max_turns=max_turns,
        started=started,
        tracker=tracker,
        is_limited=is_limited,
        check=check,
        saver=saver,
    )


def rollout_branches(
    env: BranchingEnvironment,
    parent: Trajectory,
    agents: Iterable[Agent],
    *,
    max_turns: int | None = None,
    score_final: bool = True,
) -> Iterator[Trajectory]:
    """Continue a running episode with each agent, each time from the same snapshot.

    The branches are played one after another in ``env``, on demand. A branch that has not submitted
    can itself be branched before the next one, so that a tree needs one snapshot per level and one
    sandbox. The notes of an agent's brief list the steps of ``parent`` since its last restart.

    Args:
        env: The environment, in which the episode runs.
        parent: The record of the episode so far.
        agents: The agents, which are started.
        max_turns: The turn limit, if the agent and the environment have no lower one.
        score_final: Whether a final state is scored that was not scored for its agent.

    Yields:
        The record of each branch, with ``parent`` as its parent.

    Raises:
        EnvironmentStateError: No snapshot can be taken.
        InfrastructureError: A sandbox or a model failed.
        BudgetError: A limit of the run was reached.

    >>> import intercode
    >>> from intercode.agents import Agent
    >>> from intercode.core import AgentOutput
    >>> from intercode.evaluation import rollout_branches
    >>> from intercode.evaluation.rollout import rollout
    >>> class Looks(Agent):
    ...     def act(self, feedback):
    ...         return AgentOutput("ls") if feedback is None else None
    >>> with intercode.make("bash") as env:
    ...     parent = rollout(Looks(), env, 0)
    ...     branches = list(rollout_branches(env, parent, [Looks(), Looks()]))
    >>> [branch.branched_at for branch in branches]
    [1, 1]
    """
    with env.snapshot() as snapshot:
        for number, agent in enumerate(agents):
            if number:
                env.restore(snapshot)
            begin = max(parent.restarts, default=0)
            agent.start(brief_with_history(env.brief, parent.steps[begin:]))
            ended = play(
                agent,
                env,
                parent.steps,
                max_turns=max_turns,
                score_final=score_final,
                restarts=parent.restarts,
            )
            yield ended.replace(parent=parent.id, branched_at=len(parent.steps))


def brief_with_history(brief: Brief, steps: Sequence[Step]) -> Brief:
    """Return the brief of an agent that continues after some steps.

    Args:
        brief: The brief of the task.
        steps: The steps, whose actions and observations are added to the notes.
    """
    if not steps:
        return brief
    done = "\n".join(f"$ {s.action}\n{s.observation}".rstrip("\n") for s in steps)
    return replace(brief, notes=f"{brief.notes}\nDone so far:\n{done}".lstrip("\n"))


def play(
    agent: Agent,
    env: Environment,
    previous_steps: Sequence[Step] = (),
    *,
    max_turns: int | None = None,
    score_final: bool = True,
    started: float | None = None,
    tracker: EpisodeTracker | None = None,
    restarts: Sequence[int] = (),
    is_limited: bool = False,
    check: Callable[[], None] | None = None,
    saver: EpisodeSaver | None = None,
) -> Trajectory:
    """Play a running episode to its end with a started agent. See ``rollout``.

    An agent may begin an unsolved task again, which resets the environment; each time it has all
    turns anew.

    Args:
        agent: The agent, which has been started.
        env: The environment, in which the episode runs.
        previous_steps: Steps that count as turns and are part of the record.
        max_turns: The turn limit, if the agent and the environment have no lower one.
        score_final: Whether a final state is scored that was not scored for its agent.
        started: When the episode began, in seconds of ``time.monotonic``; None: now.
        tracker: Is told of turns and actions.
        restarts: After how many of ``previous_steps`` the task was begun again, each time.
        is_limited: As for ``rollout``.
        check: As for ``rollout``.
        saver: As for ``rollout``.

    Returns:
        The record of the episode.

    Raises:
        UsageError: The agent returned no AgentOutput, or does not do again what was saved.
        InfrastructureError: A sandbox or a model failed. The episode has no result.
        BudgetError: A limit of the run was reached. The episode has no result.
    """
    started = time.monotonic() if started is None else started
    tracker = tracker or EpisodeTracker()
    limits = [n for n in (max_turns, agent.max_turns, env.max_turns) if n is not None]
    if is_endless := not limits and not is_limited and not agent.stops_itself:
        limits = [_MOST_TURNS]
    steps, begins = list(previous_steps), [0, *restarts]
    run: dict[str, Any] = {}
    more: dict[str, Any] = {}
    feedback, restarts_before = None, 0
    if saver is not None and saver.saved is not None:
        record = saver.saved.record
        feedback = _act_again(agent, record, saver.way_out)
        saver.restore(env)
        more["started"] = record.started
        run["resumed"] = [*record.run.get("resumed", ()), saver.saved.mark]
        steps, begins = list(record.steps), [0, *record.restarts]
        started, restarts_before = started - (record.seconds or 0.0), len(record.restarts)

    def save() -> None:
        if saver is not None and saver.is_due(len(steps)):
            so_far = make_trajectory(env, steps, "unknown", time.monotonic() - started)
            saver.save(env, so_far.replace(restarts=tuple(begins[1:]), run=run))

    for restarts_left in reversed(range(agent.max_restarts + 1 - restarts_before)):
        first = len(steps) if is_endless and feedback is None else begins[-1]
        limit = first + min(limits) if limits else None
        end, score = _play_turns(
            agent, env, steps, limit, tracker, is_endless, check, feedback, save
        )
        feedback = None
        if score is None and score_final:
            score = score_final_state(env, steps, begins[-1])
        if not restarts_left or score is None or score.success or end not in _COMPLETED:
            break
        try:
            if check is not None:
                check()
            if not agent.restart(steps[-1].feedback(Score(score.value))):
                break
        except BudgetError as e:
            if e.run_limit:
                raise
            end = "budget"
            break
        begins.append(len(steps))
        env.reset(seed=env.task_seed, options={"task": env.index})
    failure = None if score is None else score.action_error
    episode = make_trajectory(env, steps, end, time.monotonic() - started, failure)
    if is_endless and end == "turn_limit":
        run["turn_limit"] = _MOST_TURNS
    return episode.replace(restarts=tuple(begins[1:]), run={**episode.run, **run}, **more)


def _act_again(agent: Agent, record: Trajectory, way_out: str) -> Step | None:
    """Tell a started agent of the turns of a record. Return the feedback on the last one. Raises
    UsageError if the agent acts in another way."""
    feedback: Step | None = None
    for number, step in enumerate(record.steps):
        if number in record.restarts:
            before = record.steps[number - 1]
            agent.restart(before.feedback(Score(before.score_value or 0.0)))
            feedback = None
        output, expected = next_output(agent, feedback), step.agent_output()
        if output is None or (output.action, output.message) != (expected.action, expected.message):
            raise UsageError(
                f"the agent did {expected.action!r:.80} in turn {number + 1} of {record.task}, and "
                f"{output and output.action!r:.80} when it was told the same again, so that this "
                f"episode cannot go on where it was saved: leave out --save-every, and {way_out}"
            )
        feedback = step.feedback(step.action_score if agent.wants_score else None)
    return feedback


_MOST_TURNS = 1000
"""How many turns an episode has where nothing else would end it."""
_MOST_TURNS_WITHOUT_CODE = 100
"""How often in a row an agent may return no code where nothing else would end the episode."""
_END_WITHOUT_CODE = (
    f"The episode ends: {_MOST_TURNS_WITHOUT_CODE} turns in a row had no code, and no limit is set "
    "that would end it, such as max_turns."
)
_COMPLETED = ("submitted", "turn_limit", "agent_stopped")
"""The ends after which an agent may begin the task again."""


def _play_turns(
    agent: Agent,
    env: Environment,
    steps: list[Step],
    limit: int | None,
    tracker: EpisodeTracker,
    is_endless: bool,
    check: Callable[[], None] | None,
    feedback: Step | None,
    save: Callable[[], None],
) -> tuple[EndReason, Score | None]:
    """Add the steps of an agent until it ends or there are ``limit`` steps. Return why it ended,
    and the score of the last step if it was scored. ``feedback``: that on the turn before, if the
    agent goes on; ``save`` is called after each turn that has a next one."""
    score = None if feedback is None else steps[-1].action_score
    earlier = [] if feedback is None else reversed(steps)
    without_code = sum(1 for _ in takewhile(lambda step: not step.executed, earlier))
    while limit is None or len(steps) < limit:
        with tracker.turn(len(steps) + 1):
            try:
                if check is not None:
                    check()
                output = next_output(agent, feedback)
            except BudgetError as e:
                if e.run_limit:
                    raise
                return "budget", score
            if output is None:
                return "agent_stopped", score
            step, ended = take_turn(env, output, agent.wants_score, tracker)
        steps.append(step.as_recorded())
        score = step.action_score
        without_code = without_code + 1 if output.action is None else 0
        if is_endless and without_code == _MOST_TURNS_WITHOUT_CODE:
            steps[-1] = replace(steps[-1], observation=_END_WITHOUT_CODE)
            return "agent_stopped", score
        ends = agent.wants_score and agent.ends_when_solved
        if ended is not None or (ends and score is not None and score.success):
            return ended or "solved", score
        feedback = step.feedback(score if agent.wants_score else None)
        save()
    return "turn_limit", score


def next_output(agent: Agent, feedback: Step | None) -> AgentOutput | None:
    """Return the next output of an agent, or None if it stops.

    Args:
        agent: The agent, which has been started.
        feedback: The turn before; None: there is none.

    Raises:
        UsageError: ``act`` returned neither an AgentOutput with values of the right types nor None.
    """
    output: object = agent.act(feedback)
    if output is None:
        return None
    if not isinstance(output, AgentOutput):
        raise UsageError(
            f"{type(agent).__name__}.act returned {output!r:.200} of type {type(output).__name__}: "
            "return an AgentOutput, as in intercode.core.AgentOutput('ls'), or None to stop"
        )
    for name, kind in _OUTPUT_TYPES.items():
        value = getattr(output, name)
        if not isinstance(value, kind) and not (name == "action" and value is None):
            wanted = f"{kind.__name__}{', or None for no code' * (name == 'action')}"
            raise UsageError(
                f"{type(agent).__name__}.act returned an AgentOutput whose {name} is "
                f"{value!r:.200} of type {type(value).__name__}: give a {wanted}"
            )
    return output


_OUTPUT_TYPES: dict[str, type] = {
    "action": str,
    "message": str,
    "thought": str,
    "reply": str,
    "actor": str,
    "usage": Usage,
    "messages": Sequence,
    "context": Mapping,
}


def make_trajectory(
    env: Environment,
    steps: Sequence[Step],
    end: EndReason,
    seconds: float,
    failure: ActionError | None = None,
) -> Trajectory:
    """Return the record of an episode, with a new id.

    Args:
        env: The environment, in which the episode runs.
        steps: The turns of the episode.
        end: Why the episode ended.
        seconds: How long the episode took until now.
        failure: The exception with which the agent's code ended it; None: there was none.
    """
    started = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return Trajectory(
        task=env.task.id,
        index=env.index,
        query=env.task.query,
        steps=tuple(step.as_recorded() for step in steps),
        end=end if failure is None else "action_error",
        run={} if failure is None else action_error_metadata(failure),
        group=env.task.group,
        hardness=env.task.hardness,
        tags=env.task.tags,
        seconds=round(seconds, 4),
        id=secrets.token_hex(8),
        seed=env.task_seed,
        started=started.isoformat(timespec="milliseconds"),
    )


def take_turn(
    env: Environment,
    output: AgentOutput,
    with_score: bool,
    tracker: EpisodeTracker | None = None,
) -> tuple[Step, EndReason | None]:
    """Take one turn.

    Args:
        env: The environment, in which an episode runs.
        output: What the agent does.
        with_score: Whether the state after the action is scored.
        tracker: Is told of the action.

    Returns:
        The step, and why the action ended the episode: ``submitted``, ``sandbox_lost``,
        ``action_error``, or None if it goes on.

    Raises:
        InfrastructureError: The sandbox failed.

    >>> import intercode
    >>> from intercode.core import AgentOutput
    >>> from intercode.evaluation import take_turn
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(seed=1)
    ...     step, end = take_turn(env, AgentOutput("echo 1", thought="I begin."), with_score=False)
    >>> step.observation, step.thought, end
    ('1\\n', 'I begin.', None)
    """
    if output.action is None:
        return Step.without_code(output), None
    with (tracker or EpisodeTracker()).action(output.action) as report:
        started = time.monotonic()
        step = env.execute(output.action).with_output(output)
        step = replace(step, seconds=round(time.monotonic() - started, 4))
        report(step)
    if step.score is None and with_score:
        step = replace(step, score=env.score())
    end: EndReason | None = None
    if step.action_error is not None:
        end = "action_error"
    elif step.terminated:
        end = "sandbox_lost" if step.sandbox_lost else "submitted"
    return step, end


def score_final_state(env: Environment, steps: list[Step], begin: int = 0) -> Score:
    """Score the present state, record the score in the last step, and return it.

    Args:
        env: The environment, in which the episode runs.
        steps: The steps so far, the last of which is replaced.
        begin: The number of steps before the task was begun again. If there are none after them, a
            new empty step is added.
    """
    score = env.score()
    if len(steps) == begin:
        steps.append(Step.without_turn())
    steps[-1] = replace(steps[-1], score=score).as_recorded()
    return score
