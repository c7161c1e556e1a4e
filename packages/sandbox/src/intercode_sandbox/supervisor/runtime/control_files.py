"""Reads and writes files of the kernel: those of control groups, and maps of ids."""

from __future__ import annotations

import os


def read_control_file(path: str) -> str:
    """Read a file of the kernel. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    parts = []
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts).decode()


def write_control_file(path: str, text: str) -> None:
    """Write a file of the kernel in one call. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
