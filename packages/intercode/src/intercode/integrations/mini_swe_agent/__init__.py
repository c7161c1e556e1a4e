"""An environment class of mini-swe-agent whose commands run in a sandbox.

``mini --environment-class intercode.integrations.mini_swe_agent.MiniSweAgentEnvironment``, or
``environment_class`` in a configuration file. Needs the extra ``agents``.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

try:
    from minisweagent.exceptions import Submitted
    from minisweagent.utils.serialize import recursive_merge
    from pydantic import AfterValidator, BaseModel, ConfigDict
except ModuleNotFoundError as e:
    raise ImportError("this needs mini-swe-agent: pip install 'intercode-gym[agents]'") from e

from intercode.core.errors import InfrastructureError, UsageError
from intercode.core.finalizers import close_when_collected
from intercode.integrations.failed_commands import status_of_failure
from intercode_sandbox import Limits, Sandbox
from intercode_sandbox.api.results import Result
from intercode_sandbox.validation import check_network

_SUBMIT_LINE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The first line of the output of a command with which an agent ends its task."""


class MiniSweAgentEnvironmentConfig(BaseModel):
    """The settings of ``MiniSweAgentEnvironment``.

    >>> from intercode.integrations.mini_swe_agent import MiniSweAgentEnvironmentConfig
    >>> MiniSweAgentEnvironmentConfig(cwd="/work", limits={"memory": 1 << 30}).limits.memory
    1073741824
    """

    model_config = ConfigDict(extra="forbid")

    image: str = "host"
    """The root file system: the programs of this machine, or any other form of docs/images.md."""
    cwd: str = ""
    """The directory of commands, which is made if it does not exist. Empty: that of the image."""
    env: dict[str, str] = {}
    """Environment variables of commands, besides those of the image."""
    forward_env: list[str] = []
    """Variables of this machine that commands get, where they are set; ``env`` precedes them."""
    timeout: float = 30
    """Seconds until a command is killed with everything that it has started."""
    interpreter: list[str] = ["bash", "-c"]
    """The program that runs a command, which is its last argument."""
    upload: dict[str, Path] = {}
    """Local files and directories that are copied into the sandbox, by their paths in it."""
    network: Annotated[str, AfterValidator(check_network)] = "none"
    """``host``: the network of this machine; ``allow:HOST,...``: hosts that can be reached."""
    limits: Limits = Limits()
    """Limits on what runs in the sandbox: a dictionary, such as ``{"memory": 1000000000}``."""
    backend: str = "auto"
    """The back end, or ``auto`` for the strongest isolation that works on this machine."""


class MiniSweAgentEnvironment:
    """Runs the commands of an agent in one sandbox, each in a new process of the interpreter.

    Files and background processes last until ``cleanup``, variables and the directory do not.

    Args:
        config_class: The class of ``config``.
        **settings: The fields of ``config_class``.

    Raises:
        ValidationError: A setting does not exist or has a wrong value. This is pydantic's error.
        UsageError: There is no such image or back end.
        InfrastructureError: The sandbox cannot be opened.
    """

    def __init__(
        self,
        *,
        config_class: type[MiniSweAgentEnvironmentConfig] = MiniSweAgentEnvironmentConfig,
        **settings: Any,
    ) -> None:
        self.config = config_class(**settings)
        config = self.config
        forwarded = {name: os.environ[name] for name in config.forward_env if name in os.environ}
        self.sandbox = Sandbox(
            config.image,
            network=config.network,
            limits=config.limits,
            env={**forwarded, **config.env},
            backend=config.backend,
        )
        close_when_collected(self, self.sandbox.close)
        try:
            self.sandbox.write_files(config.upload)
            if config.cwd:
                self.sandbox.run(["mkdir", "-p", config.cwd], cwd="/")
        except BaseException:
            self.cleanup()
            raise

    def execute(
        self, action: Mapping[str, Any], cwd: str = "", *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Run the command of an action and return its output, exit status and what went wrong.

        A command that fails is a result like any other.

        Args:
            action: Has the text of the command as ``command``.
            cwd: The directory; empty: that of the settings.
            timeout: Seconds until the command is killed; None: those of the settings.

        Returns:
            ``output``, ``returncode`` and ``exception_info``. If the command exceeded its time
            limit or could not be started, ``returncode`` is -1 and ``exception_info`` says why.

        Raises:
            Submitted: The command ends the task. This is mini-swe-agent's exception.
            InfrastructureError: The machine has failed or the sandbox is gone. It ends the agent.
        """
        command = [*self.config.interpreter, str(action.get("command", ""))]
        limit = timeout or self.config.timeout
        directory = cwd or self.config.cwd or None
        try:
            result = self.sandbox.run(command, cwd=directory, timeout=limit, merge_stderr=True)
        except OSError as e:
            return _failure("", type(e).__name__, f"{e} (directory {directory or 'of the image'})")
        except (UsageError, InfrastructureError) as e:
            status_of_failure(e)  # raises an error of the machine
            return _failure("", type(e).__name__, str(e))
        if result.exit_code is None:
            message = f"{command!r} timed out after {limit:g} seconds"
            return _failure(result.stdout, "TimeoutExpired", message)
        _check_submission(result)
        exceeded = result.limit_exceeded
        info = f"The sandbox's limit '{exceeded}' was exceeded." if exceeded else ""
        return {"output": result.stdout, "returncode": result.exit_code, "exception_info": info}

    def get_template_vars(self, **variables: Any) -> dict[str, Any]:
        """Return the settings and the names of the system, for the templates of prompts.

        Args:
            **variables: Further variables, which replace those of the same name.
        """
        return dict(
            recursive_merge(self.config.model_dump(), platform.uname()._asdict(), variables)
        )

    def serialize(self) -> dict[str, Any]:
        """Return the settings and the isolation tier, which an agent saves with its trajectory."""
        return {
            "info": {
                "config": {
                    "environment": self.config.model_dump(mode="json"),
                    "environment_type": f"{type(self).__module__}.{type(self).__name__}",
                },
                "isolation_tier": self.sandbox.tier,
            }
        }

    def cleanup(self) -> None:
        """End the sandbox, which also happens when this object is collected. May be called
        again."""
        self.sandbox.close()


def _failure(output: str, kind: str, message: str) -> dict[str, Any]:
    return {
        "output": output,
        "returncode": -1,
        "exception_info": f"An error occurred while executing the command: {message}",
        "extra": {"exception_type": kind, "exception": message},
    }


def _check_submission(result: Result) -> None:
    """Raise Submitted if the first line of a command that succeeded ends the task."""
    first, _, submission = result.stdout.lstrip().partition("\n")
    if result.ok and first.strip() == _SUBMIT_LINE:
        extra = {"exit_status": "Submitted", "submission": submission}
        raise Submitted({"role": "exit", "content": submission, "extra": extra})
