"""A file of labels that grows while a person judges."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from intercode.core.errors import UsageError
from intercode_lab.labels.records import Label, read_labels


class LabelFile:
    """Stores one label of each trajectory in a JSONL file. May be used by several threads.

    A new label is one line that is appended and flushed to the disk before ``store`` returns; a
    changed one replaces the whole file in one step. So an interruption at any time leaves a valid
    file. Raises UsageError for a path that cannot be written, DataError for a line that is not a
    label.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            with path.open("ab"):
                pass
        except OSError as e:
            raise UsageError(f"cannot write labels to {path}: {e.strerror}") from e
        self._read()

    def labels(self) -> list[Label]:
        """Return the labels as the file has them now."""
        with self._lock:
            return self._read()

    def store(self, label: Label) -> None:
        """Add a label, in place of an earlier one of the same task and actions."""
        with self._lock:
            labels = self._read()
            if all(other.key != label.key for other in labels):
                self._append(label)
            else:
                at = [other.key for other in labels].index(label.key)
                others = [other for other in labels if other.key != label.key]
                self._replace([*others[:at], label, *others[at:]])

    def _read(self) -> list[Label]:
        return read_labels([self.path]) if self.path.read_bytes().strip() else []

    def _append(self, label: Label) -> None:
        text = self.path.read_bytes()
        begin = b"\n" if text and not text.endswith(b"\n") else b""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, begin + _line(label))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _replace(self, labels: list[Label]) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with temporary.open("wb") as out:
                out.writelines(map(_line, labels))
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)


def _line(label: Label) -> bytes:
    text = json.dumps(label.as_json(), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"
