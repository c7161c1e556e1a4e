"""InterCode's sandboxes as a sandbox provider of Inspect: ``sandbox="intercode"``.

Nothing has to be installed or running: no daemon, no root. If a sample's configuration names an
environment, its sandbox is the environment's, and this package's scorer reads the state in it.
"""

from __future__ import annotations

import errno
import os
from pathlib import PurePosixPath
from typing import Any, Literal, overload

import anyio
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util import SandboxUnavailableError as Unavailable

import intercode
from intercode.core.errors import (
    InfrastructureError,
    MissingCapabilityError,
    SandboxKilledError,
    UsageError,
)
from intercode.core.types import ExecResult as Shown
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.integrations.inspect.config_files import DEFAULT_FILES, read_config
from intercode.integrations.inspect.configuration import SandboxConfig, open_plain_sandbox
from intercode.integrations.inspect.terminal import LOGIN_SHELL, PROFILE, TerminalServer
from intercode.sandbox import Sandbox, SandboxProcess

_WRITE = """
if [ -d "$0" ]; then exit 21; fi
if [ -e "$0" ] && ! [ -w "$0" ]; then exit 13; fi
mkdir -p "$(dirname "$0")" && cat > "$0"
"""
"""Writes a file as a user. Its exit statuses are the numbers of Linux's errors."""
_NO_SANDBOX = "the environment {!r} has no sandbox that runs programs: use its own agents"


