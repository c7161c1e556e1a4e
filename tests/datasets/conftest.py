"""The authors' data, with a cache for each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    return data_dir
