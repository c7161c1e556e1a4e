"""References ``file.py:name`` to functions in files outside of packages."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode_sandbox.registry import is_file_reference, load_object, portable_reference


def test_a_function_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "odd name.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Two:\n    value: int = 2\ndef two():\n    return Two().value\n"
    )
    first = load_object(f"{file}:two")
    assert first() == 2 and load_object(f"{file}:two") is first
    name = portable_reference(f"{file}:two")
    assert (
        name.startswith(f"{tmp_path.name}/odd name.py:two@") and len(name.rpartition("@")[2]) == 8
    )
    file.write_text("def two():\n    return 22\n")
    assert load_object(f"{file}:two")() == 22  # the new content of the file
    assert portable_reference(f"{file}:two") != name
    assert portable_reference("os.path:join") == "os.path:join" and not is_file_reference(
        "os.path:join"
    )


@pytest.mark.parametrize(
    ("text", "reference", "error", "message"),
    [
        ("def one(): pass", "f.py:oen", UnknownNameError, "did you mean 'one'"),
        ("def one(:", "f.py:one", UsageError, "f.py cannot be run: SyntaxError"),
        ("1 / 0", "f.py:one", UsageError, "f.py cannot be run: ZeroDivisionError"),
        ("raise SystemExit(1)", "f.py:one", UsageError, "f.py cannot be run: SystemExit: 1"),
        ("", "g.py:one", UsageError, "cannot read"),
        ("", "f.py", UsageError, "not of the form"),
    ],
)
def test_an_error_in_a_file_is_named(
    tmp_path: Path, text: str, reference: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "f.py").write_text(text)
    before = set(sys.modules)
    with pytest.raises(error, match=message):
        load_object(f"{tmp_path}/{reference}")
    assert not [m for m in set(sys.modules) - before if "cannot" in message and m.endswith("f.py")]


def test_concurrent_threads_get_one_module(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.2)\ndef late(): ...\n")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(load_object, [f"{tmp_path}/slow.py:late"] * 4))
    assert len(set(found)) == 1
