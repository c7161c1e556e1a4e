"""The text that a model is sent: sections of a prompt file, and observations in full or in part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Set
from importlib import resources
from pathlib import Path
from string import Template

from intercode.agents.parsing import scoring_note
from intercode.core.errors import ConfigError
from intercode.core.types import Brief, Step
from intercode_sandbox.long_output import shorten

_HEADING = re.compile(r"^== (\w+) ==[ \t]*\n", re.MULTILINE)
PLACEHOLDERS = frozenset(
    (
        "environment",
        "language",
        "fence",
        "turns",
        "query",
        "notes",
        "judged",
        "example",  # episode
        "observation",
        "reward",
        "turn",
        "why",
        "action",  # turn
    )
)
"""The placeholders of every prompt. Those without a value in an agent's situation become empty."""


class Prompt:
    """The sections of one prompt file.

    A section begins with a line ``== name ==``; text before the first section is a comment.
    ``$name`` is a placeholder, ``$$`` a dollar sign. ``text`` is the whole file, for the record.
    Raises ConfigError for a missing section and for a single ``$``.
    """

    def __init__(self, text: str, required: tuple[str, ...] = (), source: str = "prompt") -> None:
        self.source, self.text = source, text
        parts = _HEADING.split(text)[1:]
        self.sections = {
            k: Template(v.strip("\n")) for k, v in zip(parts[::2], parts[1::2], strict=True)
        }
        for section in required:
            if section not in self.sections:
                raise ConfigError(
                    f"{source} has no section {section!r}; add it below a line '== {section} =='"
                )
        for section, template in self.sections.items():
            if not template.is_valid():
                raise ConfigError(
                    f"section {section!r} of {source} has a single $; write $$ for a dollar sign"
                )

    def require_known(self, placeholders: Set[str]) -> None:
        """Raise ConfigError for a placeholder that is none of these and not in PLACEHOLDERS."""
        for section, template in self.sections.items():
            if unknown := set(template.get_identifiers()) - PLACEHOLDERS - placeholders:
                raise ConfigError(
                    f"section {section!r} of {self.source} has unknown placeholders: "
                    f"{', '.join(sorted(unknown))}; "
                    f"known: {', '.join(sorted(PLACEHOLDERS | placeholders))}"
                )

    def metadata(self) -> dict[str, str]:
        """Return what a run records of a prompt: its ``file``, ``sha256`` and whole ``text``."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return {"file": self.source, "sha256": digest, "text": self.text}

    def values(self, brief: Brief, turns: int | None) -> dict[str, object]:
        """Return the values of the placeholders that stay the same in an episode, which may take
        so many ``turns``."""
        language = brief.description.language
        values: dict[str, object] = {
            "environment": brief.environment,
            "language": language.title,
            "fence": language.tags[0],
            "judged": scoring_note(brief),
            "turns": "any number of" if turns is None else turns,
            "query": brief.query,
            "notes": brief.notes,
        }
        example = f"example_{brief.environment}"
        if example in self.sections:
            values["example"] = self.fill(example, values)
        return values

    def fill(self, section: str, values: Mapping[str, object]) -> str:
        """Return a section with its placeholders filled in. Values are inserted literally, even if
        they hold ``$``."""
        template = self.sections[section]
        strings = dict.fromkeys(template.get_identifiers(), "")
        return template.substitute(strings | {k: str(v) for k, v in values.items()}).strip("\n")


def load_prompt(
    prompt: str | Path | None,
    default: str,
    required: tuple[str, ...],
    placeholders: Set[str] = frozenset(),
) -> Prompt:
    """Return the prompt in the file ``prompt``, or the packaged prompt named ``default``.

    ``placeholders`` are those of the strategy, beside PLACEHOLDERS.

    Optional sections that a user's file lacks are taken from the packaged prompt. Raises
    ConfigError for a file that cannot be read.
    """
    packaged = (resources.files("intercode.agents") / "prompts" / default).read_text("utf-8")
    if prompt is None:
        own = Prompt(packaged, required, default)
        own.require_known(placeholders)
        return own
    try:
        text = Path(prompt).read_text("utf-8")
    except (OSError, ValueError, TypeError) as e:  # not UTF-8, or not a path
        raise ConfigError(f"cannot read the prompt file {str(prompt)!r}: {e}") from e
    own = Prompt(text, required, str(prompt))
    own.require_known(placeholders)
    parts = _HEADING.split(packaged)[1:]
    missing = [
        f"\n== {name} ==\n{body}"
        for name, body in zip(parts[::2], parts[1::2], strict=True)
        if name not in own.sections
    ]
    return Prompt(text + "".join(missing), required, str(prompt)) if missing else own


def format_observation(feedback: Step, limit: int) -> tuple[str, dict[str, int]]:
    """Return at most ``limit`` characters of an output, head and tail, and the sizes if it was
    cut."""
    text = feedback.observation.strip("\n")
    excerpt = shorten(text, limit)
    visible = excerpt.text or "(no output)"
    if feedback.timed_out:
        visible += "\n(It was stopped at the time limit.)"
    return visible, omission_context({"characters": len(text), "shown": excerpt.shown})


def omission_context(sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes if something was left out, else an empty dictionary."""
    length, visible = sizes.values()
    return sizes if visible < length else {}
