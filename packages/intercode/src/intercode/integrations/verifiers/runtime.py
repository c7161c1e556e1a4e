"""The runtime: commands, files, ports and network in a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import posixpath
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field
from verifiers.v1.configs.runtime import NetworkPolicyConfig
from verifiers.v1.errors import SandboxError
from verifiers.v1.runtimes.base import BaseRuntimeInfo, ProgramResult, Runtime, RuntimeProcess
from verifiers.v1.runtimes.docker.egress import EgressProxy, NetworkPolicy, is_loopback_host

from intercode.core.errors import InfrastructureError, InterCodeError, UsageError
from intercode.core.types import Layer, LayerSpec
from intercode.integrations.failed_commands import status_of_failure
from intercode.integrations.verifiers.live_process import LiveProcess
from intercode_sandbox import AsyncSandbox, Limits, Sandbox, SandboxSpec
from intercode_sandbox.api.async_process import AsyncSandboxProcess
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.user_directories import UserDirectories
from intercode_sandbox.backends import open_with_users
from intercode_sandbox.images import resolve_layer
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.on_demand import resolve_or_build

_MAX_FILE = 4 << 30  # bytes of a file that is read without a bound
_CANNOT_START = 126
_SERVER_CONFIG = "VF_CONFIG"  # the variable with the configuration of a tool server
_LOOPBACK = "127.0.0.1"


class InterCodeRuntime(Runtime):
    """A sandbox for a rollout.

    It has no network. Its only way out is the HTTP proxy of verifiers, which listens in the sandbox
    and runs in this process: for the framework's own addresses, and for what the network policy
    allows. A command has no time limit of its own: it is killed with everything that it has started
    when the framework cancels it at a limit of the task.

    Args:
        config: The configuration.
        name: The name of the runtime; None: one that verifiers makes.
    """

    supports_user: ClassVar[bool] = True
    scripts_dir: ClassVar[str] = "/tmp/vf-scripts"

    def __init__(self, config: InterCodeConfig, name: str | None = None) -> None:
        super().__init__(name)
        self.config = config.model_copy(update={"workdir": config.workdir or "/app"})
        self.info = InterCodeRuntimeInfo(**self.config.model_dump())
        self._sandbox: AsyncSandbox | None = None
        self._proxy: EgressProxy | None = None
        self._urls: dict[int, str] = {}

    @property
    def _opened(self) -> AsyncSandbox:
        if self._sandbox is None:
            raise SandboxError("the sandbox is not open: call `start` first")
        return self._sandbox

    # ------------------------------------------------------------- start and stop
    async def start(self) -> None:
        """Open the sandbox, its image fetched or built first if necessary, and the proxy.

        Raises:
            SandboxError: That is not possible. Here and below, this is verifiers' error.
        """
        with _naming_sandbox_errors():
            self._sandbox = AsyncSandbox.of(await asyncio.to_thread(self._open))
            await self._sandbox.run(["mkdir", "-p", self.config.workdir], cwd="/")
            listener = await asyncio.to_thread(self._sandbox.sandbox.base.listen)
        self._directories = UserDirectories(self._sandbox.sandbox)
        self.info.tier = self._sandbox.sandbox.tier
        self.info.id = self.name
        self._proxy = EgressProxy(_setup_policy())
        await self._proxy.start(listener=listener)

    def _open(self) -> Sandbox:
        return Sandbox.from_base(open_with_users(make_spec(self.config), self.config.backend))

    async def teardown(self) -> None:
        if self._proxy is not None:
            await self._proxy.stop()
        await super().teardown()

    def cleanup(self) -> None:
        if self._sandbox is not None and not self.info.borrowed:
            self._sandbox.sandbox.close()

    # ------------------------------------------------------------------- commands
    def with_user(self, user: str | None, home: str | None = None) -> Runtime:
        """Return a view whose commands and files are those of another user.

        Args:
            user: The user, who gets the home directory; None: root.
            home: The home directory, as for the base class.

        Raises:
            SandboxError: The back end has no users, or not this one.
        """
        if user is not None:
            with _naming_sandbox_errors():
                self._directories.give(user)
        return super().with_user(user, home)

    def _environment(self, env: dict[str, str]) -> dict[str, str]:
        if self._proxy is None:
            return dict(self.process_env(env))
        proxy = f"http://verifiers:{self._proxy.token}@{_LOOPBACK}:{self._proxy.port}"
        addresses = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
        direct = dict.fromkeys(("NO_PROXY", "no_proxy"), f"localhost,{_LOOPBACK}")
        return {**self.process_env(env), **addresses, **direct}

    async def run(self, argv: list[str], env: dict[str, str]) -> ProgramResult:
        """Run a command in the working directory to its end.

        Args:
            argv: A program and its arguments.
            env: Environment variables, besides those of the configuration.

        Returns:
            The output and the exit status: 126, 127 or 137 if the command could not run or has
            ended the sandbox.

        Raises:
            SandboxError: The machine has failed, or the sandbox is not open.
        """
        with _naming_sandbox_errors():
            try:
                result = await self._opened.run(
                    argv,
                    cwd=self.config.workdir,
                    env=self._environment(env),
                    user=self.user,
                    timeout=None,
                )
            except OSError as e:
                return ProgramResult(_CANNOT_START, "", f"{argv[0]}: {e}")
            except (UsageError, InfrastructureError) as e:
                return ProgramResult(status_of_failure(e), "", f"{argv[0]}: {e}")
        code = result.exit_code or 0
        return ProgramResult(shell_status(code), result.stdout, result.stderr)

    async def open_process(self, argv: list[str], env: dict[str, str]) -> RuntimeProcess:
        """Start a program whose input and output the framework uses while it runs.

        Args:
            argv: A program and its arguments.
            env: Environment variables, besides those of the configuration.

        Raises:
            SandboxError: The program cannot be started, or the sandbox is not open.
        """
        with _naming_sandbox_errors():
            return LiveProcess(await self._spawn(argv, env))

    async def run_background(self, argv: list[str], env: dict[str, str], log: str) -> None:
        """Start a program that runs until the sandbox ends, with its output in a file.

        Args:
            argv: A program and its arguments.
            env: Environment variables, besides those of the configuration.
            log: The path of the file in the sandbox.

        Raises:
            SandboxError: No program can be started, or the sandbox is not open.
        """
        command = f"exec {shlex.join(argv)} > {shlex.quote(log)} 2>&1 < /dev/null"
        with _naming_sandbox_errors():
            await self._spawn(command, _server_variables(env))

    async def _spawn(self, command: str | list[str], env: dict[str, str]) -> AsyncSandboxProcess:
        return await self._opened.spawn(
            command, cwd=self.config.workdir, env=self._environment(env), user=self.user
        )

    # ---------------------------------------------------------------------- files
    def _path(self, path: str) -> str:
        return posixpath.join(self.config.workdir, path)

    async def _read(self, path: str, max_bytes: int | None = None) -> bytes:
        limit = _MAX_FILE if max_bytes is None else max_bytes
        with _naming_sandbox_errors(f"read {path!r}"):
            return await self._opened.read(self._path(path), limit, user=self.user)

    async def write(self, path: str, data: bytes) -> None:
        """Write a file and make its parent directories.

        Args:
            path: The path in the sandbox, from the working directory.
            data: The content.

        Raises:
            SandboxError: The file cannot be written.
        """
        with _naming_sandbox_errors(f"write {path!r}"):
            await self._opened.write(self._path(path), data, user=self.user)

    # -------------------------------------------------------------------- network
    def host_url(self, url: str) -> str:
        """Return the address in the sandbox of a server on this machine.

        Args:
            url: The address on this machine. Any other address is returned as it is.
        """
        if self._proxy is None or not is_loopback_host(urlsplit(url).hostname or ""):
            return url
        return str(self._proxy.callback_url(url, _LOOPBACK))

    async def prepare_setup(self) -> None:
        """Allow every address but this machine's own, for set-up before the agent starts."""
        await self.prepare_execution(None)

    async def prepare_execution(self, routes: list[str] | None) -> None:
        """Apply the network policy.

        Args:
            routes: The framework's addresses, which are always reachable; None: set-up begins
                again.
        """
        if self._proxy is not None:
            allowed = _setup_policy() if routes is None else NetworkPolicy(self.config, routes)
            self._proxy.policy = allowed

    async def expose(self, port: int) -> str:
        """Return the address on this machine of a server in the sandbox.

        Args:
            port: The port of the server in the sandbox.

        Raises:
            SandboxError: The back end cannot forward a port.
        """
        if port not in self._urls:
            with _naming_sandbox_errors(f"expose port {port}"):
                forwarded = await asyncio.to_thread(self._opened.sandbox.forward, port)
            self._urls[port] = f"http://{forwarded.host}:{forwarded.port}"
        return self._urls[port]


