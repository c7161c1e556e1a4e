"""The command ``run``."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from intercode_sandbox import Result, Sandbox, SandboxProcess
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.terminal_server import SHELL
from intercode_sandbox.command.options import (
    TIMED_OUT,
    command_of,
    open_from,
    report,
    starting,
    with_status,
)
from intercode_sandbox.command.terminal import check_terminal, run_on_terminal
from intercode_sandbox.errors import SandboxError, UsageError

_CHUNK = 1 << 16
_PARALLEL = 8
_KILL_SECONDS = 1.0  # time to read what a command has written before its time limit


def run(args: argparse.Namespace) -> int:
    """Run a command in a sandbox, on a terminal or in copies of the sandbox. Return its exit
    status, for copies 1 if one of them fails."""
    if args.terminal:
        if args.timeout is not None:
            raise UsageError("--timeout is not for --terminal: the user ends what runs there")
        check_terminal()
        command = command_of(args) if args.command not in ([], ["--"]) else SHELL
    else:
        command = command_of(args)

    def work(stack: ExitStack) -> int:
        sandbox = stack.enter_context(open_from(args))
        if args.setup is not None:
            result = sandbox.run(args.setup, cwd=args.cwd, timeout=args.timeout)
            print(result.output, end="", file=sys.stderr)
            if not result.ok:
                report(args, f"the set-up command failed: {_describe(result)}")
                return 1
        if args.terminal:
            return run_on_terminal(sandbox, command, args)
        if args.forks is not None:
            return _run_in_forks(stack, sandbox, command, args)
        return _run(sandbox, command, args)

    with ExitStack() as stack:
        return with_status(args, lambda: work(stack))


def _run(sandbox: Sandbox, command: str | list[str], args: argparse.Namespace) -> int:
    """Run a command and pass its output on."""
    with starting():
        process = sandbox.spawn(command, cwd=args.cwd, user=args.user)
    with process:
        threading.Thread(target=_pass_input, args=(process,), daemon=True).start()
        try:
            _pass_output(process, args.timeout)
        except TimeoutError:
            process.kill()
            with suppress(TimeoutError):
                _pass_output(process, _KILL_SECONDS)
            report(args, f"killed at the time limit of {args.timeout:g} s")
            return TIMED_OUT
        code = process.wait()
        if code and (limit := sandbox.base.limit_exceeded()):
            report(args, f"the command exceeded the limit of {limit} (see --limit)")
        return shell_status(code or 0)


def _pass_input(process: SandboxProcess) -> None:
    """Copy standard input to a program, unless it is a terminal, which --terminal connects."""
    with suppress(OSError, SandboxError):
        if sys.stdin is not None and not os.isatty(0):
            while data := os.read(0, _CHUNK):
                process.write(data)
        process.close_input()


def _pass_output(process: SandboxProcess, timeout: float | None) -> None:
    for data, name in process.chunks(timeout):
        stream = (sys.stdout if name == "stdout" else sys.stderr).buffer
        stream.write(data)
        stream.flush()


def _run_in_forks(
    stack: ExitStack, sandbox: Sandbox, command: str | list[str], args: argparse.Namespace
) -> int:
    """Run a command in each of several copies of a sandbox."""

    def run_in(item: tuple[int, Sandbox]) -> Result:
        number, fork = item
        env = {"FORK": str(number)}
        with starting():
            return fork.run(command, cwd=args.cwd, env=env, user=args.user, timeout=args.timeout)

    workers = stack.enter_context(ThreadPoolExecutor(min(_PARALLEL, args.forks)))
    # closed before the threads are waited for, so that Ctrl-C ends what runs
    forks = [stack.enter_context(one) for one in sandbox.fork(args.forks)]
    all_ok = True
    for number, result in enumerate(workers.map(run_in, enumerate(forks, 1)), 1):
        print(f"== fork {number}: {_describe(result)}")
        print(result.output, end="" if result.output[-1:] in ("\n", "") else "\n", flush=True)
        all_ok = all_ok and result.ok
    return int(not all_ok)


def _describe(result: Result) -> str:
    ending = "killed at the time limit"
    if result.exit_code is not None:
        ending = f"exit status {shell_status(result.exit_code)}"
    limit = f", exceeded the limit of {result.limit_exceeded}" if result.limit_exceeded else ""
    return f"{ending}{limit}, {result.duration:.2f} s"
