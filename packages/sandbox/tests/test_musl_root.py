"""A root file system without glibc: one program, compiled for musl, and musl itself.

In a container the supervisor is a program of this root, so it runs there without any C library.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.types import Image
from support import backend, requirements

pytestmark = pytest.mark.sandbox

_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
  if (count == 3) {  /* writes a file */
    FILE *file = fopen(words[1], "w");
    return !file || fprintf(file, "%s\\n", words[2]) < 0 || fclose(file);
  }
  int status = 1;
  if (!fork()) { execl("/bin/musl", "musl", "/tmp/child", "written", (char *)0); _exit(1); }
  wait(&status);
  printf("pid 1 is %s, child ended with %d\\n",
         access("/proc/1", F_OK) ? "absent" : "there", status);
  return access("/lib64", F_OK) ? 7 : 8;
}
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image ``dir:`` of such a root."""
    requirements.require("musl")
    root = tmp_path_factory.mktemp("musl") / "root"
    for folder in ("bin", "lib", "etc", "dev", "proc", "sys", "tmp", "root"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    loader = Path(f"/lib/ld-musl-{platform.machine()}.so.1")
    shutil.copy(loader, root / "lib" / loader.name)
    compile_it = ["musl-gcc", "-O", "-x", "c", "-o", str(root / "bin/musl"), "-"]
    subprocess.run(compile_it, input=_SOURCE.encode(), check=True, timeout=60)
    return images.resolve(f"dir:{root}")


@pytest.fixture(scope="module")
def musl(image: Image) -> Iterator[BaseSandbox]:
    with open_sandbox(SandboxSpec(image), backend.chosen()) as sandbox:
        yield sandbox


def test_programs_run_and_their_changes_are_found(musl: BaseSandbox) -> None:
    done = musl.run(["/bin/musl"], timeout=20)
    assert done.exit_code == 7, "a root with a /lib64 is not this root"
    there = "absent" if backend.is_chroot() else "there"  # it has no /proc
    assert done.output == f"pid 1 is {there}, child ended with 0\n"
    assert musl.read("/tmp/child") == b"written\n"
    assert "/tmp/child" in musl.changes()


def test_a_program_of_another_c_library_is_named_as_missing(musl: BaseSandbox) -> None:
    program = Path(shutil.which("true") or "/bin/true").read_bytes()
    musl.write("/bin/glibc", program, mode=0o755)
    with pytest.raises(FileNotFoundError, match="/bin/glibc"):  # its loader is absent
        musl.run(["/bin/glibc"], timeout=20)


@pytest.mark.namespace_only("copies of sandboxes")
def test_a_copy_of_the_sandbox_has_its_files(musl: BaseSandbox) -> None:
    musl.write("/tmp/kept", b"1")
    with musl.fork() as copy:
        assert copy.read("/tmp/kept") == b"1" and copy.run(["/bin/musl"], timeout=20).exit_code == 7
