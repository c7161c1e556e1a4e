"""Runs a command that does not end by itself until it prints a text, then ends it as Ctrl-C does.

until_prints.py TEXT COMMAND...
"""

from __future__ import annotations

import signal
import subprocess
import sys


def main(text: str, *command: str) -> int:
    """Run a command. Returns 0 if it printed the text and Ctrl-C ended it."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as p:
        assert p.stdout is not None
        for line in p.stdout:
            print(line, end="", flush=True)
            if text in line:
                p.send_signal(signal.SIGINT)
                rest, _ = p.communicate(timeout=60)
                print(rest, end="")
                return 0 if p.returncode in (0, 130, -signal.SIGINT) else p.returncode
    print(f"{command} ended and did not print {text!r}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