def _server_variables(env: dict[str, str]) -> dict[str, str]:
    """Return the variables of a tool server without this runtime in its configuration.

    The server is not started by its runtime's configuration, but validates it, with a verifiers in
    the sandbox that has only its own runtimes.
    """
    config = json.loads(env.get(_SERVER_CONFIG, "{}"))
    if (config.get("runtime") or {}).get("type") != InterCodeConfig().type:
        return env
    return {**env, _SERVER_CONFIG: json.dumps({**config, "runtime": {"type": "subprocess"}})}


def _setup_policy() -> NetworkPolicy:
    """Return the policy of trusted set-up, before the agent starts."""
    return NetworkPolicy(NetworkPolicyConfig(), [], allow_non_global=True)


@contextlib.contextmanager
def _naming_sandbox_errors(what: str = "sandbox") -> Iterator[None]:
    """Raise errors of a sandbox and of its files as those of verifiers."""
    try:
        yield
    except (InterCodeError, OSError) as e:
        raise SandboxError(f"{what}: {e}") from e


# The configuration of the runtime, and the sandbox that it describes.
_GIGABYTE = 1e9
_MEMORY, _DISK = 2.0, 4.0  # gigabytes of a task that does not say


class InterCodeConfig(NetworkPolicyConfig):
    """The configuration of the runtime: ``[env.agent.runtime]`` with ``type = "intercode"``."""

    type: Literal["intercode"] = "intercode"
    image: str = "host"
    """The root file system: the programs of this machine, or any other form of docs/images.md. The
    image of a task takes precedence, as with all runtimes."""
    workdir: str | None = None
    """The directory of commands, which is made if it does not exist. None: that of the task, else
    /app."""
    memory: float | None = None
    """GB of memory. None: that of the task, else 2."""
    disk: float | None = None
    """GB of files. None: that of the task, else 4."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of all commands; those of the task precede them."""
    layers: dict[str, Path] = Field(default_factory=dict)
    """Directories of this machine whose files each sandbox shows a copy of, by the paths in it."""
    backend: str = "auto"
    """The back end, or ``auto`` for the strongest isolation that works on this machine."""


