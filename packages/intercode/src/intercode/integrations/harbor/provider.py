"""Harbor's trials in our sandboxes: ``--environment-import-path
intercode.integrations.harbor:InterCodeEnvironment``.

Needs Harbor, which runs on Python 3.12 and newer.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

try:
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.environments.capabilities import (
        EnvironmentCapabilities,
        EnvironmentResourceCapabilities,
    )
    from harbor.environments.definition import (
        COMPOSE_FILE_NAME,
        require_agent_environment_definition,
        should_use_prebuilt_docker_image,
    )
except ModuleNotFoundError as e:
    raise ImportError(
        "this needs Harbor, which runs on Python 3.12 and newer: pip install harbor"
    ) from e

from intercode.core.errors import (
    InfrastructureError,
    InterCodeError,
    SandboxLostError,
    UsageError,
)
from intercode.core.types import Image, Network
from intercode.integrations.failed_commands import status_of_failure
from intercode.integrations.harbor.entry_point import start_entry_point
from intercode.integrations.harbor.tasks.separate_verifier import COMPOSE_REASON
from intercode_sandbox import AsyncSandbox, Limits, Sandbox, SandboxSpec
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.user_directories import UserDirectories
from intercode_sandbox.backends import open_with_users, resolve_image, tier_of
from intercode_sandbox.deprecation import renamed_arguments
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.validation import check_network

MAX_DISK = 4 << 30
"""The largest disk limit in bytes, because the disk may be in memory; also without a limit."""
_MEMORY = 2 << 30  # bytes, of a task that does not say
_MAX_FILE = 4 << 30  # bytes of a download
_TIMED_OUT = 124  # the exit status of ``timeout``, which other providers of Harbor return, too
_CANNOT_START = 126
Emit = Callable[[str, str], Awaitable[None]]


class InterCodeEnvironment(BaseEnvironment):
    """A sandbox for a trial: the image of the task, its limits, its files.

    Harbor makes it. ``network`` and ``backend`` are arguments of ``--ek``.

    Args:
        network: What tasks get that may use the network: ``host``, that of this machine;
            ``allow:HOST,...``, named hosts; ``none``. Other tasks have no network.
        backend: The back end, or ``auto`` for the strongest isolation that works on this machine.
        **settings: Harbor's arguments.

    Raises:
        UsageError: ``network`` is none of these, or ``mounts`` are given.
    """

    @renamed_arguments(back_end="backend")
    def __init__(
        self, *args: Any, network: Network = "none", backend: str = "auto", **settings: Any
    ) -> None:
        network = check_network(network)
        if settings.get("mounts"):
            raise UsageError(
                "directories of this machine cannot be mounted: leave out `mounts`, or upload them"
            )
        self._network_if_public, self._backend = network, backend
        self._sandbox: AsyncSandbox | None = None
        self._refusal: Exception | None = None
        self._shell = "/bin/sh"
        self._directory = "/"
        self._unowned: list[str] = []  # the working directory, until a user gets it
        super().__init__(*args, **settings)

    # ------------------------------------------------------------- what it can do
    @staticmethod
    def type() -> str:
        return "intercode"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(memory_limit=True, fractional_cpus=True)

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        """Exit with the remedy if this machine cannot run the sandboxes of these arguments.

        Args:
            kwargs: The arguments of ``--ek``, which Harbor passes since 0.26; None: there are none.

        Raises:
            SystemExit: This machine cannot run them.
        """
        try:
            _tier_of_arguments(**(kwargs or {}))
        except InterCodeError as e:
            raise SystemExit(f"{e} (see `intercode doctor`)") from e

    # The constructor checks these, where an error would end the whole job for one of its tasks.
    def _validate_definition(self) -> None:
        self._check_at_start(self._require_one_container)

    def _validate_gpu_support(self) -> None:
        self._check_at_start(super()._validate_gpu_support)

    def _validate_tpu_support(self) -> None:
        self._check_at_start(super()._validate_tpu_support)

    def _validate_network_policy_support(self) -> None:
        self._check_at_start(super()._validate_network_policy_support)

    def _validate_windows_support(self) -> None:
        self._check_at_start(super()._validate_windows_support)

    def _check_at_start(self, check: Callable[[], None]) -> None:
        """Run a check of the task. What it raises, ``start`` raises."""
        try:
            check()
        except Exception as e:
            self._refusal = self._refusal or e

    def _require_one_container(self) -> None:
        image = self.task_env_config.docker_image
        require_agent_environment_definition(self.environment_dir, docker_image=image)
        if (compose := self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise UsageError(COMPOSE_REASON.format(compose))

    # ------------------------------------------------------------- start and stop
    async def start(self, force_build: bool) -> None:
        """Open the sandbox and start the image's ENTRYPOINT.

        What the checks of the task have found when this object was made is raised here.

        Args:
            force_build: Whether the task's Dockerfile is built even if task.toml names an image.
                Either is fetched or built first if necessary.

        Raises:
            TaskSetupError: The ENTRYPOINT cannot be started.
            UsageError: The task has several containers, or its image does not exist.
            InfrastructureError: The sandbox cannot be opened.
        """
        if self._refusal is not None:
            raise self._refusal
        image = await asyncio.to_thread(self._find_image, force_build)
        self._sandbox = AsyncSandbox.of(await asyncio.to_thread(self._open, image))
        self._directories = UserDirectories(self._sandbox.sandbox)
        try:
            self._directory = self.task_env_config.workdir or image.cwd or "/"
            await self._opened.run(["mkdir", "-p", self._directory], cwd="/")
            await asyncio.to_thread(start_entry_point, self._sandbox.sandbox.base)
            self._unowned = [self._directory] if self._directory != "/" else []
            if (await self._opened.run("command -v bash", cwd="/")).ok:
                self._shell = "bash"
            await self.ensure_dirs(self._mount_targets(writable_only=True))
            await self._upload_environment_dir_after_start()
        except BaseException:
            await self.stop(delete=True)
            raise

    async def stop(self, delete: bool) -> None:
        """End the sandbox. It cannot be kept, because it ends with this process at the latest.

        Args:
            delete: False has no effect but a warning.
        """
        if self._sandbox is None:
            return
        if not delete:
            self.logger.warning("a sandbox ends with its trial: --no-delete has no effect")
        sandbox, self._sandbox = self._sandbox, None
        await sandbox.close()

    def _find_image(self, force_build: bool) -> Image:
        name = self.task_env_config.docker_image
        if name and should_use_prebuilt_docker_image(
            self.environment_dir, docker_image=name, force_build=force_build
        ):
            resolver = BaseImageResolver(resolve_or_build, allowed_directory=self.environment_dir)
            return resolver.resolve_base(name)
        return resolve_image(f"dockerfile:{self.environment_dir}", self._backend)

    def _open(self, image: Image) -> Sandbox:
        megabytes, storage = self._effective_memory_mb, self._effective_storage_mb
        disk = min(storage << 20, MAX_DISK) if storage else MAX_DISK
        limits = Limits(
            disk=disk,
            file_size=disk,
            memory=megabytes << 20 if megabytes else _MEMORY,
            address_space=64 << 30,
            processes=1024,
            inodes=500_000,
            output=32 << 20,
        )
        network = self._network_if_public if self._network_is_public else "none"
        if self._network_is_public and network == "none":
            self.logger.debug("the task may use a network and has none; --ek network=host")
        spec = SandboxSpec(image, network=network, limits=limits)
        return Sandbox.from_base(open_with_users(spec, self._backend))

    @property
    def _opened(self) -> AsyncSandbox:
        if self._sandbox is None:
            raise SandboxLostError("the sandbox is not open: call `start` first")
        return self._sandbox

    # ------------------------------------------------------------------- commands
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command in Bash, or in sh if the image has no Bash.

        Args:
            command: The command.
            cwd: The directory; None: that of the task, else that of the image.
            env: Environment variables, besides those of the task.
            timeout_sec: Seconds until everything is killed that the command has started; None: no
                limit.
            user: The user; None: that of the agent or verifier whose turn it is, or root.

        Returns:
            The output and the exit status: 124 at the time limit, with the output so far; 126, 127
            or 137 if the command could not run or has ended the sandbox.

        Raises:
            MissingCapabilityError: The back end has no other user than root.
            InfrastructureError: The machine has failed.
        """
        name = self._resolve_user(user)
        pieces: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
        emit = self._output_callback()
        passing = asyncio.ensure_future(_pass_on(pieces, emit)) if emit else None
        try:
            if name is not None:
                await self._give_directories(name)
            result = await self._opened.run(
                [self._shell, "-c", command],
                user=name,
                cwd=cwd or self._directory,
                env=self._merge_env(env),
                timeout=timeout_sec,
                on_output=(lambda text, stream: pieces.put_nowait((text, stream)))
                if emit
                else None,
            )
        except (OSError, UsageError) as e:
            return ExecResult(stdout="", stderr=str(e), return_code=_CANNOT_START)
        except InfrastructureError as e:
            return ExecResult(stdout="", stderr=str(e), return_code=status_of_failure(e))
        finally:
            if passing is not None:
                pieces.put_nowait(None)
                await passing
        errors, code = result.stderr, result.exit_code
        if code is None:
            errors += f"Command timed out after {timeout_sec} seconds"
            code = _TIMED_OUT
        return ExecResult(stdout=result.stdout, stderr=errors, return_code=shell_status(code))

    async def _give_directories(self, name: str | int) -> None:
        """Give a user its home directory before its first command, and the working directory if it
        is the first whose turn it is."""
        others: list[str] = []
        if name == self.default_user:
            others, self._unowned = self._unowned, []
        await asyncio.to_thread(self._directories.give, name, others)

    # ---------------------------------------------------------------------- files
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._opened.upload(source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._opened.upload(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._opened.download(source_path, target_path, _MAX_FILE)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a directory of the sandbox over a local one.

        A link within it becomes a copy of what it names; others, which hostile code may have made,
        are left out. Does nothing if ``start`` has failed, which Harbor reports itself.

        Args:
            source_dir: The directory in the sandbox.
            target_dir: The local directory, which is made if it does not exist.

        Raises:
            OSError: The directory does not exist, or cannot be read or written.
        """
        if self._sandbox is None:
            return
        target = Path(target_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            left_out = await self._opened.download(source_dir, temporary, _MAX_FILE)
            await asyncio.to_thread(shutil.copytree, temporary, target, dirs_exist_ok=True)
        if left_out:
            self.logger.warning(f"not downloaded from {source_dir}: {', '.join(left_out[:20])}")


@renamed_arguments(back_end="backend")
def _tier_of_arguments(backend: str = "auto", **_: Any) -> str:
    return tier_of(backend)


async def _pass_on(pieces: asyncio.Queue[tuple[str, str] | None], emit: Emit) -> None:
    """Give the pieces of output to a function, in their order, until None follows."""
    while (piece := await pieces.get()) is not None:
        await emit(*piece)
