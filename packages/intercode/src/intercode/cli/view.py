"""``intercode view``: shows recorded episodes in a browser."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

from intercode.cli.plugged_options import OPTIONS
from intercode.core.errors import UsageError

if TYPE_CHECKING:
    from intercode.core.types import Trajectory
    from intercode.results.explanation import Explanation
    from intercode.results.view import Library

EXAMPLE = """\
examples:
  intercode view runs                          serve every run below runs/ as a page
  intercode view runs/a runs/b --open          serve two runs and open the browser
  intercode view runs/a --html a.html          write one self-contained file
  intercode view runs/a --label labels.jsonl   label its episodes by hand, blind to their scores
  intercode view logs/ic_sql_react.json        serve a log that the InterCode authors published

The address of the page contains a secret token, and the page is served on this machine only. From
another machine, use ssh -L PORT:127.0.0.1:PORT and --port PORT. Ctrl-C ends the server. New
episodes of a running evaluation appear by themselves; press ? for the keys. The file of --html
contains everything that was recorded, with all prompts and answers."""

ARGUMENTS = """\
paths PATH ...  run directories, directories that hold some, .jsonl files, or published logs
--html FILE     write one HTML file instead of serving
--port N        serve on this port (default: any free port)
--with-gold     offer the gold of each episode, beside what the agent left; its actions run again
--label FILE    show the episodes one by one to be labelled, without their scores; labels are added
                to this file
--open          open the page in the browser"""
SETTINGS = {"port": {"type": int}}
_MAX_NOTES = 5
STEP = 1 << 23
"""Bytes of logs that are read before the page opens, and then for each question of the page."""


def handle(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or write the file."""
    from intercode.results.view import Library

    if args.html and args.port is not None:
        raise UsageError("--port cannot be used with --html, which serves nothing")
    if args.html and args.with_gold:
        raise UsageError(
            "--with-gold cannot be used with --html: a file with golds could be shared"
        )
    if args.label and (args.html or args.with_gold):
        other = "--html" if args.html else "--with-gold"
        raise UsageError(f"--label cannot be used with {other}: it needs a page without golds")
    serves_runs = not (args.html or args.label)  # else all has to be known at once
    library = Library(args.paths, STEP if serves_runs else None)
    if library.problems and not library.has_episodes:
        raise UsageError(f"there is nothing to show: {library.problems[0]}")
    for problem in library.problems[:_MAX_NOTES]:
        print(f"Note: {problem}", file=sys.stderr)
    if (more := len(library.problems) - _MAX_NOTES) > 0:
        print(f"Note: {more} further problems", file=sys.stderr)
    if args.html:
        return _write(library, args)
    return _serve(library, args)


def _write(library: Library, args: argparse.Namespace) -> int:
    from intercode.results.view import write_page

    size = write_page(library, args.html)
    print(f"wrote {args.html} ({size / 1e6:.1f} MB)", file=sys.stderr)
    if args.open:
        webbrowser.open(args.html.resolve().as_uri())
    return 0


def _serve(library: Library, args: argparse.Namespace) -> int:
    from intercode.results.view import ViewServer

    explain: Callable[[Trajectory], Explanation] | None = None
    if args.with_gold:  # the page itself needs no sandbox
        from intercode.evaluation.replay.explain import explain as explain_episode

        explain = explain_episode
    labelling = OPTIONS.load("view.label")(library, args.label) if args.label else None
    with ViewServer(library, args.port or 0, explain, labelling) as server:
        print(f"{server.url}\nCtrl-C ends it.", flush=True)
        if args.open:
            webbrowser.open(server.url)
        try:
            server.serve()
        except KeyboardInterrupt:
            print("", file=sys.stderr)
    return 0
