"""Claude Code: Anthropic's agent for the command line, through the Messages API."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping

from intercode.agents.programs.program import INSTALLED, Launch, Packages, Program, ToolResult

TESTED_VERSION = "2.1.330"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_FAILED = re.compile(r"Exit code (?P<code>\d+)\n?")
"""What Claude Code writes above the output of a command that has failed."""
_NO_OUTPUT = "(Bash completed with no output)"
_REMINDERS = re.compile(
    r"(\n*<system-reminder>((?!</system-reminder>).)*</system-reminder>)+\s*\Z", re.DOTALL
)
"""What it writes below an output for models that it knows, such as how many tokens are left."""


class ClaudeCode(Program):
    """Claude Code from npm, without questions and without requests beside those of the task."""

    name = "claude-code"

    def __init__(self, version: str = TESTED_VERSION) -> None:
        self.packages = (Packages("npm", (f"@anthropic-ai/claude-code@{version}",)),)

    def command(self, launch: Launch) -> list[str]:
        package = f"claude-code-linux-{_MACHINES[platform.machine()]}"
        program = f"{INSTALLED}/npm/node_modules/@anthropic-ai/{package}/claude"
        return [
            program,
            "--print",
            "--permission-mode",
            "bypassPermissions",
            "--no-session-persistence",
            "--model",
            launch.model,
            launch.query,
        ]

    def variables(self, launch: Launch) -> Mapping[str, str]:
        return {
            "CLAUDE_CONFIG_DIR": launch.home,
            "CLAUDE_CODE_TMPDIR": launch.scratch,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ANTHROPIC_SMALL_FAST_MODEL": launch.model,
            "API_TIMEOUT_MS": "3600000",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "IS_SANDBOX": "1",
        }

    def home_files(self, launch: Launch) -> Mapping[str, str]:
        """Return the state of an installation whose first questions are answered."""
        return {
            ".claude.json": json.dumps(
                {
                    "hasCompletedOnboarding": True,
                    "bypassPermissionsModeAccepted": True,
                    "customApiKeyResponses": {"approved": [launch.key[-20:]], "rejected": []},
                }
            )
        }

    def read_result(self, text: str) -> ToolResult:
        text = _REMINDERS.sub("", text)
        if text == _NO_OUTPUT:
            return ToolResult("", 0)
        found = _FAILED.match(text)
        return ToolResult(text[found.end() :], int(found["code"])) if found else ToolResult(text, 0)
