"""Measures the processor time of golds in a plain bash, without InterCode.

`bench_episodes.py` prints it beside the processor time of whole episodes: no episode can take less.
Each gold runs as `bash -c GOLD` below a changed root, in the files of its task. Needs root.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import tempfile
from typing import Any

import intercode
from intercode.core.types import Dataset
from intercode_sandbox.supervisor.runtime import syscalls

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
_SECONDS = 20  # limit of one gold
Gold = tuple[str, str]
"""The working directory and the command."""


def processor_ms(dataset: Dataset, image: str | None, rounds: int = 3) -> float:
    """Return the mean processor time of a gold in milliseconds, user and system, over all tasks and
    ``rounds`` rounds after one that is not counted. Raises OSError if this user may not mount."""
    golds_by_files: dict[tuple[str, ...], list[Gold]] = {}
    with intercode.make("bash", dataset=dataset, image=image) as env:
        for task in range(len(dataset)):
            env.reset(options={"task": task})
            spec, cwd = env.sandbox.spec, env.task.cwd or "/"
            files = (str(spec.image.root), *(str(layer.root) for layer in spec.all_layers))
            golds_by_files.setdefault(files, []).append((cwd, env.task.gold))
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    seconds = 0.0
    for files, golds in golds_by_files.items():
        with tempfile.TemporaryDirectory() as top:
            process = context.Process(target=_run_golds, args=(top, files, golds, rounds, results))
            process.start()
            process.join()
        if process.exitcode:
            raise OSError(f"the golds could not run in {files}")
        seconds += results.get()
    return 1000 * seconds / (rounds * len(dataset))


def _run_golds(
    top: str, files: tuple[str, ...], golds: list[Gold], rounds: int, results: Any
) -> None:
    """Run the golds below a root of these directories, the lowest first, mounted in ``top``. Put
    the seconds of processor time into ``results``."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("tmpfs", top, "tmpfs")
    for name in ("upper", "work", "root"):
        os.mkdir(f"{top}/{name}")
    options = f"lowerdir={':'.join(reversed(files))},upperdir={top}/upper,workdir={top}/work"
    syscalls.mount("overlay", f"{top}/root", "overlay", options=options)
    syscalls.mount("proc", f"{top}/root/proc", "proc")
    syscalls.mount("/dev", f"{top}/root/dev", flags=syscalls.MS_BIND | syscalls.MS_REC)
    os.chroot(f"{top}/root")
    before = 0.0
    for number in range(rounds + 1):
        for cwd, gold in golds:
            subprocess.run(
                ["/bin/bash", "-c", gold],
                cwd=cwd,
                env=_ENVIRONMENT,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        before = before if number else _of_children()
    results.put(_of_children() - before)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
