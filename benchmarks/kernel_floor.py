"""Print what the kernel takes for one sandbox, step by step, beside a sandbox of InterCode.

    python benchmarks/kernel_floor.py [--rounds N]

kernel_floor.c does what every sandbox needs, without any of InterCode's code: namespaces, a process
in them, mounts, a change of root, and a bash. All contenders take turns. The figures are medians of
processor time in milliseconds; what the kernel does later in the background (it removes networks)
is not in them. Needs root, a C compiler, and a /usr that holds no mounts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import Processor

from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.supervisor.build import find_compiler

STEPS = {
    "fork and exit": 0,
    "namespaces: user, mount, process, IPC, host name, control group": 1,
    "network namespace": 2,
    "a process in the process namespace": 3,
    "overlay, /dev with six nodes, /proc, /sys": 4,
    "change of root": 5,
    "`bash -c true` in it": 6,
}
PLAIN_BASH = -1
IN_A_ROW = 20
SETTLE = 0.02  # seconds for processes to end


def compile_program(directory: str) -> str:
    """Compile kernel_floor.c into a directory. Return the program. Raises OSError without a
    compiler, and CalledProcessError."""
    compiler = find_compiler()
    if compiler is None:
        raise OSError("no C compiler here: install one (apt-get install gcc libc6-dev)")
    program = f"{directory}/kernel_floor"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([*compiler, "-O2", "-static", "-o", program, str(source)], check=True)
    return program


def time_step(program: str, step: int) -> float:
    """Return the milliseconds of processor time of all steps up to this one."""
    command = [program, str(step), str(IN_A_ROW)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout) / 1e3


def time_sandbox(processor: Processor, argv: list[str]) -> float:
    """Return the milliseconds of processor time of a sandbox of InterCode in which ``argv`` runs,
    if it is not empty."""
    spec = SandboxSpec(images.resolve("host"))
    start = processor.used()
    for _ in range(IN_A_ROW):
        with open_sandbox(spec) as sandbox:
            if argv:
                sandbox.run(argv)
    time.sleep(SETTLE)
    return 1e3 * (processor.used() - start) / IN_A_ROW


def main() -> None:
    """Parse the command line, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    processor = Processor()
    with tempfile.TemporaryDirectory() as directory:
        program = compile_program(directory)
        work: dict[str, Callable[[], float]] = {
            name: lambda step=step: time_step(program, step)  # type: ignore[misc]
            for name, step in STEPS.items()
        }
        work["plain bash -c true"] = lambda: time_step(program, PLAIN_BASH)
        work["InterCode: open and close a sandbox"] = lambda: time_sandbox(processor, [])
        work["InterCode: the same, and `bash -c true` in it"] = lambda: time_sandbox(
            processor, ["bash", "-c", "true"]
        )
        times: dict[str, list[float]] = {name: [] for name in work}
        for number in range(-1, rounds):  # the first round is not counted
            for name, measure in work.items():
                took = measure()
                if number >= 0:
                    times[name].append(took)
    processor.close()
    before = 0.0
    print("| step | ms, with all steps before | of these, this step |\n|---|---|---|")
    for name, taken in times.items():
        median = statistics.median(taken)
        own = f"{median - before:.2f}" if name in STEPS else ""
        print(f"| {name} | {median:.2f} | {own} |")
        before = median


if __name__ == "__main__":
    main()
