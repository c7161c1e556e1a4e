"""The tools that a model was offered, reconstructed from the agent metadata of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from intercode.agents.parsing import CHANGES_NOTE
from intercode.agents.prompt import Prompt
from intercode.agents.tool_calling import tool_set_of
from intercode.core.types import EnvironmentDescription, Trajectory
from intercode.environments.recorded_descriptions import description_of, recorded_environment
from intercode.models.providers.chat_requests import tool_specs

_TOOL_SECTIONS = ("run", "submit")
"""The sections of the agent's prompt that describe its two tools."""


def offered_tools(episode: Trajectory) -> list[dict[str, Any]]:
    """Return the tools in the form of chat endpoints; empty if the model called none.

    The descriptions are those of the recorded prompt, or empty without one.
    """
    if not any(m.get("tool_calls") for step in episode.steps for m in step.messages):
        return []
    description = description_of(episode.run)
    tools = tool_set_of(description).tools(*_tool_texts(episode, description))
    return tool_specs(tools)


def _tool_texts(episode: Trajectory, description: EnvironmentDescription) -> tuple[str, str]:
    metadata = episode.run.get("agent_metadata")
    prompt = metadata.get("prompt") if isinstance(metadata, Mapping) else None
    text = prompt.get("text") if isinstance(prompt, Mapping) else None
    if not isinstance(text, str) or any(f"== {s} ==" not in text for s in _TOOL_SECTIONS):
        return "", ""
    language = description.language
    # a record has no Brief: that only changes are judged is in the first messages
    prompts = [m for s in episode.steps for m in s.messages if m.get("role") in ("system", "user")]
    only_changes = any(CHANGES_NOTE in str(m.get("content")) for m in prompts)
    values = {
        "environment": recorded_environment(episode.run),
        "language": language.title,
        "fence": language.tags[0],
        "judged": CHANGES_NOTE if only_changes else description.judged,
        "turns": episode.run.get("max_turns") or "any number of",
        "query": episode.query,
    }
    recorded = Prompt(text, _TOOL_SECTIONS)
    run, submit = (recorded.fill(section, values) for section in _TOOL_SECTIONS)
    return run, submit
