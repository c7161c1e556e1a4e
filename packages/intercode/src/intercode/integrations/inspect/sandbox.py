"""InterCode's sandboxes as a sandbox provider of Inspect: ``sandbox="intercode"``.

Nothing has to be installed or running: no daemon, no root.
"""
# ruff: noqa: ARG002, ARG003 - the signatures are Inspect's

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal, Self, overload

from anyio.to_thread import run_sync
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
from pydantic import BaseModel

from intercode.core.errors import (
    InfrastructureError,
    MissingCapabilityError,
    UsageError,
)
from intercode.integrations.failed_commands import status_of_failure
from intercode.integrations.inspect.compose import needs_sample, sample_variables
from intercode.integrations.inspect.configuration import SandboxConfig, read_config
from intercode_sandbox import Limits, Result, Sandbox, SandboxSpec, TerminalServer
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.user_directories import UserDirectories
from intercode_sandbox.backends import open_with_users
from intercode_sandbox.users import find_user

_PREPARE = """
mkdir -p "$0" "$1"
[ -e /etc/os-release ] || ln -s ../usr/lib/os-release /etc/os-release
[ -e ~/.profile ] || echo '[ -z "$BASH" ] || [ ! -f ~/.bashrc ] || . ~/.bashrc' > ~/.profile
"""
"""Makes the working directory, the home directory, and what Inspect's tools expect of an image: the
name of the system, and a profile that reads .bashrc, in which its human agent configures a shell.
"""
_START = '"$0" "$@" </dev/null >/dev/null 2>&1 &'


