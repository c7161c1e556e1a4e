"""The image layers with a program and its packages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intercode.agents.programs.program import INSTALLED, Packages, Program
from intercode.core.errors import UsageError
from intercode.core.types import Image, Layer, LayerSpec
from intercode_sandbox.images import resolve_layer
from intercode_sandbox.images.build.package_layers import package_layer
from intercode_sandbox.remote.references import RemoteImage


@dataclass(frozen=True, slots=True)
class Installation:
    """What is installed of a program. Calling it with an image returns the layers, made once."""

    packages: tuple[Packages, ...]
    files: str | None

    @classmethod
    def of(cls, program: Program) -> Installation:
        """Return the installation of a program."""
        return cls(program.packages, program.files)

    def __call__(self, image: Image) -> tuple[Layer, ...]:
        """Return the layers for an image. Raises UsageError if they cannot be made."""
        if isinstance(image, RemoteImage):
            raise UsageError("a program as agent needs a sandbox of this machine, not a remote one")
        layers = [
            package_layer(p.registry, p.names, image, f"{INSTALLED}/{p.registry}")
            for p in self.packages
        ]
        if self.files is not None:
            files = LayerSpec("dir", Path(self.files), destination=f"{INSTALLED}/files")
            layers.append(resolve_layer(files))
        return tuple(layers)
