"""Builds what a release consists of, checks it, and installs it in fresh environments.

    python tools/release_check.py [--quick]

It writes to dist/ the source distributions of all packages, the wheels of intercode-sandbox for
x86-64 and aarch64, and one wheel of each other package; the wheels are made from the source
distributions. Then it checks that one version is everywhere; what PyPI checks; contents, licence,
size and tags; and that the supervisor in each wheel is a static program for its machine. Then it
installs in an environment of every Python that is here, with the newest and with the lowest
versions of the dependencies: with intercode-sandbox or intercode-sql alone, the examples of its
README run, of Python and of the shell; with all wheels, the demo is played, from outside of the
checkout. --quick installs with the newest versions and this Python only.
Publishing is one command, which it prints at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any
from unittest import mock

from intercode.core.errors import SandboxError
from intercode_sandbox import Sandbox
from intercode_sandbox.supervisor import build as build_programs

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MACHINES = {"x86_64": 62, "aarch64": 183}
"""The number of each machine in the header of a program."""
PROJECTS = {
    "intercode_sandbox": ROOT / "packages/sandbox",
    "intercode_sql": ROOT / "packages/sql",
    "intercode_gym": ROOT / "packages/intercode",
    "intercode_lab": ROOT / "packages/lab",
}
"""The folder of each distribution; each needs those before it only."""
ALONE = ("intercode_sandbox", "intercode_sql")
"""Those that need no other of ours."""
EXAMPLES_NEED = {"intercode_sql": ("pandas", "sqlalchemy")}
"""What the examples of their READMEs install beside them."""
PACKAGES = {**{name: f"{name}/" for name in PROJECTS}, "intercode_gym": "intercode/"}
MOST_BYTES = {".whl": 3 << 20, ".gz": 6 << 20}
PROGRAMS = tuple(f"intercode_sandbox/supervisor/bin/{name}" for name in build_programs.PROGRAMS)
SUPERVISOR = PROGRAMS[0]
UNWANTED = re.compile(r"__pycache__|\.pyc$|^(runs|build|\.venv|\.git)/|supervisor/bin/digest")
_INTERPRETER_SEGMENT = 3  # PT_INTERP, which only programs that are not static have


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run a command and return what it prints. Exits with its output if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def version() -> str:
    """Return the version. Exits if the citation or the changelog has another one."""
    text = (ROOT / "packages/intercode/src/intercode/core/version.py").read_text("utf-8")
    found = re.search(r'__version__ = "(.+)"', text)
    assert found is not None
    number = found[1]
    for path in ROOT.glob("packages/*/src/*/version.py"):
        if f'__version__ = "{number}"' not in path.read_text("utf-8"):
            sys.exit(f"{path} has another version than {number}")
    if f"\nversion: {number}\n" not in (ROOT / "CITATION.cff").read_text("utf-8"):
        sys.exit(f"CITATION.cff has another version than {number}")
    if f"\n## [{number}]" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        sys.exit(f"CHANGELOG.md has no section for {number}")
    for folder in PROJECTS.values():
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        if "version" not in project["dynamic"]:
            sys.exit(f"{folder / 'pyproject.toml'} has a version of its own")
        for needed in project["dependencies"]:
            if needed.startswith("intercode-") and not needed.endswith(f"=={number}"):
                sys.exit(f"{project['name']} needs {needed}, not {number}")
    return number


def build() -> list[Path]:
    """Build the source distributions, and from them the wheels: of intercode-sandbox for each
    machine."""
    shutil.rmtree(DIST, ignore_errors=True)
    options = ("--installer", "uv", "--outdir", str(DIST))
    python = Path(sys.executable)
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    for name, project in PROJECTS.items():
        run(python, "-m", "build", "--sdist", *options, project, PATH=path)
        (source,) = DIST.glob(f"{name}-*.tar.gz")
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(source) as tar:
                tar.extractall(work, filter="data")
            (folder,) = Path(work).iterdir()
            for machine in MACHINES if name == "intercode_sandbox" else ("any",):
                run(
                    python,
                    "-m",
                    "build",
                    "--wheel",
                    *options,
                    folder,
                    PATH=path,
                    INTERCODE_BUILD_MACHINE=machine,
                )
    return [*sorted(DIST.glob("*.tar.gz")), *sorted(DIST.glob("*.whl"))]


def check_contents(wheel: Path, number: str) -> Iterator[str]:
    """Yield what is wrong with the files and the metadata of any wheel."""
    name = wheel.name.partition("-")[0]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"{name}-{number}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    yield from (f"{wheel.name}: has {name}" for name in names if UNWANTED.search(name))
    yield from (f"{wheel.name}: has {n}" for n in names if n.endswith((".c", ".h")))
    own = (PACKAGES[name], info)
    yield from (f"{wheel.name}: has {n}" for n in names if not n.startswith(own))
    if f"{info}/licenses/LICENSE" not in names or metadata["License-Expression"] != "MIT":
        yield f"{wheel.name}: its licence is missing"
    if metadata["Version"] != number:
        yield f"{wheel.name}: its version is {metadata['Version']}"


def check_wheel(wheel: Path, number: str) -> Iterator[str]:
    """Yield what is wrong with a wheel."""
    yield from check_contents(wheel, number)
    if not wheel.name.startswith("intercode_sandbox-"):
        if not wheel.name.endswith(f"-{number}-py3-none-any.whl"):
            yield f"{wheel.name}: it is not for every machine"
        return
    (machine,) = (name for name in MACHINES if name in wheel.name)
    wanted = f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    if wheel.name != f"intercode_sandbox-{number}-py3-none-{wanted}.whl":
        yield f"{wheel.name}: its tags are not {wanted}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found = sorted(name for name in names if "supervisor/bin/" in name)
        if found != sorted(PROGRAMS):
            yield f"{wheel.name}: its programs are {found}"
            return
        programs = [archive.read(name) for name in PROGRAMS]
        mode = archive.getinfo(SUPERVISOR).external_attr >> 16
    if not mode & 0o111:
        yield f"{wheel.name}: its supervisor is not executable"
    if {struct.unpack_from("<H", program, 18)[0] for program in programs} != {MACHINES[machine]}:
        yield f"{wheel.name}: its programs are for another machine"
    if _INTERPRETER_SEGMENT in segments(programs[0]):
        yield f"{wheel.name}: its supervisor is not static"


def segments(program: bytes) -> list[int]:
    """Return the kinds of segments of an ELF program of 64 bits."""
    (offset,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return [struct.unpack_from("<I", program, offset + size * i)[0] for i in range(count)]


def check_source(source: Path) -> Iterator[str]:
    """Yield what is wrong with a source distribution."""
    with tarfile.open(source) as tar:
        names = [name.partition("/")[2] for name in tar.getnames()]
    yield from (f"{source.name}: has {name}" for name in names if UNWANTED.search(name))
    needed = {
        "intercode_sandbox": ("hatch_build.py", "src/intercode_sandbox/supervisor/c/main.c"),
    }.get(source.name.partition("-")[0], ())
    for name in ("LICENSE", "README.md", *needed):
        if name not in names:
            yield f"{source.name}: lacks {name}"


def check_files(files: list[Path], number: str) -> None:
    """Check the files. Exits with what is wrong with them."""
    faults: list[str] = []
    for file in files:
        faults += check_source(file) if file.suffix == ".gz" else check_wheel(file, number)
    for path in files:
        if path.stat().st_size > MOST_BYTES[path.suffix]:
            faults.append(f"{path.name}: has {path.stat().st_size} bytes")
    if faults:
        sys.exit("\n".join(faults))
    print(run(sys.executable, "-m", "twine", "check", "--strict", *files).strip())
    for path in files:
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


def interpreters() -> Iterator[Path]:
    """Yield an interpreter of each version from 3.11 on that is on this machine."""
    for minor in range(11, 15):
        own = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")
        places = [shutil.which(f"python3.{minor}"), *sorted(map(str, own))]
        for place in filter(None, places):
            done = subprocess.run([place, "-c", "pass"], capture_output=True, check=False)
            if done.returncode == 0:
                yield Path(place)
                break


class _Emulated(subprocess.Popen):  # type: ignore[type-arg]
    """Starts the supervisor of another machine, in place of that of this one."""

    emulator: tuple[str, ...] = ()

    def __init__(self, command: Any, *rest: Any, **settings: Any) -> None:
        if isinstance(command, list) and Path(command[0]).name == Path(SUPERVISOR).name:
            command = [*self.emulator, *command[1:]]
        super().__init__(command, *rest, **settings)


def emulate(wheel: Path) -> None:
    """Execute the supervisor for aarch64, and exchange messages with it.

    Emulation without a kernel of that machine lacks the calls that isolate (Landlock, mounts
    by descriptor), so the supervisor receives a request with its descriptors, prepares what
    it can, and answers with the first call that is missing. Any other answer is an error.
    """
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None:
        print("aarch64: not executed (Debian: apt-get install qemu-user-static)")
        return
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(wheel) as archive:
        program = Path(archive.extract(SUPERVISOR, work))
        program.chmod(0o755)
        _Emulated.emulator = (emulator, str(program))
        with mock.patch.object(subprocess, "Popen", _Emulated):
            try:
                with Sandbox("host", backend="landlock") as sandbox:
                    answer = sandbox.run("echo sound").output
            except SandboxError as e:
                answer = str(e)
    if not answer.endswith(("Function not implemented", "sound\n")):
        sys.exit(f"the supervisor for aarch64, emulated, answers {answer!r}")
    print(f"aarch64, emulated: the supervisor answers: {answer.strip()}")


def requirements(wheel: Path) -> list[str]:
    """Return what a wheel requires without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    return [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]