@sandboxenv(name="intercode")
class InterCodeSandbox(SandboxEnvironment):
    """The sandbox of one sample.

    Args:
        sandbox: The sandbox, which this object closes; None: there is none that runs programs.
        working_directory: The directory of commands and relative paths.
        user: Runs the commands that name no user; None: root.

    >>> import asyncio
    >>> from intercode.integrations.inspect import InterCodeSandbox, SandboxConfig
    >>> async def work():
    ...     sandbox = InterCodeSandbox.open(SandboxConfig())
    ...     await sandbox.write_file("a.txt", "one")
    ...     text = await sandbox.read_file("a.txt")
    ...     sandbox.close()
    ...     return text
    >>> asyncio.run(work())
    'one'
    """

    def __init__(
        self, sandbox: Sandbox | None, working_directory: str, user: str | None = None
    ) -> None:
        super().__init__()
        self._sandbox, self.working_directory, self._user = sandbox, working_directory, user
        self._terminals: dict[str | None, TerminalServer] = {}

    # -------------------------------------------------------------- lifecycle
    @classmethod
    def config_files(cls) -> list[str]:
        names = "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"
        return [*names, "Dockerfile"]

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return SandboxConfig(**config)

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:
        if isinstance(config, str) and needs_sample(config):
            return  # its image may depend on the sample
        await run_sync(read_config(config).find_image)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        variables = sample_variables(metadata)
        return {"default": await run_sync(cls.open, read_config(config, variables))}

    @classmethod
    def open(cls, config: SandboxConfig) -> Self:
        """Open a sandbox, whose image is fetched or built first if necessary.

        Args:
            config: The configuration.

        Raises:
            UsageError: The image or the user does not exist.
            InfrastructureError: The sandbox cannot be opened.
        """
        image = config.find_image()
        limits = Limits(
            output=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
            memory=config.memory or Limits().memory,
        )
        spec = SandboxSpec(
            image, network=config.network, limits=limits, env=config.env, hostname=config.hostname
        )
        sandbox = Sandbox.from_base(open_with_users(spec, config.backend))
        try:
            user = find_user(sandbox.base, config.user)
            home = "/root" if user is None else f"/home/{user.name}"
            directory = config.directory or image.cwd or "/"
            with suppress(OSError):  # an image without programs
                sandbox.run(["/bin/sh", "-c", _PREPARE, directory, home], cwd="/")
                if config.user is not None:
                    owned = [path for path in (directory, home) if path != "/"]
                    UserDirectories(sandbox).give(config.user, owned)
            if config.command:
                start = ["/bin/sh", "-c", _START, *config.command]
                sandbox.run(start, cwd=directory, user=config.user)
        except BaseException:
            sandbox.close()
            raise
        return cls(sandbox, directory, config.user)

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Any,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            await run_sync(environment.as_type(cls).close)

    def close(self) -> None:
        """End the sandbox. May be called again."""
        for terminals in self._terminals.values():
            terminals.close()
        if self._sandbox is not None:
            self._sandbox.close()

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that runs programs.

        Raises:
            SandboxUnavailableError: There is none. This is Inspect's error of that name.
        """
        if self._sandbox is None:
            raise Unavailable("this sample has no sandbox that runs programs")
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
        timeout_retry: bool = True,  # a program may have changed the sandbox
        concurrency: bool = True,  # sandboxes need no limit of Inspect's
    ) -> ExecResult[str]:
        for text in (*cmd, *(env or {}), *(env or {}).values(), user or ""):
            _refuse_null_byte(text)
        run = partial(
            self.sandbox.run,
            cmd,
            stdin=input or b"",
            cwd=self._path(cwd) if cwd else self.working_directory,
            env=env,
            user=user or self._user,
            timeout=timeout,
        )
        try:
            result = await run_sync(run)
        except MissingCapabilityError as e:
            raise SandboxUserUnsupportedError(str(e)) from e
        except PermissionError:
            raise
        except (UsageError, OSError, InfrastructureError) as e:  # as Docker says it
            try:
                return ExecResult(False, status_of_failure(e), "", f"{e}\n")
            except InfrastructureError:
                raise Unavailable(str(e)) from e
        self.record(result)
        output = result.stdout + result.stderr
        if result.exit_code is None:
            error = TimeoutError(f"{cmd[0]} did not end within {timeout} s")
            error.truncated_output = output  # type: ignore[attr-defined]  # Inspect shows it
            raise error
        if result.truncated:
            limit = f"{self.sandbox.limits.output / (1 << 20):g} MiB"
            raise OutputLimitExceededError(limit, output)
        status = shell_status(result.exit_code)
        return ExecResult(status == 0, status, result.stdout, result.stderr)

    def record(self, result: Result) -> None:
        """Do nothing. Called with the result of each command; ``EnvironmentSandbox`` scores it.

        Args:
            result: The output and the exit status.
        """

    async def write_file(self, file: str, contents: str | bytes) -> None:
        path = self._path(file)
        with _file_errors(path):
            await run_sync(self._write, path, contents)

    def _write(self, path: str, contents: str | bytes) -> None:
        """Write a file, which keeps its mode if it exists."""
        mode = 0o644
        with suppress(OSError, InfrastructureError):
            info = self.sandbox.stat(path)
            mode = info.mode if info.kind == "file" else mode
        self.sandbox.write(path, contents, mode, user=self._file_user)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        path = self._path(file)
        with _file_errors(path):
            try:
                data = await run_sync(partial(self.sandbox.read, path, limit, user=self._file_user))
            except OSError as e:
                if e.errno != errno.EFBIG:
                    raise
                size = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
                raise OutputLimitExceededError(size, None) from e
        return data.decode() if text else data

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        try:  # Inspect asks for each sample, and goes on after these two errors only
            if user not in self._terminals:
                self._terminals[user] = TerminalServer(
                    self.sandbox, cwd=self.working_directory, user=user or self._user
                )
        except (Unavailable, MissingCapabilityError) as e:
            raise NotImplementedError(str(e)) from e
        except (InfrastructureError, OSError) as e:
            raise ConnectionError(str(e)) from e
        return SandboxConnection(type="intercode", command=self._terminals[user].command)

    def default_polling_interval(self) -> float:
        return 0.2  # as with Docker: a call into the sandbox takes milliseconds

    @property
    def _file_user(self) -> str:
        """The user of files: modes bind it as they bind commands, and not the sandbox itself."""
        return self._user or "root"

    def _path(self, file: str) -> str:
        _refuse_null_byte(file)
        return posixpath.join(self.working_directory, file)  # "a/" is no name of a file


@contextmanager
def _file_errors(path: str) -> Iterator[None]:
    """Raise the errors of a file as those that Inspect shows the model as errors of its tool. Any
    other one ends the sample, which may then be played again: an agent could cause that."""
    try:
        yield
    except (PermissionError, FileNotFoundError, IsADirectoryError):
        raise
    except OSError as e:
        absent = e.errno in (errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
        kind = FileNotFoundError if absent else PermissionError
        raise kind(e.errno, e.strerror or str(e), path) from e
    except InfrastructureError as e:
        if e.machine_failed:
            raise Unavailable(str(e)) from e
        raise FileNotFoundError(errno.ENOENT, str(e), path) from e


def _refuse_null_byte(text: str) -> None:
    """Raise the ValueError of Python's ``subprocess``, which Inspect shows the model as an error of
    its tool."""
    if "\0" in text:
        raise ValueError("embedded null byte")
