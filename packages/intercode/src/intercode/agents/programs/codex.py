"""Codex: OpenAI's agent for the command line, through the Responses API."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping

from intercode.agents.programs.program import INSTALLED, Launch, Packages, Program, ToolResult

TESTED_VERSION = "0.169.0"
_MACHINES = {
    "x86_64": ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    "aarch64": ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
}
_RESULT = re.compile(
    r"(?:Chunk ID:.*\n)?(?:Wall time:.*\n)?"
    r"(?:Process exited with code|Exit code:) (?P<code>-?\d+)\n(?:.*\n)*?Output:\n"
)
"""What Codex writes above the output of a command."""


class Codex(Program):
    """Codex from npm, without its own sandbox and without questions."""

    name = "codex"

    def __init__(self, version: str = TESTED_VERSION) -> None:
        self.packages = (Packages("npm", (f"@openai/codex@{version}",)),)

    def command(self, launch: Launch) -> list[str]:
        package, target = _MACHINES[platform.machine()]
        program = f"{INSTALLED}/npm/node_modules/@openai/{package}/vendor/{target}/bin/codex"
        return [
            program,
            "exec",
            "--dangerously-bypass-approvals-and-sandbox",
            "--skip-git-repo-check",
            "--ephemeral",
            launch.query,
        ]

    def variables(self, launch: Launch) -> Mapping[str, str]:
        return {"CODEX_HOME": launch.home}

    def home_files(self, launch: Launch) -> Mapping[str, str]:
        """Return the configuration, in TOML. Its quoted texts are those of JSON."""
        lines = {
            "model": launch.model,
            "model_provider": "bridge",
            "web_search": "disabled",
        }
        provider = {
            "name": "bridge",
            "base_url": f"{launch.base_url}/v1",
            "env_key": "OPENAI_API_KEY",
            "wire_api": "responses",
        }
        text = [f"{k} = {json.dumps(v)}" for k, v in lines.items()]
        text += ["check_for_update_on_startup = false", "", "[model_providers.bridge]"]
        text += [f"{k} = {json.dumps(v)}" for k, v in provider.items()]
        text += ["request_max_retries = 0", "stream_max_retries = 0"]
        text += ["stream_idle_timeout_ms = 3600000", "", "[analytics]", "enabled = false"]
        text += ["", "[features]", "shell_snapshot = false", ""]
        return {"config.toml": "\n".join(text)}

    def read_result(self, text: str) -> ToolResult:
        found = _RESULT.match(text)
        return ToolResult(text[found.end() :], int(found["code"])) if found else ToolResult(text)
