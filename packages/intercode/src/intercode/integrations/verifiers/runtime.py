"""The runtime: commands, files, ports and network in a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import json
import posixpath
import shlex
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

from verifiers.v1.configs.runtime import NetworkPolicyConfig
from verifiers.v1.errors import SandboxError
from verifiers.v1.runtimes.base import ProgramResult, Runtime, RuntimeProcess
from verifiers.v1.runtimes.docker.egress import EgressProxy, NetworkPolicy, is_loopback_host

from intercode.core.errors import InfrastructureError, InterCodeError, UsageError
from intercode.integrations.failed_commands import status_of_failure
from intercode.integrations.verifiers.configuration import (
    InterCodeConfig,
    InterCodeRuntimeInfo,
    make_spec,
)
from intercode.integrations.verifiers.live_process import LiveProcess
from intercode_sandbox import AsyncSandbox, Sandbox
from intercode_sandbox.api.async_process import AsyncSandboxProcess
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.user_directories import UserDirectories
from intercode_sandbox.back_ends import open_with_users

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
        """Open the sandbox, its image fetched or built first if necessary, and the proxy."""
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
        return Sandbox.from_base(open_with_users(make_spec(self.config), self.config.back_end))

    async def teardown(self) -> None:
        if self._proxy is not None:
            await self._proxy.stop()
        await super().teardown()

    def cleanup(self) -> None:
        if self._sandbox is not None and not self.info.borrowed:
            self._sandbox.sandbox.close()

    # ------------------------------------------------------------------- commands
    def with_user(self, user: str | None, home: str | None = None) -> Runtime:
        """Return a view whose commands and files are those of another user, who gets the home
        directory. Raises SandboxError if the back end has no users, or not this one."""
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
        """Run a command in the working directory to its end."""
        with _naming_sandbox_errors():
            try:
                result = await self._opened.run(
                    argv, cwd=self.config.workdir, env=self._environment(env), user=self.user,
                    timeout=None,
                )  # fmt: skip
            except OSError as e:
                return ProgramResult(_CANNOT_START, "", f"{argv[0]}: {e}")
            except (UsageError, InfrastructureError) as e:
                return ProgramResult(status_of_failure(e), "", f"{argv[0]}: {e}")
        code = result.exit_code or 0
        return ProgramResult(shell_status(code), result.stdout, result.stderr)

    async def open_process(self, argv: list[str], env: dict[str, str]) -> RuntimeProcess:
        """Start a program whose input and output the framework uses while it runs."""
        with _naming_sandbox_errors():
            return LiveProcess(await self._spawn(argv, env))

    async def run_background(self, argv: list[str], env: dict[str, str], log: str) -> None:
        """Start a program that runs until the sandbox ends, with its output in a file."""
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
        """Write a file and make its parent directories."""
        with _naming_sandbox_errors(f"write {path!r}"):
            await self._opened.write(self._path(path), data, user=self.user)

    # -------------------------------------------------------------------- network
    def host_url(self, url: str) -> str:
        """Return the address in the sandbox of a server on this machine."""
        if self._proxy is None or not is_loopback_host(urlsplit(url).hostname or ""):
            return url
        return str(self._proxy.callback_url(url, _LOOPBACK))

    async def prepare_setup(self) -> None:
        """Allow every address but this machine's own, for set-up before the agent starts."""
        await self.prepare_execution(None)

    async def prepare_execution(self, routes: list[str] | None) -> None:
        """Apply the network policy. ``routes``: the framework's addresses, which are always
        reachable; None: set-up begins again."""
        if self._proxy is not None:
            allowed = _setup_policy() if routes is None else NetworkPolicy(self.config, routes)
            self._proxy.policy = allowed

    async def expose(self, port: int) -> str:
        """Return the address on this machine of a server in the sandbox."""
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