def install(wheels: list[Path], python: Path, resolution: str, place: Path) -> Path:
    """Install wheels in a fresh environment, and return its Python."""
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "-q", "--python", python, place / "env")
    new = place / "env/bin/python"
    wanted = {text for wheel in wheels for text in requirements(wheel)}
    # uv takes the lowest versions of what it is given by name, not of what a wheel requires, and
    # without the second option one for which a new Python has to compile it
    run(
        uv,
        "pip",
        "install",
        "-q",
        "--python",
        new,
        "--resolution",
        resolution,
        "--only-binary",
        ":all:",
        *wheels,
        *sorted(text for text in wanted if not text.startswith("intercode-")),
    )
    return new


def install_and_read(wheel: Path, python: Path, resolution: str, work: Path) -> None:
    """Install one wheel alone, and run the examples of its README."""
    name = wheel.name.partition("-")[0]
    place = work / f"{python.name}-{resolution}-{name}"
    new = install([wheel], python, resolution, place)
    if others := EXAMPLES_NEED.get(name):
        run(Path(sys.executable).with_name("uv"), "pip", "install", "-q", "--python", new, *others)
    text = (PROJECTS[name] / "README.md").read_text("utf-8")
    examples = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    for example in examples:
        if named := re.match(r"# (\w+\.py)\n", example):  # a file that later examples import
            (place / named[1]).write_text(example, "utf-8")
        run(new, "-c", example, cwd=place)
    commands = list(console_examples(text))
    path = f"{new.parent}:{os.environ['PATH']}"
    for command, printed in commands:
        found = run("bash", "-c", command, cwd=place, PATH=path)
        if found != printed:
            sys.exit(f"{command} prints {found!r}, and the README of {name} says {printed!r}")
    run(new, "-c", "import importlib.util as u; assert u.find_spec('intercode') is None", cwd=place)
    count = len(examples) + len(commands)
    print(f"{run(new, '--version').strip()}, {resolution}: {count} examples of {name} run")