class InterCodeRuntimeInfo(InterCodeConfig, BaseRuntimeInfo):
    """What a trace says about the runtime."""

    tier: str | None = None
    """The isolation tier; see docs/isolation-tiers.md."""


def make_spec(config: InterCodeConfig) -> SandboxSpec:
    """Return the specification of a sandbox, its image fetched or built first if necessary. Raises
    UsageError for an image or a directory that does not exist."""
    disk = int((config.disk or _DISK) * _GIGABYTE)
    limits = Limits(
        memory=int((config.memory or _MEMORY) * _GIGABYTE),
        disk=disk,
        file_size=disk,
        address_space=64 << 30,
        processes=1024,
        inodes=500_000,
        output=32 << 20,
    )
    image = BaseImageResolver(resolve_or_build).resolve_base(config.image, "runtime.image")
    layers = tuple(_layer(shown, path) for shown, path in config.layers.items())
    return SandboxSpec(image, layers, limits=limits, env=config.env)


def _layer(shown: str, path: Path) -> Layer:
    path = path.expanduser()
    executable = tuple(
        str(found.relative_to(path))
        for found in path.rglob("*")
        if found.is_file() and os.access(found, os.X_OK)
    )
    return resolve_layer(LayerSpec("dir", path, destination=shown, executable=executable))
