"""Python tasks for tests, one of each kind."""

from __future__ import annotations

from typing import Any

from intercode.core.types import Dataset, Task
from intercode.environments.python.env import PythonEnv


def task(name: str, gold: str, *tests: Any, **data: Any) -> Task:
    return Task(f"own/{name}", f"Write {name}.", gold=gold, data={"tests": tests, **data})


ADD = task(
    "add",
    "def add(a, b):\n    return a + b\n",
    "assert add(1, 2) == 3",
    "assert add('a', 'b') == 'ab'",
    entry="add",
    setup="",
)
NODE = task(
    "depth",
    "class Node:\n    def __init__(self, v): self.v, self.left = v, None\n"
    "def depth(n): return 0 if n is None else 1 + depth(n.left)\n",
    "assert depth(root) == 2",
    "assert depth(None) == 0",
    "assert depth(root) == limit",
    entry="depth",
    setup="limit = 2\nroot = Node(1)\nroot.left = Node(2)\n",
)
CALL = task(
    "apps",
    "def swap(a):\n    return [a[1], a[0]]\n",
    {"input": [[1, 2]], "output": [2, 1]},
    {"input": [["x", "y"]], "output": [["y", "x"]]},
    entry="swap",
    mode="call",
    prelude="import math\n",
)
METHOD = task(
    "method",
    "class Solution:\n    def swap(self, a):\n        return (a[1], a[0])\n",
    {"input": [[1, 2]], "output": [2, 1]},
    entry="swap",
    mode="call",
)
PROGRAM = task(
    "program",
    "n = int(input())\nprint(sum(int(x) for x in input().split()), n)\n",
    {"input": "2\n1 2\n", "output": "3 2\n"},
    {"input": "1\n7\n", "output": "7 1"},
    entry="",
    mode="stdin",
)
ALL = Dataset("own", "python", (ADD, NODE, CALL, METHOD, PROGRAM))


def shown(env: PythonEnv, code: str) -> str:
    """Return the output of an action."""
    return env.step(code)[0]
