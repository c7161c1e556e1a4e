"""Formats an exception as a prompt does, with source lines from the agent's actions.

server.py loads this file on request. The module traceback does the same, but loading it takes
longer than starting an interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER: Any = None  # set by install()
_MAX_FRAMES = 60  # frames shown per exception, from the beginning and the end
_MAX_REPEATED = 3  # consecutive frames shown for one line; the others are only counted
_MAX_SOURCE = 1 << 20  # size limit in bytes of a file whose lines are shown
_FILE_NAME = "<intercode>"
_CAUSE_TEXT = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT_TEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def format_exception(error: BaseException) -> str:
    """Return an exception, with those that led to it, as text."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        parts.append(format_one(current))
        before = current.__cause__
        if before is not None and id(before) not in seen:
            parts.append(_CAUSE_TEXT)
        elif current.__context__ is not None and not current.__suppress_context__:
            before = current.__context__
            if id(before) not in seen:
                parts.append(_CONTEXT_TEXT)
        current = before
    return "".join(reversed(parts))


def format_one(error: BaseException) -> str:
    frames = list(frame_texts(error.__traceback__))
    head = "Traceback (most recent call last):\n" if frames else ""
    if len(frames) > _MAX_FRAMES:
        half, left = _MAX_FRAMES // 2, len(frames) - _MAX_FRAMES
        frames = [*frames[:half], f"  [... {left} more lines ...]\n", *frames[-half:]]
    return head + "".join(frames) + exception_lines(error)


def frame_texts(trace: Any) -> Any:
    """Yield a text for each frame that is not the server's. Many frames at one line are counted."""
    before, alike = None, 0
    while trace is not None:
        code = trace.tb_frame.f_code
        position = (code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
        if position[0] == _FILE_NAME:
            continue
        alike = alike + 1 if position == before else 1
        before = position
        after = None
        if trace is not None:
            code = trace.tb_frame.f_code
            after = (code.co_filename, trace.tb_lineno, code.co_name)
        if alike <= _MAX_REPEATED:
            yield frame_text(*position)
        elif after != position:
            left = alike - _MAX_REPEATED
            yield f"  [Previous line repeated {left} more time{'s' if left > 1 else ''}]\n"


def frame_text(name: str, line: int, function: str) -> str:
    text = source_line(name, line).strip()
    shown = f"    {text}\n" if text else ""
    return f'  File "{name}", line {line}, in {function}\n{shown}'


def source_line(name: str, line: int) -> str:
    source = SERVER.sources.get(name)
    if source is None:
        import _io

        try:
            with _io.open(name, encoding="utf-8", errors="replace") as f:
                source = f.read(_MAX_SOURCE)
        except (OSError, ValueError):
            return ""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # as Python does
    return lines[line - 1] if 0 < line <= len(lines) else ""


def exception_lines(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    lines = ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        lines, message = syntax_error_lines(error), str(error.msg)
    else:
        try:
            message = str(error)
        except BaseException:
            message = "<exception str() failed>"
    lines += f"{name}: {message}\n" if message else f"{name}\n"
    for note in getattr(error, "__notes__", None) or ():
        lines += f"{note}\n"
    for n, inner in enumerate(getattr(error, "exceptions", None) or (), 1):
        lines += f"  {n}: {exception_lines(inner)}" if isinstance(inner, BaseException) else ""
    return lines


def syntax_error_lines(error: SyntaxError) -> str:
    """Return the line that does not parse, with a mark under the column."""
    text = (error.text or source_line(str(error.filename), error.lineno or 0)).rstrip("\n")
    shown = f'  File "{error.filename}", line {error.lineno}\n'
    stripped = text.lstrip()
    if not stripped:
        return shown
    shown += f"    {stripped}\n"
    if error.offset is not None:
        position = max(0, error.offset - 1 - (len(text) - len(stripped)))
        end = getattr(error, "end_offset", None) or 0
        same = getattr(error, "end_lineno", None) == error.lineno
        width = end - error.offset if same and end > error.offset else 1
        shown += "    " + " " * position + "^" * min(width, max(1, len(stripped) - position)) + "\n"
    return shown


def install(server: Any) -> dict[str, Any]:
    """Join a server. This module adds no requests."""
    global SERVER
    SERVER = server
    server.format_exception = format_exception
    return {}
