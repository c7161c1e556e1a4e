"""``intercode view``: shows recorded episodes in a browser."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from typing import TYPE_CHECKING

from intercode.cli.parser import path
from intercode.core.errors import UsageError

if TYPE_CHECKING:
    from intercode.results.view import Library

EXAMPLE = """\
examples:
  intercode view runs                          serve every run below runs/ as a page
  intercode view runs/a runs/b --open          serve two runs and open the browser
  intercode view runs/a --html a.html          write one self-contained file
  intercode view logs/ic_sql_react.json        serve a log that the InterCode authors published

The address of the page contains a secret token, and the page is served on this machine only. From
another machine, use ssh -L PORT:127.0.0.1:PORT and --port PORT. Ctrl-C ends the server. Reload the
page for new episodes of a running evaluation; press ? for its keys. The file of --html contains
everything that was recorded, with all prompts and answers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "paths", nargs="+", type=path, metavar="PATH",
        help="run directories, directories that hold some, .jsonl files, or published logs",
    )  # fmt: skip
    parser.add_argument(
        "--html", type=path, metavar="FILE", help="write one HTML file instead of serving"
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="serve on this port (default: any free port)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def handle(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or write the file."""
    from intercode.results.view import Library

    if args.html and args.port is not None:
        raise UsageError("--port cannot be used with --html, which serves nothing")
    library = Library(args.paths)
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
    from intercode.results.view import Server

    with Server(library, args.port or 0) as server:
        print(f"{server.url}\nCtrl-C ends it.", flush=True)
        if args.open:
            webbrowser.open(server.url)
        try:
            server.serve()
        except KeyboardInterrupt:
            print("", file=sys.stderr)
    return 0
