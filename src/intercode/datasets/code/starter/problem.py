"""A problem in some language, with a reference in Python that computes what its tests expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    ``reference`` is a Python function that computes the output for one of ``inputs``, so that the
    tests do not depend on the gold. The inputs of a program are texts; the first is the example in
    the query and not a test. The inputs of a function (``entry``) are lists of arguments.
    """

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
        """The query, with the example of a program."""
        if self.entry:
            return self.query
        first = self.inputs[0]
        return f"{self.query}\n\nFor the input\n\n{first}\nit prints\n\n{self.reference(first)}"
