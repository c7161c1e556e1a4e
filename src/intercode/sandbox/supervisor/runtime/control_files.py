"""Reads and writes the files of control groups."""

from __future__ import annotations

import os


def read_control_file(path: str) -> str:
    """Read a control file."""
    with open(path) as f:
        return f.read()


def write_control_file(path: str, text: str) -> None:
    """Write a control file in one call. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