@sandboxenv(name="intercode")
class InterCodeSandbox(SandboxEnvironment):
    """The sandbox of one sample. ``env`` is the environment that it belongs to, if any."""

    def __init__(
        self,
        sandbox: Sandbox | None,
        working_directory: str,
        user: str | None = None,
        env: InterCodeEnv | None = None,
    ) -> None:
        super().__init__()
        self._user = user
        self._sandbox, self.working_directory, self.env = sandbox, working_directory, env
        self._terminals: TerminalServer | None = None

    # -------------------------------------------------------------- lifecycle
    @classmethod
    def config_files(cls) -> list[str]:
        return DEFAULT_FILES

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:  # noqa: ARG003
        chosen = read_config(config)
        if chosen.environment is None:
            await anyio.to_thread.run_sync(chosen.find_image)

    @classmethod
    async def sample_init(
        cls,
        task_name: str,  # noqa: ARG003
        config: Any,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        chosen = read_config(config)
        return {"default": await anyio.to_thread.run_sync(lambda: cls._open(chosen, metadata))}

    @classmethod
    def _open(cls, config: SandboxConfig, metadata: dict[str, str]) -> InterCodeSandbox:
        if config.environment is None:
            return cls(*open_plain_sandbox(config), config.user)
        settings = {"image": config.image, "sandbox": config.back_end, "network": config.network}
        given = {k: v for k, v in settings.items() if v not in (None, "auto", "none")}
        env = intercode.make(config.environment, config.dataset, **given, **config.settings)
        try:
            env.reset(options={"task": metadata["task"]})
        except BaseException:
            env.close()
            raise
        return cls(None, env.working_directory, env=env)

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,  # noqa: ARG003
        config: Any,  # noqa: ARG003
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,  # noqa: ARG003
    ) -> None:
        for environment in environments.values():
            await anyio.to_thread.run_sync(environment.as_type(cls).close)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> SandboxConfig:
        return SandboxConfig(**config)

    def close(self) -> None:
        """End the sandbox. May be called again."""
        if self._terminals is not None:
            self._terminals.close()
        if self.env is not None:
            if self._sandbox is not None:
                self._sandbox.release()
                self._sandbox = None
            self.env.close()
        elif self._sandbox is not None:
            self._sandbox.close()

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that runs programs. Raises Inspect's SandboxUnavailableError if there is
        none."""
        if self._sandbox is None:
            if not isinstance(self.env, SandboxedEnv):
                raise Unavailable(_NO_SANDBOX.format(self.env.name if self.env else None))
            self._sandbox = Sandbox.from_base(self.env.sandbox)
        return self._sandbox

    # --------------------------------------------------------------- contract
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,  # noqa: ARG002 - a program may have changed the sandbox
        concurrency: bool = True,  # noqa: ARG002 - sandboxes need no limit of Inspect's
    ) -> ExecResult[str]:
        directory = self._path(cwd) if cwd else self.working_directory

        def work() -> ExecResult[str]:
            try:
                result = self.sandbox.run(
                    cmd, stdin=input or b"", cwd=directory, env=env, user=user or self._user,
                    timeout=timeout,
                )  # fmt: skip
            except MissingCapabilityError as e:
                raise SandboxUserUnsupportedError(str(e)) from e
            except PermissionError:
                raise
            except UsageError as e:  # as Docker says it
                return ExecResult(False, 126, "", f"{e}\n")
            except OSError as e:
                return ExecResult(False, 127, "", f"{e.strerror}\n")
            except SandboxKilledError as e:  # the scorer gives 0
                return ExecResult(False, 137, "", f"{e}\n")
            except InfrastructureError as e:
                raise Unavailable(str(e)) from e
            code, out, err = result.exit_code, result.stdout, result.stderr
            if code is not None and code < 0:
                code = 128 - code
            if isinstance(self.env, SandboxedEnv):
                self.env.set_last_result(Shown(out, code, result.timed_out, stderr=err))
            if code is None:
                raise TimeoutError(f"{cmd[0]} did not end within {timeout} s")
            if result.truncated:
                limit = f"{self.sandbox.limits.output / (1 << 20):g} MiB"
                raise OutputLimitExceededError(limit, out + err)
            return ExecResult(code == 0, code, out, err)

        return await anyio.to_thread.run_sync(work)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        await anyio.to_thread.run_sync(lambda: self._write(file, contents))

    def _write(self, file: str, contents: str | bytes) -> None:
        """Write a file as the user of commands, to whom it then belongs."""
        argv = ["/bin/sh", "-c", _WRITE, self._path(file)]
        done = self.sandbox.run(argv, stdin=contents, cwd="/", user=self._user, timeout=None)
        if not done.ok:
            known = done.exit_code in (errno.EISDIR, errno.EACCES)
            number = done.exit_code if known and done.exit_code else errno.EACCES
            raise OSError(number, os.strerror(number) if known else done.stderr, file)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        try:
            data = await anyio.to_thread.run_sync(lambda: self._read(file))
        except OSError as e:
            if e.errno != errno.EFBIG:
                raise
            limit_text = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(limit_text, None) from e
        return data.decode() if text else data

    def _read(self, file: str) -> bytes:
        path = self._path(file)
        data = self.sandbox.read(path, SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        readable = ["test", "-r", path]  # by the user: the sandbox itself can read more
        if not self.sandbox.run(readable, cwd="/", user=self._user).ok:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
        return data

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        try:  # Inspect asks for each sample, and goes on after these two errors only
            sandbox = self.sandbox
            if "terminal" not in sandbox.capabilities:
                raise NotImplementedError(f"no terminals in sandboxes of the tier {sandbox.tier}")
            if self._terminals is None:
                self._terminals = TerminalServer(lambda size: self._open_shell(size, user))
        except Unavailable as e:
            raise NotImplementedError(str(e)) from e
        except (InfrastructureError, OSError) as e:
            raise ConnectionError(str(e)) from e
        return SandboxConnection(type="intercode", command=self._terminals.command)

    def _open_shell(self, size: tuple[int, int], user: str | None) -> SandboxProcess:
        try:
            self.sandbox.read("/root/.profile")
        except FileNotFoundError:
            self.sandbox.write("/root/.profile", PROFILE)
        return self.sandbox.spawn(
            LOGIN_SHELL, cwd=self.working_directory, terminal=size, user=user or self._user,
            env={"TERM": os.environ.get("TERM", "xterm")},
        )  # fmt: skip

    def default_polling_interval(self) -> float:
        return 0.2  # as with Docker: a call into the sandbox takes milliseconds

    def _path(self, file: str) -> str:
        return str(PurePosixPath(self.working_directory, file))
