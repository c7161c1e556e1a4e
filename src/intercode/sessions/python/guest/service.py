"""Runs code the way the InterCode authors' service does, for the ``original`` profile.

Loaded by host.py when it is asked to. One namespace; a piece of code is executed as it is, and what
it printed is answered as one text, or the text of the exception as another.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST: Any = None  # who has loaded this file


def served(code: str) -> tuple[str, str]:
    """What a piece of code printed, and the text of the exception that it raised, if any."""
    import _io

    printed, complained = _io.StringIO(), _io.StringIO()
    HOST.own_streams()
    problem = ""
    try:
        sys.stdout, sys.stderr = printed, complained
        exec(compile(code, "<string>", "exec", 0, True), HOST.space)
    except BaseException as e:
        problem = "Error: " + worded(e)
    finally:
        HOST.own_streams()
        HOST.after()
    return printed.getvalue(), problem


def worded(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""


def text(value: str) -> str:
    import _json

    return _json.encode_basestring_ascii(value)


def serve(reset: bool, codes: tuple[str, ...], fds: list[int]) -> str:
    """Run pieces of code one after the other, in an empty namespace if ``reset``. Answers a JSON
    list of what each printed and how it failed, and the directory."""
    if reset:
        HOST.space.clear()
    rows: list[Any] = [served(code) for code in codes]
    return "[" + ",".join(f"[{text(out)},{text(error)}]" for out, error in rows) + "]"


def install(host: Any) -> dict[str, Any]:
    """Take part in a host. Returns more requests that it can answer."""
    global HOST
    HOST = host
    return {"serve": serve}
