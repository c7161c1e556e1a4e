"""The numbers of system calls agree with the kernel's headers, for both machines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intercode_sandbox.supervisor.runtime import syscall_numbers

HEADERS = {
    "x86_64": [f"/usr/include{d}/asm/unistd_64.h" for d in ("/x86_64-linux-gnu", "")],
    "aarch64": ["/usr/include/asm-generic/unistd.h"],  # aarch64 has the generic table
}
_NUMBER = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", re.MULTILINE)
RENAMED = {"newfstatat": "fstatat"}  # in the generic table


@pytest.mark.parametrize("machine", syscall_numbers.MACHINES)
def test_the_table_agrees_with_the_headers_of_the_kernel(machine: str) -> None:
    header = next((Path(p) for p in HEADERS[machine] if Path(p).is_file()), None)
    if header is None:
        pytest.skip(f"the headers of the kernel are missing (Debian: linux-libc-dev): {machine}")
    numbers = {name: int(number) for name, number in _NUMBER.findall(header.read_text())}
    column = 1 + syscall_numbers.MACHINES.index(machine)
    rows = re.findall(r"\b(\w+):(\d*):(\d*)", Path(syscall_numbers.__file__).read_text())
    table = {row[0]: int(row[column]) for row in rows if row[column]}
    newest = max(number for name, number in numbers.items() if name != "syscalls")
    assert len(table) > 250
    for name, number in table.items():
        known = numbers.get(name, numbers.get(RENAMED.get(name, "")))
        assert known == number or (known is None and number > newest), (name, number, known)
