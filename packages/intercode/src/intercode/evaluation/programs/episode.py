"""Plays one episode with a program: starts it, serves it, ends it, and submits what it leaves."""

from __future__ import annotations

import asyncio
import os
import secrets
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from intercode.agents.parsing import parse_answer, scoring_note
from intercode.agents.programs import Launch, ProgramAgent
from intercode.agents.programs.acp import AcpProgram
from intercode.agents.programs.program import Program
from intercode.core.errors import BudgetError, SandboxError, UsageError
from intercode.core.types import (
    SUBMIT,
    ActionError,
    AgentOutput,
    Brief,
    EndReason,
    EnvironmentDescription,
    Step,
    Task,
)
from intercode.environments.base.contract import Environment
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv, uses_sandbox
from intercode.evaluation.programs.actions import ShellHistory
from intercode.evaluation.programs.turns import ProgramTurns, TurnLimitError
from intercode.evaluation.tracking.base import EpisodeTracker
from intercode.models.bridge import Bridge, BridgeStoppedError
from intercode.models.limited_model import LimitedModel
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.registry import load_object
from intercode_sandbox.streams import BaseProcess, decode, drain, drain_once, poll_milliseconds

if TYPE_CHECKING:
    from intercode.evaluation.programs.acp_session import AcpSession

