"""Runs code the way the InterCode authors' service does, for the ``original`` profile.

Loaded by host.py when it is asked to. One namespace; a piece of code is executed as it is, and what
it printed is answered as one text, or the text of the exception as another.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER: Any = None  # who has loaded this file


def run_code(code: str) -> tuple[str, str]:
    """What a piece of code printed, and the text of the exception that it raised, if any."""
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
    """Run pieces of code one after the other, in an empty namespace if ``reset``. Answers a JSON
    list of what each printed and how it failed, and the directory."""
    if reset:
        SERVER.namespace.clear()
    rows: list[Any] = [run_code(code) for code in codes]
    return "[" + ",".join(f"[{json_text(out)},{json_text(error)}]" for out, error in rows) + "]"


def install(server: Any) -> dict[str, Any]:
    """Take part in a host. Returns more requests that it can answer."""
    global SERVER
    SERVER = server
    return {"serve": serve}
