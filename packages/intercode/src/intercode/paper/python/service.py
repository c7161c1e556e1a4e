"""Runs code as the InterCode authors' service does, for the ``original`` profile.

server.py loads this file on request. There is one namespace. A piece of code is executed as it is,
and the answer is what it printed or the text of its exception.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER: Any = None  # set by install()


def run_code(code: str) -> tuple[str, str]:
    """Run a piece of code. Return what it printed and the text of its exception, if any."""
    import _io

    printed, complained = _io.StringIO(), _io.StringIO()
    SERVER.restore_streams()
    problem = ""
    try:
        sys.stdout, sys.stderr = printed, complained
        exec(compile(code, "<string>", "exec", 0, True), SERVER.namespace)
    except BaseException as e:
        problem = "Error: " + exception_text(e)
    finally:
        SERVER.restore_streams()
        SERVER.clean_up()
    return printed.getvalue(), problem


def exception_text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""


def json_text(value: str) -> str:
    import _json

    return _json.encode_basestring_ascii(value)


def serve(reset: bool, codes: tuple[str, ...], fds: list[int]) -> str:
    """Run pieces of code one after another, in an empty namespace if ``reset``.

    Answers a JSON list with what each one printed and its error.
    """
    if reset:
        SERVER.namespace.clear()
    rows: list[Any] = [run_code(code) for code in codes]
    return "[" + ",".join(f"[{json_text(out)},{json_text(error)}]" for out, error in rows) + "]"


def install(server: Any) -> dict[str, Any]:
    """Join a server. Return the requests that this module answers."""
    global SERVER
    SERVER = server
    return {"serve": serve}
