"""The text that a model is sent: sections of a prompt file, and observations in full or in part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from intercode.agents.base import Feedback
from intercode.core.errors import ConfigError
from intercode_sandbox.long_output import shorten

_HEADING = re.compile(r"^== (\w+) ==[ \t]*\n", re.MULTILINE)
PLACEHOLDERS = frozenset((
    "environment", "language", "fence", "turns", "query", "notes", "judged", "example",  # episode
    "observation", "reward", "step", "turn", "why", "action",  # turn
    "reflections",  # restart
))  # fmt: skip
"""The placeholders of a prompt. Those without a value in an agent's situation become empty."""


class Prompt:
    """The sections of one prompt file.

    A section begins with a line ``== name ==``; text before the first section is a comment.
    ``$name`` is a placeholder, ``$$`` a dollar sign. ``text`` is the whole file, for the record.
    Raises ConfigError for a missing section and for a name that is not in PLACEHOLDERS.
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
            self._check(section, template)

    def metadata(self) -> dict[str, str]:
        """Return what a run records of a prompt: its ``file``, ``sha256`` and whole ``text``."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return {"file": self.source, "sha256": digest, "text": self.text}

    def fill(self, section: str, values: Mapping[str, object]) -> str:
        """Return a section with its placeholders filled in. Values are inserted literally, even if
        they hold ``$``."""
        strings = dict.fromkeys(PLACEHOLDERS, "") | {k: str(v) for k, v in values.items()}
        return self.sections[section].substitute(strings).strip("\n")

    def _check(self, section: str, template: Template) -> None:
        where = f"section {section!r} of {self.source}"
        if not template.is_valid():
            raise ConfigError(f"{where} has a single $; write $$ for a dollar sign")
        if unknown := set(template.get_identifiers()) - PLACEHOLDERS:
            names, known = ", ".join(sorted(unknown)), ", ".join(sorted(PLACEHOLDERS))
            raise ConfigError(f"{where} has unknown placeholders: {names}; known: {known}")


def load_prompt(prompt: str | Path | None, default: str, required: tuple[str, ...]) -> Prompt:
    """Return the prompt in the file ``prompt``, or the packaged prompt named ``default``.

    Optional sections that a user's file lacks are taken from the packaged prompt. Raises
    ConfigError for a file that cannot be read.
    """
    packaged = (resources.files("intercode.agents") / "prompts" / default).read_text("utf-8")
    if prompt is None:
        return Prompt(packaged, required, default)
    try:
        text = Path(prompt).read_text("utf-8")
    except (OSError, ValueError, TypeError) as e:  # not UTF-8, or not a path
        raise ConfigError(f"cannot read the prompt file {str(prompt)!r}: {e}") from e
    own = Prompt(text, required, str(prompt))
    parts = _HEADING.split(packaged)[1:]
    missing = [
        f"\n== {name} ==\n{body}"
        for name, body in zip(parts[::2], parts[1::2], strict=True)
        if name not in own.sections
    ]
    return Prompt(text + "".join(missing), required, str(prompt)) if missing else own


OBSERVATION_LIMIT = 4000
"""The characters of an observation that a model is sent if its agent, or its trainer, sets none."""
FEEDBACK_STYLES = ("standard", "original")
TESTS_FAILED_MESSAGE = "Test case did not pass. Please try again."
"""The text that the authors' runner sends in place of the observation after a function whose tests
raised."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class ObservationLimits:
    """How much of an observation the authors' runners sent to a model: the first characters of a
    text, or the first rows of a result regardless of their length."""

    characters: int
    rows: int


def format_observation(feedback: Feedback, limit: int) -> tuple[str, dict[str, int]]:
    """Return at most ``limit`` characters of an output, head and tail, and the sizes if it was
    cut."""
    text = feedback.observation.strip("\n")
    visible = shorten(text, limit)[0] or "(no output)"
    if feedback.timed_out:
        visible += "\n(It was stopped at the time limit.)"
    return visible, _omission_context({"characters": len(text), "shown": min(limit, len(text))})


def format_observation_original(
    feedback: Feedback, form: str, limits: ObservationLimits, code: str
) -> tuple[str, dict[str, int]]:
    """Return an observation as the authors' runners sent it: its beginning, without a note on the
    rest; a dictionary of the Python service in full. ``form``: that of observations in the authors'
    logs. ``code`` is the action that it followed."""
    text = feedback.observation
    if form == "dictionary":
        score = feedback.score
        failed = score is not None and not score.success and score.details.get("raised")
        return (TESTS_FAILED_MESSAGE if failed and code.startswith("def") else text), {}
    rows = split_rows(text) if form == "rows" else None
    if rows is not None:
        selected = rows[: limits.rows]
        visible = text if len(selected) == len(rows) else f"[{', '.join(selected)}]"
        return visible or "(no output)", _omission_context(
            {"rows": len(rows), "shown": len(selected)}
        )
    beginning = text[: limits.characters]
    return beginning or "(no output)", _omission_context(
        {"characters": len(text), "shown": len(beginning)}
    )


def split_rows(text: str) -> list[str] | None:
    """Return the rows in a list as Python prints it, each as text; None for anything else."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    rows: list[str] = []
    open_pairs: list[str] = []
    quote, at, start = "", 1, 1
    while at < len(text) - 1:
        sign = text[at]
        if quote:
            at += sign == "\\"  # an escaped character does not end the string
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _PAIRS:
            open_pairs.append(_PAIRS[sign])
        elif open_pairs and sign == open_pairs[-1]:
            open_pairs.pop()
        elif sign == "," and not open_pairs:
            rows.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:-1].strip()
    return [*rows, last] if last else rows


def _omission_context(sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes if something was left out, else an empty dictionary."""
    length, visible = sizes.values()
    return sizes if visible < length else {}
