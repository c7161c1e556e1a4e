"""Prompt files: sections of plain text with ``$names`` to fill in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from intercode.core.errors import ConfigError

_HEADING = re.compile(r"^== (\w+) ==[ \t]*\n", re.MULTILINE)
_EPISODE_PLACEHOLDERS = (
    "environment",
    "language",
    "fence",
    "turns",
    "query",
    "notes",
    "judged",
    "example",
)
_TURN_PLACEHOLDERS = ("observation", "reward", "thought", "step", "plan", "turn", "why", "action")
PLACEHOLDERS = frozenset([*_EPISODE_PLACEHOLDERS, *_TURN_PLACEHOLDERS])
"""What a prompt may ask for; what has no value in an agent's situation is filled in empty."""


class Prompt:
    """The sections of one prompt file.

    A section begins with a line ``== name ==``; what stands before the first one is a comment.
    ``$name`` is filled in, ``$$`` is a dollar sign. ``text`` is all of it, for the record. Raises
    ConfigError for a section that is missing or a name that is not in NAMES.
    """

    def __init__(self, text: str, needs: tuple[str, ...] = (), source: str = "prompt") -> None:
        self.source, self.text = source, text
        parts = _HEADING.split(text)[1:]
        self.sections = {
            k: Template(v.strip("\n")) for k, v in zip(parts[::2], parts[1::2], strict=True)
        }
        for section in needs:
            if section not in self.sections:
                raise ConfigError(
                    f"{source} has no section {section!r}; add it below a line '== {section} =='"
                )
        for section, template in self.sections.items():
            self._check(section, template)

    def metadata(self) -> dict[str, str]:
        """What a run's record holds of a prompt: its ``file``, ``sha256`` and whole ``text``."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return {"file": self.source, "sha256": digest, "text": self.text}

    def fill(self, section: str, values: Mapping[str, object]) -> str:
        """The text of a section. Values are put in as they are, even where they hold ``$``."""
        known = dict.fromkeys(PLACEHOLDERS, "") | {k: str(v) for k, v in values.items()}
        return self.sections[section].substitute(known).strip("\n")

    def _check(self, section: str, template: Template) -> None:
        where = f"section {section!r} of {self.source}"
        if not template.is_valid():
            raise ConfigError(f"{where} holds a lone $; write $$ for a dollar sign")
        if wrong := set(template.get_identifiers()) - PLACEHOLDERS:
            raise ConfigError(
                f"{where} asks for {', '.join(sorted(wrong))}; known: {', '.join(sorted(PLACEHOLDERS))}"
            )


def load_prompt(prompt: str | Path | None, default: str, needs: tuple[str, ...]) -> Prompt:
    """The prompt in the file ``prompt``, or this package's own one of the name ``default``.

    A section that a file of the user's need not have and lacks is that of the package's own.
    Raises ConfigError for a file that cannot be read.
    """
    packaged = (resources.files("intercode.agents") / "prompts" / default).read_text("utf-8")
    if prompt is None:
        return Prompt(packaged, needs, default)
    try:
        text = Path(prompt).read_text("utf-8")
    except (OSError, ValueError, TypeError) as e:  # a text that is not UTF-8, or no path at all
        raise ConfigError(f"cannot read the prompt file {str(prompt)!r}: {e}") from e
    own = Prompt(text, needs, str(prompt))
    parts = _HEADING.split(packaged)[1:]
    more = [
        f"\n== {name} ==\n{body}"
        for name, body in zip(parts[::2], parts[1::2], strict=True)
        if name not in own.sections
    ]
    return Prompt(text + "".join(more), needs, str(prompt)) if more else own


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text: its head and its tail, saying what is missing."""
    if len(text) <= limit:
        return text
    tail = limit // 2
    head = limit - tail
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[len(text) - tail :]}"
