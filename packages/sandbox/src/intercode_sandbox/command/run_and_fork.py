"""The commands ``run`` and ``fork``."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from intercode_sandbox import Result, Sandbox, SandboxProcess
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.command.options import (
    TIMED_OUT,
    command_of,
    open_from,
    report,
    starting,
    with_status,
)
from intercode_sandbox.errors import SandboxError

_CHUNK = 1 << 16
_PARALLEL = 8
_KILL_SECONDS = 1.0  # time to read what a command has written before its time limit


def run(args: argparse.Namespace) -> int:
    """Run a command and pass its output on. Return its exit status."""
    command = command_of(args)

    def work() -> int:
        with open_from(args) as sandbox:
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

    return with_status(args, work)


def _pass_input(process: SandboxProcess) -> None:
    """Copy standard input to a program, unless it is a terminal, whose keys `shell` passes on."""
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


def fork(args: argparse.Namespace) -> int:
    """Run a command in each of several copies of a sandbox. Return 1 if one fails."""
    command = command_of(args)

    def run_in(item: tuple[int, Sandbox]) -> Result:
        number, sandbox = item
        env = {"FORK": str(number)}
        with starting():
            return sandbox.run(command, cwd=args.cwd, env=env, user=args.user, timeout=args.timeout)

    def work(stack: ExitStack) -> int:
        sandbox = stack.enter_context(open_from(args))
        if args.setup is not None:
            result = sandbox.run(args.setup, cwd=args.cwd, timeout=args.timeout)
            print(result.output, end="", file=sys.stderr)
            if not result.ok:
                report(args, f"the set-up command failed: {_describe(result)}")
                return 1
        workers = stack.enter_context(ThreadPoolExecutor(min(_PARALLEL, args.number)))
        # closed before the threads are waited for, so that Ctrl-C ends what runs
        forks = [stack.enter_context(one) for one in sandbox.fork(args.number)]
        all_ok = True
        for number, result in enumerate(workers.map(run_in, enumerate(forks, 1)), 1):
            print(f"== fork {number}: {_describe(result)}")
            print(result.output, end="" if result.output[-1:] in ("\n", "") else "\n", flush=True)
            all_ok = all_ok and result.ok
        return int(not all_ok)

    with ExitStack() as stack:
        return with_status(args, lambda: work(stack))


def _describe(result: Result) -> str:
    ending = "killed at the time limit"
    if result.exit_code is not None:
        ending = f"exit status {shell_status(result.exit_code)}"
    limit = f", exceeded the limit of {result.limit_exceeded}" if result.limit_exceeded else ""
    return f"{ending}{limit}, {result.duration:.2f} s"
