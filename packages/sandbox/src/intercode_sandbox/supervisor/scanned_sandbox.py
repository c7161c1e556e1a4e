"""A sandbox that cannot mount: its files are restored in place, and its changes found by a scan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Self

from intercode_sandbox.contract import BaseSandbox, LimitExceeded
from intercode_sandbox.errors import SandboxError, TooManyChangesError
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection
from intercode_sandbox.supervisor.process_table import unblock_supervisor
from intercode_sandbox.supervisor.supervised_sandbox import SupervisedSandbox, refusal_error
from intercode_sandbox.supervisor.upper_layer import (
    change_owner,
    list_changed_paths,
    write_upper_layer,
)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ScannedSandbox(SupervisedSandbox):
    """The part that containers and sandboxes below a changed root share."""

    _limit_was_exceeded = False

    def _poll_limit_exceeded(self) -> LimitExceeded:
        exceeded = (
            self._counted_limit_exceeded()
            or super()._poll_limit_exceeded()
            or self._storage_limit_exceeded()
        )
        self._limit_was_exceeded = self._limit_was_exceeded or bool(exceeded)
        return exceeded

    def _counted_limit_exceeded(self) -> LimitExceeded:
        """Return the limit that the back end's own counters report."""
        return ""

    def with_files_of(self, other: BaseSandbox | Path) -> Self:
        """Replace the files of this new sandbox and return it; close it if that fails."""
        try:
            self.replace_files(other)
        except BaseException:
            self.close()
            raise
        return self

    def _storage_limit_exceeded(self) -> LimitExceeded:
        """Return the storage limit because of which the supervisor killed processes."""
        answer, _ = self.connection.request("storage_limit")
        limit: LimitExceeded = answer["limit"]
        return limit

    def touched_paths(self) -> list[str]:
        """Return every path that differs in any way from the initial files, parents first. Raises
        TooManyChangesError."""
        paths, truncated = self._request_rows("touched_paths")
        if truncated:
            raise TooManyChangesError("its code has changed more files than can be listed")
        return paths

    def replace_files(self, source: BaseSandbox | Path) -> None:
        """Replace the files in place; see ``BaseSandbox``."""
        with _open_files(source, self) as (root, paths), self._granted(root), self._paused():
            try:
                self.connection.request("replace_files", [root], seconds=READ_SECONDS, paths=paths)
            except OSError as e:
                raise refusal_error(e, "given other files") from e

    def _granted(self, directory: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let the supervisor read everything in a directory inside the ``with`` block."""
        return nullcontext()

    def save(self, directory: Path) -> None:
        target = os.open(directory, _DIRECTORY)
        try:
            with _open_files(self, self) as (root, paths):
                write_upper_layer(target, root, paths)
        finally:
            os.close(target)
        # otherwise the sandbox's user could not read files with the mode 600
        if os.geteuid() == 0:
            change_owner(directory, sandbox_uid())


def reset_sandbox(connection: SupervisorConnection, supervisor_pid: int) -> None:
    """Let a supervisor end all processes and restore the initial files. Raises SandboxError if that
    is not possible."""
    try:
        connection.request(
            "recycle", seconds=READ_SECONDS, on_delay=lambda: unblock_supervisor(supervisor_pid)
        )
    except OSError as e:
        raise SandboxError(f"the sandbox cannot be recycled: {e.strerror}") from e


@contextmanager
def _open_files(other: BaseSandbox | Path, like: ScannedSandbox) -> Iterator[tuple[int, list[str]]]:
    """Open the directory with the files, and list the paths at which it differs from the image of
    ``like``. If ``other`` is a sandbox, it is paused."""
    if isinstance(other, Path):
        root = os.open(other, _DIRECTORY)
        try:
            yield root, list_changed_paths(root, like.base_trees)
        finally:
            os.close(root)
    elif isinstance(other, type(like)):
        with other._paused():
            root = other.connection.request_fd("upper")
            try:
                yield root, other.touched_paths()
            finally:
                os.close(root)
    else:
        raise SandboxError(
            f"files can only be copied from a sandbox of the tier {like.tier} or a directory"
        )
