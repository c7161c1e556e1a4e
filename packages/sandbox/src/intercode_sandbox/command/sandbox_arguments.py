"""Commands that run programs and shells in sandboxes, and list live sandboxes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from intercode_sandbox.command import live, terminal
from intercode_sandbox.command.options import LIMIT_NAMES
from intercode_sandbox.command.parser import Parser, add_options
from intercode_sandbox.command.run import run

EXAMPLE = """\
examples:
  intercode-sandbox run -- python3 -c 'print(6 * 7)'
  intercode-sandbox run 'seq 5 | tail -n 1'
      one word is a text for /bin/sh
  intercode-sandbox run --image docker.io/library/debian:12 --limit memory=2g -- apt-get --version
  intercode-sandbox run --file /work=./project --cwd /work --timeout 60 -- make test
      copies the directory ./project to /work in the sandbox first
  intercode-sandbox run --terminal --image dockerfile:.
      opens a shell there
  intercode-sandbox run --setup 'seq 100 > /numbers' --forks 4 'head -n $FORK /numbers | tail -n 1'
  intercode-sandbox list

A sandbox ends with its command: nothing that runs in it remains, and no file. `intercode-sandbox
doctor --threat-model` prints what it can reach. In Python, Sandbox does the same."""

_OPTIONS = f"""\
--image IMAGE           root file system: host (the default: the programs of this machine),
                        HOST/NAME:TAG of a registry, dockerfile:DIR, dir:/rootfs, recipe:NAME ...
--network NETWORK       none (the default), host: the machine's own network, or allow:HOST,...:
                        hosts that can be reached
--limit NAME=VALUE ...  {", ".join(LIMIT_NAMES)}; sizes
                        are in bytes, or with K, M, G; may be repeated
--file PATH=LOCAL ...   copy a file or directory of this machine to a path in the sandbox first;
                        may be given several times
--env NAME=VALUE ...    set a variable; may be given several times
--cwd PATH              directory of the command in the sandbox (default: that of the image)
--user USER             run the command as this user of the image, a name, number or USER:GROUP
                        (default: root); needs the back end namespace
--backend BACKEND       namespace, chroot, docker, podman, landlock, remote:URL, or auto (the
                        default): the strongest that works, but never landlock
--timeout TIMEOUT       kill the command after so many seconds (default: never)
--terminal              run the command on this terminal (default command: bash, or sh)
| --forks N             run the command in each of N copies of the sandbox
--setup COMMAND         text for /bin/sh, run in the sandbox before the command
command COMMAND ...     the program and its arguments; a single word is a text for
                        /bin/sh. Options come before it."""
_STATUS = """\
Exit status: that of the command, or 128 and the number of the signal that ended it; 124 at the time
limit; 126 or 127 if the program cannot be executed or does not exist; 125 if the sandbox could not
be opened or was lost; 2 for wrong arguments."""
_RUN = f"""\
The command reads standard input, unless that is a terminal, and its output is passed on as it
comes. With --terminal, Ctrl-C and other keys go to the program in the sandbox; `exit` or Ctrl-D
ends a shell, and the sandbox with it.

--forks copies the files of the sandbox to N new ones, but no processes. COMMAND runs once in each
copy, at most 8 at a time, with its number from 1 to N in the variable FORK. The output of each is
printed below a line with its number and its exit status.

{_STATUS}
With --forks: 0 if all commands ended with 0, 1 if one did not. 1 if the set-up failed."""

_USAGE = {
    "run": "[options] [--] COMMAND ...",
    "attach": "SOCKET",
    "end": "PID",
}
_Handler = Callable[[argparse.Namespace], int]
_PARTS: dict[str, tuple[str, str, str, _Handler]] = {
    "run": ("run a command or a shell in a new sandbox or in copies of it", _OPTIONS, _RUN, run),
    "attach": (
        "open a shell on a terminal in a live sandbox of another program",
        "socket SOCKET  as TerminalServer.command of that program names it",
        "The shell ends with the sandbox, and the sandbox does not end with the shell.",
        terminal.attach,
    ),
    "list": (
        "list the live sandboxes of this user",
        "--json  print JSON, with memory in bytes and times in seconds",
        "Lists what this command and programs with Sandbox have opened, not open_sandbox.\n"
        "PID is the sandbox's supervisor, OWNER the process that opened it.",
        live.print_live,
    ),
    "end": (
        "end a live sandbox with all its processes",
        "pid PID  as `intercode-sandbox list` prints it",
        "The program that opened the sandbox finds it lost (SandboxLostError).",
        live.end,
    ),
}
"""The sub-commands: the description, the arguments, the text below its help, and the function."""
_RENAMED = {"shell": "run --terminal", "fork": "run --setup COMMAND --forks N COMMAND"}


def add_arguments(parser: Parser) -> argparse._SubParsersAction[Any]:
    """Add the sub-commands, and return what adds more."""
    parts = parser.add_subparsers(dest="what", metavar="|".join(_PARTS), required=True)
    parser.renamed_parts = _RENAMED
    settings = {"command": {"nargs": argparse.REMAINDER}, "pid": {"type": int}}
    settings["cwd"] = {"type": None}
    for name, (text, arguments, epilog, function) in _PARTS.items():
        description = f"{text[0].upper()}{text[1:]}."
        usage = f"{parser.prog} {name} {_USAGE.get(name, '[options]')}"
        part = parts.add_parser(
            name,
            usage=usage,
            help=text,
            description=description,
            epilog=for_program(epilog, parser.prog),
        )
        add_options(part, for_program(arguments, parser.prog), settings)
        part.set_defaults(run=function, program=parser.prog.partition(" ")[0])
    return parts


def for_program(text: str, program: str) -> str:
    """Return a text in which the commands of this module are those of another program."""
    return re.sub(rf"\bintercode-sandbox (?=({'|'.join(_PARTS)})\b)", f"{program} ", text)


def handle(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    status: int = args.run(args)
    return status
