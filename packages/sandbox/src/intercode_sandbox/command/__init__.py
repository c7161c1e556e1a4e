"""The command ``intercode-sandbox``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from intercode_sandbox.command.exit_status import USAGE, call_handler, run_program
from intercode_sandbox.command.parser import Parser

PROGRAM = "intercode-sandbox"
_DESCRIPTION = "Isolated machines in milliseconds, without a daemon and without root."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run_program(PROGRAM, lambda: _run(words))


def _run(words: list[str]) -> int:
    parser = make_parser()
    if not words:
        parser.print_help()
        return USAGE
    if words[0] == "help":
        words = [*words[1:], "--help"]
    args, rest = parser.parse_known_args(words)
    if rest:
        raise parser.unknown_argument(rest[0])
    return call_handler(args.run, args)


def make_parser() -> Parser:
    """Return the parser of all sub-commands."""
    from intercode_sandbox.command import doctor, image, sandbox_arguments, serve
    from intercode_sandbox.version import __version__

    parser = Parser(prog=PROGRAM, description=_DESCRIPTION, epilog=sandbox_arguments.EXAMPLE)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parts = sandbox_arguments.add_arguments(parser)
    parts.metavar = "COMMAND"
    for name, module in (("image", image), ("serve", serve), ("doctor", doctor)):
        description = f"{module.SUMMARY[0].upper()}{module.SUMMARY[1:]}."
        part = parts.add_parser(
            name, help=module.SUMMARY, description=description, epilog=module.EXAMPLE
        )
        module.add_arguments(part)
        part.set_defaults(run=module.handle)
    return parser
