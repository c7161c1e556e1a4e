"""Draws what an asciinema recording leaves on its terminal after its last comment, as SVG.

python tools/terminal_svg.py docs/evaluation-session.cast docs/evaluation-session.svg
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from pathlib import Path

COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "38;5;237": "#484f58", "2": "#8b949e"}
"""Of the codes of the terminal; other text is in the last one."""
TEXT, BACKGROUND, WIDTH, HEIGHT = "#e6edf3", "#0d1117", 7.8, 17
NO_BREAK = "\xa0"
"""A blank that SVG does not join with its neighbours."""
_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n])")

Line = dict[int, tuple[str, str]]
"""The characters of a line by their columns, each with its colour."""


def screen(text: str) -> list[Line]:
    """Return the lines that a text leaves on a terminal that is wide and high enough."""
    lines: list[Line] = [{}]
    row = column = 0
    colour = TEXT
    for codes, command, control, character in _TOKEN.findall(text):
        if character:
            lines[row][column] = (character, colour)
            column += 1
        elif control == "\r":
            column = 0
        elif control == "\n":
            row += 1
            if row == len(lines):
                lines.append({})
        elif command == "m":
            colour = COLOURS.get(codes, TEXT)
        elif command == "K":
            lines[row] = {} if codes == "2" else {c: v for c, v in lines[row].items() if c < column}
        elif command == "A":
            row = max(0, row - int(codes or 1))
    return lines


def draw(lines: list[Line], columns: int) -> str:
    """Return the lines as an SVG."""
    width, height = (columns + 2) * WIDTH, (len(lines) + 1.5) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="monospace" font-size="13">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for number, line in enumerate(lines, start=1):
        starts = [c for c in sorted(line) if line.get(c - 1, ("", ""))[1] != line[c][1]]
        for start in starts:
            end = start
            while end in line and line[end][1] == line[start][1]:
                end += 1
            text = "".join(line[c][0] for c in range(start, end)).rstrip()
            if text:
                parts.append(
                    f'<text x="{(start + 1) * WIDTH:.1f}" y="{(number + 0.5) * HEIGHT:.1f}" '
                    f'fill="{line[start][1]}" textLength="{len(text) * WIDTH:.1f}">'
                    f"{escape(text).replace(' ', NO_BREAK)}</text>"
                )
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Draw the recording that the first argument names, into the file of the second."""
    source, target = map(Path, sys.argv[1:])
    header, *events = map(json.loads, source.read_text("utf-8").splitlines())
    lines = screen("".join(text for _, kind, text in events if kind == "o"))
    comments = [n for n, line in enumerate(lines) if line.get(0, ("",))[0] == "#"]
    shown = wrapped(lines[max(comments, default=0) :], header["width"])
    target.write_text(draw(shown, header["width"]), "utf-8")


def wrapped(lines: list[Line], columns: int) -> list[Line]:
    """Return the lines without trailing empty ones, each broken at the width of the terminal."""
    parts: list[Line] = []
    for line in lines:
        for start in range(0, max(line, default=0) + 1, columns):
            parts.append({c - start: v for c, v in line.items() if start <= c < start + columns})
    while parts and not parts[-1]:
        parts.pop()
    return parts


if __name__ == "__main__":
    main()
