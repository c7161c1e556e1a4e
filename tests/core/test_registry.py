"""Registries: loading on first use and suggestions for typos; the directories of the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode_sandbox.platforms import paths
from intercode_sandbox.registry import Registry, load_object, unknown_name_error


def test_a_name_is_loaded_on_use() -> None:
    table = Registry("thing", {"bad": "no.such.module:x", "join": "os.path:join"})
    assert list(table) == ["bad", "join"] and "bad" in table
    assert table.load("join") is os.path.join
    table.register("bad", "os.path:split")
    assert table.load("bad") is os.path.split


def test_a_reference_needs_no_entry() -> None:
    assert Registry("thing", {}).load("os.path:join") is os.path.join


@pytest.mark.parametrize("name", ["jion", "joins"])
def test_a_typo_gets_a_suggestion(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown thing '{name}'; did you mean 'join'"):
        Registry("thing", {"join": "os.path:join", "other": "os.path:split"}).load(name)


def test_a_name_without_a_similar_one_gets_the_list() -> None:
    error = unknown_name_error("thing", "zzz", ["b", "a"])
    assert str(error) == "unknown thing 'zzz'; known: a, b"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("os.path", "not of the form"),
        (":x", "not of the form"),
        ("os:", "not of the form"),
        ("no_such_module_x:y", "cannot import 'no_such_module_x'"),
        ("os.path:jion", "did you mean 'join'"),
        ("bisect:nope", "known: bisect, bisect_left"),  # names with an underscore are not listed
    ],
)
def test_a_bad_reference_names_the_part_that_failed(reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_object(reference)


def test_modules_of_the_working_directory_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_for_this_test.py").write_text("value = 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_object("mine_for_this_test:value") == 3


def test_a_broken_module_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_for_this_test.py").write_text("import no_such_thing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(UsageError, match="no_such_thing"):
        load_object("broken_for_this_test:value")


def test_the_cache_directory_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "a" / "b"))
    assert paths.cache_root() == tmp_path / "a" / "b"
    assert paths.cache_root().is_dir()


def test_the_user_id_of_sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERCODE_SANDBOX_UID", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert paths.sandbox_uid() == paths.ROOT_SANDBOX_UID
    monkeypatch.setenv("INTERCODE_SANDBOX_UID", "4711")
    assert paths.sandbox_uid() == 4711
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert paths.sandbox_uid() == 1000


def test_of_many_names_some_are_listed() -> None:
    error = str(unknown_name_error("task", "t07x", [f"t{n:02}" for n in range(70)]))
    assert "did you mean 't07'" in error and "t09, and 60 more" in error and "t10" not in error
