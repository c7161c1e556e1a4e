"""A task in some language, with a reference of its own that tells what its tests expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """``answer``: a function in Python that says what comes out for one of ``inputs``, so that the
    tests do not depend on the gold. A program's inputs are texts, the first of which is shown to
    the agent with what it gives and is no test; a function's (``entry``) are lists of arguments."""

    name: str
    hardness: str
    tags: tuple[str, ...]
    query: str
    reference: Callable[..., Any]
    inputs: tuple[Any, ...]
    entry: str = ""

    @property
    def tests(self) -> tuple[dict[str, Any], ...]:
        """The hidden tests."""
        if self.entry:
            return tuple({"input": i, "output": self.reference(*i)} for i in self.inputs)
        return tuple({"input": i, "output": self.reference(i)} for i in self.inputs[1:])

    @property
    def prompt(self) -> str:
        """What is asked, with the example."""
        if self.entry:
            return self.query
        first = self.inputs[0]
        return f"{self.query}\n\nFor the input\n\n{first}\nit prints\n\n{self.reference(first)}"
