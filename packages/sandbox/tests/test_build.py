"""The C programs of sandboxes are compiled when the package is built or installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from intercode_sandbox.determinism import Determinism
from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.supervisor import build, clock, programs
from support.sandboxes import open_test_sandbox

ROOT = Path(__file__).parents[1]
MACHINE = os.uname().machine
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
OPEN = """
from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.types import Image
from intercode_sandbox.determinism import Determinism
with open_sandbox(SandboxSpec(Image("host", ""), determinism=Determinism())) as sandbox:
    print(sandbox.run(["/bin/date", "+%F"]).output)
"""


def elf_machine(program: Path) -> int:
    head = program.read_bytes()[:20]
    assert head[:6] == b"\x7fELF\2\1"
    return int.from_bytes(head[18:20], "little")


def sources(to: Path) -> Path:
    """Copy what the package is built from. Return the folder."""
    shutil.copytree(ROOT / "src", to / "src", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to)
    return to


def run(*argv: str | Path, **settings: object) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=500, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def test_programs_of_these_sources_are_installed() -> None:
    assert not build.is_stale()
    assert elf_machine(programs.find_program(build.SUPERVISOR)) == ELF_MACHINES[MACHINE]
    assert programs.find_program(build.CLOCK_LIBRARY).read_bytes().count(b"intercode clock\0") == 1


def test_missing_and_outdated_programs_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "DIRECTORY", tmp_path)
    find_program = programs.find_program.__wrapped__
    with pytest.raises(
        SandboxUnavailableError,
        match="is missing: in the source checkout",
    ):
        find_program(build.SUPERVISOR)
    (tmp_path / build.SUPERVISOR).write_bytes(b"")
    (tmp_path / "digest").write_text("of other sources")
    with pytest.raises(SandboxUnavailableError, match="is older than its C sources"):
        find_program(build.SUPERVISOR)


def test_a_failing_compiler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\ncase $* in *trial*) ;; *) echo broken >&2; exit 1;; esac\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(build.BuildError, match="cannot compile the supervisor: broken"):
        build.build(tmp_path / "bin", MACHINE)
    assert list((tmp_path / "bin").iterdir()) == []


def test_a_compiler_is_required_only_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv(build.MACHINE_VARIABLE, raising=False)
    monkeypatch.setattr(build, "find_compiler", lambda: ["cc"])
    assert build.build_requirements() == []
    other = next(machine for machine in build.MACHINES if machine != MACHINE)
    monkeypatch.setenv(build.MACHINE_VARIABLE, other)
    assert build.build_requirements() == [build.ZIG_REQUIREMENT]
    monkeypatch.delenv(build.MACHINE_VARIABLE)
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    assert build.build_requirements() == [build.ZIG_REQUIREMENT]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert build.build_requirements() == []


def test_settings_of_the_clock_are_written_into_a_copy() -> None:
    library = programs.find_program(build.CLOCK_LIBRARY).read_bytes()
    assert clock.clock_library(Determinism(clock="real", random="real")) is None
    one = clock.clock_library(Determinism(seed=5))
    assert one is not None and len(one) == len(library) and one != library
    assert one == clock.clock_library(Determinism(seed=5))
    assert one != clock.clock_library(Determinism(seed=6))


@pytest.mark.sandbox
@pytest.mark.namespace_only("engines execute the supervisor from its file")
def test_a_supervisor_that_cannot_be_executed_from_its_file_runs_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*build.PROGRAMS, "digest"):
        shutil.copyfile(build.DIRECTORY / name, tmp_path / name)  # without the right to execute it
    monkeypatch.setattr(build, "DIRECTORY", tmp_path)
    programs.find_program.cache_clear()
    Launcher.stop()
    try:
        with open_test_sandbox() as sandbox:
            assert sandbox.run(["/bin/echo", "hi"]).output == "hi\n"
    finally:
        programs.find_program.cache_clear()
        Launcher.stop()


@pytest.mark.network
@pytest.mark.slow("long")
@pytest.mark.sandbox
@pytest.mark.namespace_only("the installation is the same for all back ends")
def test_an_installation_without_a_compiler_opens_a_sandbox(tmp_path: Path) -> None:
    pytest.importorskip("uv", reason="pip install uv")  # much faster than pip
    home = tmp_path / "venv"
    venv.create(home)
    tools = tmp_path / "tools"
    tools.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in ("CC", "PYTHONPATH")}
    python = home / "bin/python"
    run(
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "-q",
        "--python",
        python,
        sources(tmp_path),
        env={**env, "PATH": str(tools)},
    )
    assert run(python, "-c", OPEN, env=env, cwd=tmp_path) == "2026-01-01\n\n"
