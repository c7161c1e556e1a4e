"""Lists from the code what the embedded SQL engine cannot do, and writes a page
of results/.

    python benchmarks/embedded_limits.py [--write]

Each entry is a message of ``unsupported``: a session answers "The embedded engine cannot do this:"
with it. Without ``--write`` the page is only printed.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "embedded-limits.md"
_SOURCES = ("packages/sql/src/intercode_sql/dialect", "packages/sql/src/intercode_sql/embedded")
_PARTS = {
    "dialect": "The text of a statement",
    "catalog": "Types and values",
    "compile": "Queries",
    "execute": "Statements that write or define, and settings",
    "functions": "Functions",
    "load": "Dumps",
}
_ABOUT = """\
# What the embedded SQL engine cannot do

The engine `embedded` gives MySQL's answer, MySQL's error, or "The embedded engine cannot do this:"
and one of these reasons. `python benchmarks/embedded_limits.py --write` makes this page from the
code; `…` stands for a part of the statement. A server can do all of it: `engine="mysql"`.

`python benchmarks/sql_fuzz.py --statements 20000 --seed 1` compares generated statements with a
server and prints the share that agrees, the share refused in this way, and every difference.
"""


def limits() -> dict[str, list[str]]:
    """Return the reasons, sorted, by the part of the engine that gives them."""
    found: dict[str, set[str]] = {}
    for source in _SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            part = path.parent.name if path.parent.name in _PARTS else "execute"
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id == "unsupported"
                    and (text := _text(node.args[0]))
                ):
                    found.setdefault(part, set()).add(text)
    return {part: sorted(found[part], key=str.lower) for part in _PARTS if part in found}


def _text(node: ast.expr) -> str:
    """Return the text of a literal, with dots for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return ""


def page() -> str:
    """Return the page."""
    lines = [_ABOUT]
    for part, reasons in limits().items():
        lines += [f"## {_PARTS[part]}", "", *(f"- {_escaped(r)}" for r in reasons), ""]
    return "\n".join(lines).rstrip() + "\n"


def _escaped(text: str) -> str:
    for sign in "\\*_<>|`":
        text = text.replace(sign, "\\" + sign)
    return text


def main() -> int:
    """Print or write the page. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(page(), "utf-8")
    else:
        print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