DIRECTORY = "/dev/shm/intercode"
"""What belongs to the program and not to the task: no change in it counts."""
_QUERY, _ANSWER, _HOME = f"{DIRECTORY}/query", f"{DIRECTORY}/answer", f"{DIRECTORY}/home"
SCRATCH = "/tmp/.intercode"
"""A directory for files of a program that do not fit there. It is removed at the end."""
_ANSWER_BYTES = 1 << 20
_OUTPUT_BYTES = 1 << 16
_RECORDED_OUTPUT = 4000  # characters of the end
_END_SECONDS = 10.0
_LAST_SECONDS = 1.0  # for a program to end that has closed its output
_BY_FILE = f"If the task asks for an answer or for output, write exactly that to {_ANSWER}."
_NO_ANSWER = "DONE"
_BY_MESSAGE = (
    "If the task asks for an answer, output or code, your last message must be exactly that. "
    f"Otherwise it must be the word {_NO_ANSWER}."
)


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a program has ended. ``exit_code`` is None if it was stopped. ``message``: the last of an
    agent with a session."""

    reason: EndReason
    exit_code: int | None = None
    why: str = ""
    message: str = ""


def require_one_instruction(
    program: str, environment: InterCodeEnv | type[InterCodeEnv], tasks: Iterable[Task]
) -> None:
    """Raise UsageError for a task that a program as agent cannot play: one with several steps, or
    with an agent that is not root."""
    for task in tasks:
        if what := environment.obstacle_for_programs(task):
            raise UsageError(
                f"{program} plays one instruction, as root, and {task.id} has {what}: leave this "
                "task out, or use an agent that is no program"
            )


def play_program(
    agent: ProgramAgent,
    env: Environment,
    *,
    max_turns: int | None,
    tracker: EpisodeTracker | None,
) -> tuple[list[Step], EndReason, ActionError | None]:
    """Play a running episode with a program. Return its steps, why it ended, and the exception that
    the program has caused, if that ended it.

    Raises UsageError for an environment without a sandbox of this machine that has a port for the
    bridge, and for a task that ``require_one_instruction`` refuses, BudgetError at a limit of the
    run, and the errors of a model and a sandbox that failed.
    """
    if not uses_sandbox(env):
        raise UsageError(
            f"{agent.program.name} runs in a sandbox of this machine, which the environment here "
            "does not have: play another environment, with the runner `local`"
        )
    require_one_instruction(agent.program.name, env, [env.task])
    sandbox = env.sandbox
    if "listen" not in sandbox.capabilities:
        raise UsageError(
            f"a program as agent needs a sandbox with a loopback device of its own, which the tier "
            f"{sandbox.tier} does not have: use one of the tiers `namespace` or `container`"
        )
    limits = [n for n in (max_turns, agent.max_turns, env.max_turns) if n is not None]
    history = ShellHistory(sandbox, DIRECTORY)
    session = _open_session(agent.program, env, {**sandbox.env, **history.variables})
    turns = ProgramTurns(
        env,
        agent.model,
        agent.program,
        history,
        SCRATCH,
        min(limits, default=None),
        tracker or EpisodeTracker(),
        *(() if session is None else (session.client.take_reports,)),
    )
    key = f"intercode-{secrets.token_hex(16)}"
    output = Collector(_OUTPUT_BYTES)
    try:
        with Bridge(sandbox.listen(), key, agent.model.name, turns.answer) as bridge:
            ending = _run(agent, env, bridge, key, history, output, session)
        turns.finish()
    except UsageError:
        raise
    except Exception as e:
        env.episode.note_failure(e)  # raises an exception of the machine
        turns.finish_without_sandbox()
        reason: EndReason = "sandbox_lost" if env.episode.loss else "action_error"
        ending = _Ending(reason, why=env.episode.failure_note)
    about = {} if session is None else session.about
    about["output"] = decode(output.bytes())[-_RECORDED_OUTPUT:]
    return _submit(env, turns.steps, ending, about)


def _open_session(
    program: Program, env: SandboxedEnv, variables: Mapping[str, str]
) -> AcpSession | None:
    """Return a session for a program that takes its task in one."""
    if not isinstance(program, AcpProgram):
        return None
    make = load_object("intercode.evaluation.programs.acp_session:AcpSession")  # an extra
    session: AcpSession = make(env, variables, program.login)
    return session


def _run(
    agent: ProgramAgent,
    env: SandboxedEnv,
    bridge: Bridge,
    key: str,
    history: ShellHistory,
    output: Collector,
    session: AcpSession | None,
) -> _Ending:
    """Run the program to its end or to a limit, and kill everything that it has started."""
    sandbox = env.sandbox
    query = _query(env.brief, _BY_FILE if session is None else _BY_MESSAGE)
    address = f"http://127.0.0.1:{bridge.port}"
    launch = Launch(query, _QUERY, _HOME, SCRATCH, agent.model.name, address, key)
    sandbox.write(_QUERY, query.encode())
    for name, text in {".keep": "", **agent.program.home_files(launch)}.items():
        sandbox.write(f"{_HOME}/{name}", text.encode(), 0o600)
    variables = {
        **sandbox.env,
        **_variables(launch),
        **history.variables,
        **agent.program.variables(launch),
    }
    before, mark = set(sandbox.processes()), sandbox.mark()
    seconds_left = _deadline(agent)
    with _pipes(talks=session is not None) as (ours, theirs):
        try:
            command = agent.program.command(launch)
            process = sandbox.spawn(command, cwd=env.working_directory, env=variables, fds=theirs)
        except OSError as e:
            raise UsageError(f"{agent.program.name} cannot be started: {e}") from e
        finally:
            for descriptor in set(theirs.values()):
                os.close(descriptor)
        try:
            if session is None:
                return _serve(process, ours[2], output, bridge, seconds_left)
            turn = session.prompt(query, process, ours, output, bridge, seconds_left)
            reason = asyncio.run(turn)
            if reason != "end_turn":
                return _Ending("agent_stopped", why=f"its turn ended: {reason}")
            return _Ending("submitted", message=session.client.message.strip())
        except TurnLimitError:
            return _Ending("turn_limit", why="stopped at the turn limit")
        except BridgeStoppedError as e:
            return _Ending("agent_stopped", why=f"stopped: {e}")
        except ConnectionError as e:
            return _Ending("agent_stopped", process.wait(_LAST_SECONDS), f"stopped: {e}")
        except BudgetError as e:
            if e.run_limit:
                raise
            return _Ending("budget", why=f"stopped: {e}")
        finally:
            _end_processes(sandbox, mark, before)
            sandbox.run(["rm", "-rf", SCRATCH], timeout=_END_SECONDS)


@contextmanager
def _pipes(*, talks: bool) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    """Yield both ends of pipes for a program, by its descriptors: ours, and its own, which the
    caller closes. One that ``talks`` has a pipe for each; the output of others is one stream."""
    read, write = os.pipe()
    ours, theirs = {2: read}, {1: write, 2: write}
    if talks:
        theirs[0], ours[0] = os.pipe()
        ours[1], theirs[1] = os.pipe()
    try:
        yield ours, theirs
    finally:
        for descriptor in ours.values():
            os.close(descriptor)


def _query(brief: Brief, answer: str) -> str:
    """Return the task as a program is told it, with what is judged and how it gives an answer."""
    judged = f"{scoring_note(brief)} {answer}"
    return "\n\n".join(filter(None, (brief.query, brief.notes, judged)))


def _variables(launch: Launch) -> Mapping[str, str]:
    """Return the environment variables that every program gets."""
    return {
        "INTERCODE_QUERY_FILE": launch.query_file,
        "INTERCODE_ANSWER_FILE": _ANSWER,
        "INTERCODE_HOME": launch.home,
        "INTERCODE_SCRATCH": launch.scratch,
        "INTERCODE_MODEL": launch.model,
        "OPENAI_BASE_URL": f"{launch.base_url}/v1",
        "OPENAI_API_BASE": f"{launch.base_url}/v1",
        "OPENAI_API_KEY": launch.key,
        "ANTHROPIC_BASE_URL": launch.base_url,
        "ANTHROPIC_API_KEY": launch.key,
    }


def _deadline(agent: ProgramAgent) -> Callable[[], float]:
    """Return a function of the seconds that are left. It raises BudgetError at a limit of time."""
    budgets = agent.model.budgets if isinstance(agent.model, LimitedModel) else ()
    end = time.monotonic() + agent.seconds

    def seconds_left() -> float:
        for budget in budgets:
            budget.check()
        now = time.monotonic()
        if now >= end:
            raise BudgetError(f"the program has not ended within {agent.seconds:g} s")
        return min([end, *(b.deadline for b in budgets if b.deadline is not None)]) - now

    return seconds_left


def _serve(
    process: BaseProcess,
    read: int,
    output: Collector,
    bridge: Bridge,
    seconds_left: Callable[[], float],
) -> _Ending:
    """Read the output of the program and answer its requests until it ends."""
    os.set_blocking(read, False)
    poll = select.poll()
    for descriptor in (read, process.fileno(), bridge.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll(poll_milliseconds(seconds_left() + 0.001))}
        if read in ready and not drain_once(read, output):
            poll.unregister(read)
        if process.fileno() in ready:
            drain(read, output)
            code = process.wait()
            return _Ending("agent_stopped" if code else "submitted", code)
        if bridge.fileno() in ready:
            bridge.serve()


def _end_processes(sandbox: BaseSandbox, mark: int, before: set[str]) -> None:
    """Kill what was started since ``mark``, except by what runs from before, such as the image's
    entry point. Raises SandboxError if something of it lives on."""
    deadline = time.monotonic() + _END_SECONDS
    while True:
        sandbox.kill_since(mark, sandbox.started_by_earlier(mark))
        found = set(sandbox.processes()) - before
        others = {f"({pid})" for pid in sandbox.started_by_earlier(mark)}
        still = set(sandbox.processes())  # one that has ended meanwhile is nobody's child
        left = {name for name in found & still if name.rpartition(" ")[2] not in others}
        if not left:
            return
        if time.monotonic() >= deadline:
            raise SandboxError(f"processes of the program do not end: {', '.join(sorted(left))}")
        time.sleep(0.01)


def _submit(
    env: SandboxedEnv, steps: list[Step], ending: _Ending, about: dict[str, Any]
) -> tuple[list[Step], EndReason, ActionError | None]:
    """Submit what the program has left, if it has ended by itself, and score it in any case."""
    reason, score, result = ending.reason, None, None
    if reason == "submitted":
        answer = _read_answer(env)
        if answer is None:
            answer = _answer_in(ending.message, env.brief.description)
        if answer is not None and env.description.judges_code:
            result = env.execute(answer)
            steps.append(replace(result, score=None))
            answer = None
        if result is None or not result.terminated:
            result = env.finish(answer)
        score, reason = result.score, "submitted" if result.terminated else "agent_stopped"
        submission = AgentOutput(f"{SUBMIT} {answer or ''}".rstrip())
        by_tool = steps and steps[-1].action.partition(" ")[0] == SUBMIT
        by_message = steps and ending.message and not steps[-1].executed
        if by_tool or by_message:
            submission = replace(steps.pop().agent_output(), action=submission.action)
            steps.append(result.with_output(submission))
        elif answer is not None:
            steps.append(result.with_output(submission))
    score = score or env.score()
    last = steps.pop() if steps else Step.without_turn()
    about["exit_code"] = ending.exit_code
    if ending.why:
        about["stopped"] = ending.why
    context = {**last.context, "program": about}
    steps.append(replace(last, score=score, context=context))
    return steps, reason, score.action_error


def _answer_in(message: str, description: EnvironmentDescription) -> str | None:
    """Return the answer in an agent's last message: all of it, or the code in it. It is empty if
    the agent says that the task asks for none, and None without a message."""
    if message and description.judges_code:
        return parse_answer(message, description.language).code
    if message.strip("*`.!").upper() == _NO_ANSWER:
        return ""
    return message or None


def _read_answer(env: SandboxedEnv) -> str | None:
    """Return the answer that the program has written, or None."""
    with suppress(OSError):  # there is none, or it is no regular file of a sensible size
        return decode(env.sandbox.read(_ANSWER, _ANSWER_BYTES)).strip()
    return None
