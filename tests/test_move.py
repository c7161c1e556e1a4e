"""tools/move.py: what a table moves, and what it rewrites."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

move = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "tools" / "move.py")))

FILES = [
    f"src/top/{name}"
    for name in ("__init__.py", "a/__init__.py", "a/one.py", "a/c/part.c", "b.py", "errors.py")
]
TABLE = """
root other packages/other/src
top.a      other.box   # a package
top.a.one  top.single  # but not this module
top.errors:Wrong other.box.errors:Bad
"""


@pytest.fixture
def moves() -> Any:
    return move.read_table(TABLE, FILES, {"top": "src"})


def test_files_move_with_their_packages(moves: Any) -> None:
    assert move.file_moves(moves, FILES) == {
        "src/top/a/__init__.py": "packages/other/src/other/box/__init__.py",
        "src/top/a/one.py": "src/top/single.py",
        "src/top/a/c/part.c": "packages/other/src/other/box/c/part.c",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from top.a import x", "from other.box import (x)"),
        ("from top import a, b", "from other import (box as a)\nfrom top import (b)"),
        ("from top import a as z", "from other import (box as z)"),
        (
            "from top.a import (\n    one,\n    x,\n)",
            "from top import (single as one)\nfrom other.box import (x)",
        ),
        (
            "if True:\n    from top.errors import Wrong, Right",
            "if True:\n    from other.box.errors import (Bad as Wrong)\n"
            "    from top.errors import (Right)",
        ),
        ("from top.b import y  # top.a", "from top.b import y  # other.box"),
        ("from top.b import y as y", "from top.b import y as y"),
        ("from top.a import x as x", "from other.box import (x as x)"),
        ("import top.a.one\ntop.a.one.f()", "import top.single\ntop.single.f()"),
        ("load('top.a.one:f')", "load('top.single:f')"),
        (
            "'top.errors.Wrong.args', 'top.errors:Wrong'",
            "'other.box.errors.Bad.args', 'other.box.errors:Bad'",
        ),
        ("é = 'é'; from top.a import x", "é = 'é'; from other.box import (x)"),
        ("top.about, stop.a, x.top.a, top.b", "top.about, stop.a, x.top.a, top.b"),
        (
            "'src/top/a/one.py', 'top/a/', 'src/top/a/c/*.c'",
            "'src/top/single.py', 'other/box/', 'packages/other/src/other/box/c/*.c'",
        ),
        ("'src/top/b.py', 'src/top/ab'", "'src/top/b.py', 'src/top/ab'"),
    ],
)
def test_uses_follow(moves: Any, old: str, new: str) -> None:
    assert move.rewrite(old, moves, is_python=True) == new


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("top.nosuch other", "no module top.nosuch"),
        ("top.b", "not `old new`"),
        ("top.b:x other", "not `old new`"),
    ],
)
def test_a_line_that_cannot_be_carried_out(line: str, message: str) -> None:
    with pytest.raises(move.TableError, match=message):
        move.read_table(line, FILES, {"top": "src"})


def test_two_files_do_not_become_one() -> None:
    moves = move.read_table("top.b top.errors", FILES, {"top": "src"})
    with pytest.raises(move.TableError, match=r"a file already: src/top/errors\.py"):
        move.file_moves(moves, FILES)
