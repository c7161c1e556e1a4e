"""Runs a command of verifiers with our runtime: ``python -m intercode.integrations.verifiers eval
ARGUMENTS`` is ``vf-eval ARGUMENTS``."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import intercode.integrations.verifiers  # noqa: F401 - adds the runtime, also in worker processes


def main() -> None:
    """Run the command that the first argument names."""
    programs = {
        program.name.removeprefix("vf-"): program
        for program in entry_points(group="console_scripts")
        if program.name.startswith("vf-")
    }
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in programs:
        known = ", ".join(sorted(programs))
        raise SystemExit(f"{name!r} is no command of verifiers; it has: {known}")
    sys.argv = [f"vf-{name}", *sys.argv[2:]]
    sys.exit(programs[name].load()())


if __name__ == "__main__":
    main()
