"""Build hook: compiles the C programs of sandboxes when the package is built or installed.

See src/intercode_sandbox/supervisor/build.py. An editable installation has the programs beside the
sources, in a directory that git ignores. On systems other than Linux the wheel is made without
them; everything but sandboxes works there.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SUPERVISOR = "intercode_sandbox/supervisor"


class SupervisorBuildHook(BuildHookInterface):
    """Compiles the programs, and adds them to a wheel."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        path = Path(self.root, "src", _SUPERVISOR, "build.py")
        spec = importlib.util.spec_from_file_location("intercode_build", path)
        assert spec is not None and spec.loader is not None
        self._build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._build)

    def dependencies(self) -> list[str]:
        """Ask for a compiler from PyPI where the machine has none that will do."""
        return self._build.build_requirements()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        machine = self._build.target_machine()
        if machine is None:
            return
        if version == "editable":
            self._build.build(self._build.DIRECTORY, machine)
            return
        self._work = tempfile.TemporaryDirectory()
        folder = Path(self._work.name)
        self._build.build(folder, machine)
        for name in self._build.PROGRAMS:
            build_data["force_include"][str(folder / name)] = f"{_SUPERVISOR}/bin/{name}"
        # static, so that it runs with every C library
        tags = f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tags}"
