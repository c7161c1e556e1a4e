"""Builds the program that runs as PID 1 of a sandbox, an ELF file of less than 400 bytes. The
supervisor itself as PID 1 would take ten times the memory, and does so only where this cannot run.

The program names itself ``init``, forbids other processes to read its memory, and reads commands
from descriptor 3 until the supervisor closes it. ``stop`` stops all other processes of the sandbox
at once, so that none can fork. ``reset`` writes ``1`` to descriptor 4, the kernel's file with the
last process number, to restart the numbering. The program answers ``ok`` or ``no``. SIGCHLD is
ignored, so the kernel collects orphans.
"""

from __future__ import annotations

import os
import struct

_BASE = 0x400000
_HEADERS = 64 + 2 * 56
_CODE = {
    # prctl(PR_SET_NAME, "init"); prctl(PR_SET_DUMPABLE, 0);
    # again: n = read(3, buffer, 16); if (n == -EINTR) goto again; if (n <= 0) exit_group(1);
    # if (*buffer == 's') { kill(-1, SIGSTOP); done = 1; } else done = pwrite64(4, "1", 1, 0) == 1;
    # write(3, done ? "ok" : "no", 2); goto again;
    "x86_64": (
        62,
        "b89d000000bf0f000000488d359d0000000f05b89d000000bf0400000031f60f0531c0bf0300"
        "0000488d7424c0ba100000000f054883f8fc74e74885c07e63807c24c0737442b812000000bf"
        "04000000488d355c000000ba010000004531d20f05488d354c0000004883f8017407488d3541"
        "000000b801000000bf03000000ba020000000f05eb99b83e000000bfffffffffbe130000000f"
        "05488d3514000000ebd3b8e7000000bf010000000f05696e697400316f6b6e6f",
    ),
    "aarch64": (
        183,
        "e81480d2e00180d261050010010000d4e81480d2800080d2010080d2010000d4e80780d26000"
        "80d2e10301d1020280d2010000d41f1000b140ffff541f0000f14d030054e50301d1a4004039"
        "9fcc017100020054880880d2800080d2e1020030220080d2030080d2010000d41f0400f14102"
        "00504000005421020010080880d2600080d2420080d2010000d4e5ffff17281080d200008092"
        "610280d2010000d4c1000050f6ffff17c80b80d2200080d2010000d4696e697400316f6b6e6f",
    ),
}


def build_program(machine: str) -> bytes:
    """Return the program as an ELF file. Raises KeyError for an unknown machine."""
    number, code = _CODE[machine]
    text = bytes.fromhex(code)
    size = _HEADERS + len(text)
    entry = _BASE + _HEADERS
    magic = b"\x7fELF\2\1\1".ljust(16, b"\0")
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", magic, 2, number, 1, entry, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)  # PT_LOAD, r-x
    stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # PT_GNU_STACK, rw-
    return head + load + stack + text


def open_program(machine: str) -> int:
    """Write the program to a file in memory and return its descriptor. Raises KeyError for an
    unknown machine, or OSError if the kernel forbids executable files in memory."""
    fd = os.memfd_create("init", os.MFD_CLOEXEC)
    data = build_program(machine)
    if os.write(fd, data) != len(data):
        raise OSError("the program of PID 1 could not be written")
    return fd