def console_examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in the console examples of a page and what they print. Those that install
    packages are left out."""
    for example in re.findall(r"(?ms)^```console\n(.*?)^```", text):
        for one in re.split(r"(?m)^\$ ", example)[1:]:
            command, _, printed = one.partition("\n")
            if not command.startswith("pip "):
                yield command, printed


def install_and_play(
    wheels: list[Path], python: Path, resolution: str, work: Path, number: str
) -> None:
    """Install the wheels in a fresh environment, and play the demo from a directory of its own."""
    place = work / f"{python.name}-{resolution}"
    uv = Path(sys.executable).with_name("uv")
    new = install(wheels, python, resolution, place)
    shutil.copy(ROOT / "examples/demo.py", place)
    command = place / "env/bin/intercode"
    said = run(command, "--version", cwd=place).strip()
    if said != f"intercode {number}":
        sys.exit(f"{command} --version prints {said!r}")
    printed = run(new, "demo.py", cwd=place)
    if "golds score 1 and doing nothing never does" not in printed:
        sys.exit(printed)
    installed = run(uv, "pip", "list", "--python", new, "--format", "freeze")
    packages = [line for line in installed.split() if line.startswith(("numpy", "gymnasium"))]
    print(
        f"{run(new, '--version').strip()}, {resolution}: the demo is sound ({', '.join(packages)})"
    )


def main() -> None:
    """Build, check, install, play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    number = version()
    files = build()
    check_files(files, number)
    suffixes = ("-any.whl", f"_{os.uname().machine}.whl")
    wheels = {path.name.partition("-")[0]: path for path in files if path.name.endswith(suffixes)}
    emulate(next(path for path in files if "_aarch64.whl" in path.name))
    pythons = [Path(sys.executable)] if options.quick else list(interpreters())
    with tempfile.TemporaryDirectory(prefix="intercode-release-") as work:
        Path(work).chmod(0o755)
        for python in pythons:
            for resolution in ("highest",) if options.quick else ("highest", "lowest-direct"):
                folder = Path(work) / f"{pythons.index(python)}"
                for name in ALONE:
                    install_and_read(wheels[name], python, resolution, folder)
                install_and_play(list(wheels.values()), python, resolution, folder, number)
    print(f"{number} is ready; to publish it: twine upload {DIST.relative_to(ROOT)}/*")


if __name__ == "__main__":
    main()
