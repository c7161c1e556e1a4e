"""Agents of the Agent Client Protocol: any command that speaks it, and those known by name."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from intercode.agents.programs.claude_code import ClaudeCode
from intercode.agents.programs.codex import Codex
from intercode.agents.programs.program import (
    INSTALLED,
    Launch,
    Packages,
    Program,
    ToolResult,
    shell_command,
)


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """How an agent is installed and started.

    ``package``, ``version``: in ``registry``. ``command``: for ``/bin/sh``. ``protocol``: the one
    of the bridge that it speaks with the model. ``variables``: its environment variables, and
    ``files`` those of its home, by name; in both, ``{base_url}``, ``{key}``, ``{model}``,
    ``{home}`` and ``{scratch}`` stand for fields of ``Launch``. ``login``: the id of the method by
    which it is logged in, if it asks for that. ``like``: a program with the same settings and the
    same form of results.
    """

    name: str
    command: str
    package: str = ""
    version: str = ""
    registry: Literal["pypi", "npm"] = "npm"
    protocol: Literal["chat", "responses", "messages", ""] = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    login: str | None = None
    like: Program | None = None


_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_XDG = {f"XDG_{kind}_HOME": "{scratch}" for kind in ("CACHE", "CONFIG", "DATA", "STATE")}


def _opencode(name: str) -> dict[str, str]:
    """Return the variables of OpenCode, and of what is made from it under another name."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "{base_url}/v1", "apiKey": "{key}"},
        "models": {"{model}": {"tool_call": True}},
    }
    settings = {
        "model": "bridge/{model}",
        "small_model": "bridge/{model}",
        "provider": {"bridge": provider},
        "agent": {"title": {"disable": True}},
        "autoupdate": False,
        "share": "disabled",
    }
    return {
        **_XDG,
        "TMPDIR": "{scratch}",
        f"{name}_CONFIG_CONTENT": json.dumps(settings),
        f"{name}_DISABLE_MODELS_FETCH": "1",
        f"{name}_DISABLE_AUTOUPDATE": "1",
    }


_NODE = {"NODE_OPTIONS": "--disable-wasm-trap-handler"}
"""So that the HTTP client of Node.js needs no ten gigabytes of addresses, which no sandbox has."""
_FLAGS = (
    '--openai-base-url "$OPENAI_BASE_URL" --openai-api-key "$OPENAI_API_KEY" '
    '--model "$INTERCODE_MODEL"'
)
_AGENTS = (
    AcpAgent(
        "claude-code",
        "claude-agent-acp",
        "@agentclientprotocol/claude-agent-acp",
        "0.101.0",
        protocol="messages",
        variables={"ANTHROPIC_MODEL": "{model}"},
        files={"settings.json": json.dumps({"permissions": {"defaultMode": "default"}})},
        like=ClaudeCode(),
    ),
    AcpAgent(
        "codex",
        "codex-acp",
        "@agentclientprotocol/codex-acp",
        "2.6.0",
        protocol="responses",
        variables={
            "NO_BROWSER": "1",
            "INITIAL_AGENT_MODE": "agent-full-access",
            "MODEL_PROVIDER": "bridge",
        },
        like=Codex(),
        login="api-key",
    ),
    AcpAgent(
        "opencode",
        f"{INSTALLED}/npm/node_modules/opencode-linux-{_MACHINE}/bin/opencode acp",
        "opencode-ai",
        "1.18.33",
        protocol="chat",
        variables=_opencode("OPENCODE"),
    ),
    AcpAgent(
        "qwen-code",
        f"qwen --acp --auth-type openai {_FLAGS}",
        "@qwen-code/qwen-code",
        "0.24.4",
        protocol="chat",
        variables={**_NODE, "QWEN_HOME": "{home}", "TMPDIR": "{scratch}"},
        files={"settings.json": json.dumps({"tools": {"approvalMode": "default"}})},
        login="openai",
    ),
    AcpAgent(
        "cline",
        "cline --acp",
        "cline",
        "3.0.65",
        protocol="chat",
        variables={
            "CLINE_DIR": "{home}",
            "CLINE_DATA_DIR": "{home}/data",
            "CLINE_API_KEY": "{key}",
            "CLINE_PROVIDER": "openai-compatible",
            "CLINE_MODEL": "{model}",
            "TMPDIR": "{scratch}",
        },
        files={
            "data/settings/providers.json": json.dumps(
                {
                    "version": 1,
                    "lastUsedProvider": "openai-compatible",
                    "providers": {
                        "openai-compatible": {
                            "settings": {
                                "provider": "openai-compatible",
                                "apiKey": "{key}",
                                "model": "{model}",
                                "baseUrl": "{base_url}/v1",
                            },
                            "updatedAt": "2026-01-01T00:00:00.000Z",
                            "tokenSource": "manual",
                        }
                    },
                }
            )
        },
    ),
)
ACP_AGENTS = {agent.name: agent for agent in _AGENTS}
"""The agents that are known by name, in the releases that are tested."""


class AcpProgram(Program):
    """An agent that takes the task as the prompt of a session, on its standard input."""

    def __init__(
        self, agent: AcpAgent, packages: tuple[Packages, ...] = (), files: str | None = None
    ) -> None:
        self.name, self.login = f"acp:{agent.name}", agent.login
        self.packages, self.files = packages, files
        self._agent = agent

    @classmethod
    def named(cls, name: str, version: str | None = None) -> AcpProgram:
        """Return one of ACP_AGENTS, in another release than the tested one if ``version`` is
        given."""
        agent = ACP_AGENTS[name]
        release = version or agent.version
        mark = "==" if agent.registry == "pypi" else "@"
        return cls(agent, (Packages(agent.registry, (f"{agent.package}{mark}{release}",)),))

    def command(self, launch: Launch) -> list[str]:  # noqa: ARG002
        return shell_command(self._agent.command)

    def variables(self, launch: Launch) -> Mapping[str, str]:
        shared = self._agent.like.variables(launch) if self._agent.like else {}
        return {**shared, **_filled(self._agent.variables, launch)}

    def home_files(self, launch: Launch) -> Mapping[str, str]:
        shared = self._agent.like.home_files(launch) if self._agent.like else {}
        return {**shared, **_filled(self._agent.files, launch)}

    def read_result(self, text: str) -> ToolResult:
        like = self._agent.like
        return like.read_result(text) if like else super().read_result(text)

    def metadata(self) -> dict[str, Any]:
        return super().metadata() | {"files": self.files}


def _filled(texts: Mapping[str, str], launch: Launch) -> dict[str, str]:
    """Return texts with the fields of a launch in place of their names."""
    filled = dict(texts)
    for place in ("base_url", "key", "model", "home", "scratch"):
        for name, text in filled.items():
            filled[name] = text.replace(f"{{{place}}}", getattr(launch, place))
    return filled
