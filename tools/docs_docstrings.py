"""Turns what docstrings mark in the way of Python's own documentation into Markdown for the site.

An extension of Griffe, which mkdocstrings reads the sources with (see mkdocs.yml).
"""

from __future__ import annotations

import copy
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(^|\S?):: *\n\n((?:(?: {4}.*)?\n)*(?: {4}.*)(?:\n|$))", re.MULTILINE)
_PROMPT = re.compile(r"^>>> (?:.+(?:\n|$))+", re.MULTILINE)
_PAGE = re.compile(r"(?<![\w/(])docs/([\w/-]+)\.md")
_PARAMETER = re.compile(r"(?<=[.;)])\s+(?=``\w+``(?:, ``\w+``)*:\s)")


class DocstringMarkdown(griffe.Extension):
    """Makes blocks of Python of indented examples and of those with prompts, links of names of
    pages, and a list item of each parameter that a paragraph describes."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give ``AsyncSandbox`` the methods that it makes of those of ``Sandbox`` as it starts."""
        if pkg.path == "intercode_sandbox":
            made = pkg["api.async_sandbox.AsyncSandbox"]
            for name, attribute in list(made.attributes.items()):
                call = attribute.value
                if isinstance(call, griffe.ExprCall) and str(call.function) == "_in_thread":
                    made.set_member(name, _asynchronous(pkg["api.sandbox.Sandbox"][name]))


def _asynchronous(method: griffe.Function) -> griffe.Function:
    """Return a coroutine method with the parameters and the docstring of another method."""
    made = copy.copy(method)
    made.labels = {*method.labels, "async"}
    return made


def to_markdown(text: str) -> str:
    """Return a docstring as Markdown."""
    text = _EXAMPLE.sub(_fence, text)
    text = _PROMPT.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", text)
    text = _PAGE.sub(lambda page: f"[{page[1]}](../../{page[1]}.md)", text)
    return "\n\n".join(_list_parameters(part) for part in text.split("\n\n"))


def _fence(found: re.Match[str]) -> str:
    code = "\n".join(line.removeprefix("    ") for line in found[2].rstrip().splitlines())
    lead = f"{found[1]}:\n\n" if found[1] else ""
    return f"{lead}```python\n{code}\n```\n"


def _list_parameters(paragraph: str) -> str:
    """Return a paragraph that begins with "``name``: " as one item for each such name."""
    if not re.match(r"``\w+``(?:, ``\w+``)*:\s", paragraph):
        return paragraph
    items = _PARAMETER.split(paragraph)
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)
