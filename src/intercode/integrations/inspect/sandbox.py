"""InterCode's sandboxes as a sandbox provider of Inspect: ``sandbox="intercode"``.

Nothing has to be installed or running: no daemon, no root. If a sample's configuration names an
environment, its sandbox is the environment's, and this package's scorer reads the state in it.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, overload

import anyio
from inspect_ai.util import (
    ComposeConfig,
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
from intercode.integrations.inspect import configuration
from intercode.integrations.inspect.configuration import SandboxConfig, read_config
from intercode.integrations.inspect.process import (
    ProcessResult,
    error_filename,
    open_login_shell,
    run_process,
)
from intercode.integrations.inspect.terminal import TerminalServer
from intercode.sandbox import Process
from intercode.sandbox.contract import BaseSandbox
from intercode.sandbox.streams import decode
from intercode.sandbox.users import User, find_user

_NO_SANDBOX = "the environment {!r} has no sandbox that runs programs: use its own agents"


@sandboxenv(name="intercode")
class InterCodeSandbox(SandboxEnvironment):
    """The sandbox of one sample. ``env`` is the environment that it belongs to, if any."""

    def __init__(
        self,
        sandbox: BaseSandbox | None,
        working_directory: str,
        user: User | None = None,
        env: InterCodeEnv | None = None,
    ) -> None:
        super().__init__()
        self._user = user
        self._sandbox, self.working_directory, self.env = sandbox, working_directory, env
        self._terminals: TerminalServer | None = None

    # -------------------------------------------------------------- lifecycle
    @classmethod
    def config_files(cls) -> list[str]:
        return configuration.DEFAULT_FILES

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:  # noqa: ARG003
        chosen = read_config(config)
        if isinstance(chosen, ComposeConfig) or chosen.environment is None:
            await anyio.to_thread.run_sync(lambda: configuration.make_spec(chosen))  # builds it

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
    def _open(
        cls, config: SandboxConfig | ComposeConfig, metadata: dict[str, str]
    ) -> InterCodeSandbox:
        if isinstance(config, ComposeConfig) or config.environment is None:
            return cls(*configuration.open_plain_sandbox(config))
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
            self.env.close()
        elif self._sandbox is not None:
            self._sandbox.close()

    @property
    def sandbox(self) -> BaseSandbox:
        """The sandbox that runs programs. Raises Inspect's SandboxUnavailableError if there is
        none."""
        if self._sandbox is not None:
            return self._sandbox
        if isinstance(self.env, SandboxedEnv):
            return self.env.sandbox
        raise Unavailable(_NO_SANDBOX.format(self.env.name if self.env else None))

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
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        stdin = input.encode() if isinstance(input, str) else input or b""
        directory = self._path(cwd) if cwd else self.working_directory

        def work() -> ExecResult[str]:
            try:
                result = run_process(
                    self.sandbox, cmd, cwd=directory, env=env or {}, stdin=stdin, timeout=timeout,
                    output_limit=limit, user=self._find_user(user),
                )  # fmt: skip
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
            out, err = decode(result.stdout), decode(result.stderr)
            if isinstance(self.env, SandboxedEnv):
                self.env.set_last_result(Shown(out, result.code, result.code is None, stderr=err))
            if result.code is None:
                raise TimeoutError(f"{cmd[0]} did not end within {timeout} s")
            if result.truncated:
                limit_text = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
                raise OutputLimitExceededError(limit_text, out + err)
            return ExecResult(result.code == 0, result.code, out, err)

        return await anyio.to_thread.run_sync(work)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        path = self._path(file)

        def work() -> None:
            if self._test("-d", path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file)
            if self._test("-e", path) and not self._test("-w", path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
            with error_filename(file):
                self._write(path, data)

        await anyio.to_thread.run_sync(work)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        path = self._path(file)
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE

        def work() -> bytes:
            with error_filename(file):
                data = self.sandbox.read(path, limit)
            if not self._test("-r", path):  # the supervisor can read more than the user
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
            return data

        try:
            data = await anyio.to_thread.run_sync(work)
        except OSError as e:
            if e.errno != errno.EFBIG:
                raise
            limit_text = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(limit_text, None) from e
        return data.decode() if text else data

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        try:  # Inspect asks for each sample, and goes on after these two errors only
            sandbox = self.sandbox
            if "terminal" not in sandbox.capabilities:
                raise NotImplementedError(f"no terminals in sandboxes of the tier {sandbox.tier}")
            chosen = self._find_user(user)
            if self._terminals is None:
                self._terminals = TerminalServer(partial(self._open_terminal, chosen))
        except Unavailable as e:
            raise NotImplementedError(str(e)) from e
        except (InfrastructureError, OSError) as e:
            raise ConnectionError(str(e)) from e
        return SandboxConnection(type="intercode", command=self._terminals.command)

    def _open_terminal(self, user: User | None, size: tuple[int, int]) -> tuple[Process, int]:
        return open_login_shell(self.sandbox, self.working_directory, size, user)

    def default_polling_interval(self) -> float:
        return 0.2  # as with Docker: a call into the sandbox takes milliseconds

    # --------------------------------------------------------------- internals
    def _path(self, file: str) -> str:
        return str(PurePosixPath(self.working_directory, file))

    def _find_user(self, name: str | None) -> User | None:
        """Return the user of a command; None for root. Raises SandboxUserUnsupportedError if the
        sandbox has one user, UsageError for an unknown name."""
        try:
            return self._user if name is None else find_user(self.sandbox, name)
        except MissingCapabilityError as e:
            raise SandboxUserUnsupportedError(str(e)) from e

    def _test(self, what: str, path: str) -> bool:
        return self._run_as_user(["test", what, path], b"").code == 0

    def _write(self, path: str, data: bytes) -> None:
        """Write a file as the user of commands, to whom it then belongs."""
        if self._user is None:
            self.sandbox.write(path, data)
            return
        script = 'mkdir -p "$(dirname "$0")" && cat > "$0"'
        done = self._run_as_user(["/bin/sh", "-c", script, path], data)
        if done.code != 0:
            raise PermissionError(errno.EACCES, decode(done.stderr))

    def _run_as_user(self, argv: list[str], stdin: bytes) -> ProcessResult:
        return run_process(
            self.sandbox, argv, cwd="/", env={}, stdin=stdin, timeout=None, output_limit=1 << 12,
            user=self._user,
        )  # fmt: skip
