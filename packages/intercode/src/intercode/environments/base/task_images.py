"""The base class of environments in which each task has an image of its own."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from intercode.core.errors import TaskImageError, UsageError
from intercode.core.types import Image, Task
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode_sandbox import resolve_image
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.on_demand import resolve_or_build


class TaskImages:
    """The images that tasks name, each built or pulled on first use.

    ``replaced``: whether a setting replaces them, so that its errors are no errors of a task.
    """

    def __init__(self, backend: str, replaced: bool) -> None:
        self._backend, self._replaced = backend, replaced
        self._images = dict[str, Image]()

    def find(self, name: str, is_plain_image: bool) -> Image:
        """Return an image. ``is_plain_image``: ``name`` is a specification and not a name as in a
        FROM line. Raises TaskImageError if it cannot be built or pulled."""
        if name not in self._images:
            with self.errors():
                self._images[name] = (
                    resolve_image(name, self._backend)
                    if is_plain_image
                    else BaseImageResolver(resolve_or_build).resolve_base(name)
                )
        return self._images[name]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise TaskImageError for the errors of an image that the task itself brings, so that
        they do not end a run of many tasks."""
        try:
            yield
        except UsageError as e:
            if self._replaced:
                raise
            raise TaskImageError(f"the image of the task cannot be had: {e}") from e


class TaskImageEnv(SandboxedEnv):
    """An environment in which each task has an image of its own.

    The setting ``image`` replaces the image of every task.
    """

    @abstractmethod
    def image_name_of(self, task: Task) -> str:
        """Return the image of a task: a name as in a FROM line, or a specification."""

    @abstractmethod
    def image_key_of(self, task: Task) -> str:
        """Return a text that changes with the content of a task's image."""

    @cached_property
    def _images(self) -> TaskImages:
        return TaskImages(self.backend, bool(self.image_name))

    @property
    def image(self) -> Image:
        """The image of the current task, or of the first one before the first reset.

        Raises TaskImageError if it cannot be built or pulled.
        """
        if self.image_name:
            return self._images.find(self.image_name, True)
        name = self.image_name_of(self._current.task if self._current else self.dataset.tasks[0])
        return self._images.find(name, name.startswith("dockerfile:"))

    def image_metadata(self) -> dict[str, Any]:
        if self.image_name:
            return super().image_metadata()
        keys = "".join(map(self.image_key_of, self.dataset.tasks))
        digest = hashlib.sha256(keys.encode()).hexdigest()
        return {"image": "", "image_digest": f"sha256:{digest}", "comparable": False}
