"""mini-swe-agent: commands in subshells, by the tool ``bash``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from intercode.agents.programs.program import INSTALLED, Launch, Packages, Program

TESTED_VERSION = "2.4.6"
_TESTED_CLIENT = ("litellm==1.83.0", "mcp==1.30.0")
"""Its client of models. Later releases need a package that they do not depend on."""
_START = (
    f"import runpy, sys; sys.path.insert(0, '{INSTALLED}/pypi'); sys.argv[0] = 'mini'; "
    "runpy.run_module('minisweagent.run.mini', run_name='__main__')"
)
"""Starts the agent, whose packages the commands of the agent then do not see."""


class MiniSweAgent(Program):
    """mini-swe-agent from PyPI, which runs each command without confirmation."""

    name = "mini-swe-agent"

    def __init__(self, version: str = TESTED_VERSION) -> None:
        self.packages = (Packages("pypi", (f"mini-swe-agent=={version}", *_TESTED_CLIENT)),)

    def command(self, launch: Launch) -> list[str]:
        return [
            "python3",
            "-c",
            _START,
            "--yolo",
            "--exit-immediately",
            "--task",
            launch.query,
            "--output",
            f"{launch.home}/trajectory.json",
            "--config",
            "mini.yaml",
            "--config",
            f"{launch.home}/bridge.yaml",
        ]

    def variables(self, launch: Launch) -> Mapping[str, str]:
        return {
            "MSWEA_GLOBAL_CONFIG_DIR": launch.home,
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def home_files(self, launch: Launch) -> Mapping[str, str]:
        """Return a configuration: JSON, which YAML contains."""
        model = {
            "model_name": f"openai/{launch.model}",
            "model_kwargs": {"api_base": f"{launch.base_url}/v1", "api_key": launch.key},
            "cost_tracking": "ignore_errors",
        }
        settings = {"model": model, "agent": {"cost_limit": 0, "step_limit": 0}}
        return {"bridge.yaml": json.dumps(settings)}
