"""Hashes of observations and states, and deterministic environments."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

import intercode
from intercode.core.errors import ConfigError, UnknownNameError
from intercode.core.types import Dataset, FileEntry, Task
from intercode.environments.base import hashes
from support import backend

TASKS = Dataset(
    "mine",
    "bash",
    (Task("mine/0", "Write 5.", gold="echo 5 > /five"), Task("mine/1", "Go.", gold="true")),
)
ENTRY = FileEntry("file", 0o644, 5, "ab" * 32)


def test_the_state_hash_covers_files_directory_and_shell() -> None:
    whole = hashes.state_hash({"/a": ENTRY}, "/", "declare -- x=1\n")
    assert len(whole) == 16 and int(whole, 16) >= 0
    assert whole == hashes.state_hash({"/a": replace(ENTRY)}, "/", "declare -- x=1\n")
    others = [
        hashes.state_hash({"/b": ENTRY}, "/", "declare -- x=1\n"),
        hashes.state_hash({"/a": replace(ENTRY, mode=0o600)}, "/", "declare -- x=1\n"),
        hashes.state_hash({"/a": replace(ENTRY, digest="cd" * 32)}, "/", "declare -- x=1\n"),
        hashes.state_hash({"/a": FileEntry("link", target="/x")}, "/", "declare -- x=1\n"),
        hashes.state_hash({}, "/", "declare -- x=1\n"),
        hashes.state_hash({"/a": ENTRY}, "/tmp", "declare -- x=1\n"),
        hashes.state_hash({"/a": ENTRY}, "/", "declare -- x=2\n"),
    ]
    assert len({whole, *others}) == 8


def test_volatile_variables_do_not_count() -> None:
    dump = 'declare -i RANDOM="7"\ndeclare -ir PPID="3"\ndeclare -- RANDOMS="1"\nset -- \'a\''
    assert hashes.without_volatile_variables(dump) == "declare -- RANDOMS=\"1\"\nset -- 'a'"


def test_any_text_has_a_hash() -> None:
    assert hashes.observation_hash("\ud800") != hashes.observation_hash("")


@pytest.mark.sandbox
@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
def test_the_same_actions_give_the_same_hashes(profile: str) -> None:
    if profile == "original" and not shutil.which("git"):
        pytest.skip("the original profile needs git in the image; here the machine's own")
    number = "" if backend.is_chroot() else "$$"  # there it is one of the machine
    actions = (f"date; echo $RANDOM {number}", "cd /tmp && touch a; ls -la", "exit 3", "submit")
    runs = []
    for _ in range(2):
        with intercode.make("bash", TASKS, deterministic=True, profile=profile) as env:
            env.reset(options={"task": 0})
            steps = [env.step(action) for action in actions]
            runs.append([(s[0], s[1], s[4]["hashes"]) for s in steps])
    assert runs[0] == runs[1]
    states = [step[2]["state"] for step in runs[0]]
    assert states[0] != states[1] and all(len(s) == 16 for s in states)


@pytest.mark.sandbox
def test_undoing_a_change_gives_the_same_hash_again() -> None:
    with intercode.make("bash", TASKS, hashes=True) as env:
        env.reset(options={"task": 1})

        def state(action: str) -> str:
            return str(env.step(action)[4]["hashes"]["state"])

        start = state("true")
        assert state("false; echo $RANDOM $SECONDS; sleep 0.01; true") == start
        assert state("x=1") != start
        assert state("unset x") == start
        assert state("touch /f") != start
        with env.snapshot() as snapshot:
            with_file = state("true")
            assert state("rm /f") == start
            env.restore(snapshot)
            assert state("true") == with_file
        assert state("rm /f; cd /tmp; cd /; unset OLDPWD") == start


@pytest.mark.sandbox
def test_metadata_has_the_settings_and_hashes_are_optional() -> None:
    with intercode.make("bash", TASKS) as env:
        assert env.result_metadata()["determinism"] is None
        env.reset(options={"task": 1})
        assert "hashes" not in env.step("true")[4]
    with intercode.make("bash", TASKS, deterministic={"clock": "real", "seed": 3}) as env:
        settings = env.result_metadata()["determinism"]
        assert (settings["clock"], settings["seed"]) == ("real", 3)
        other = env.new_like()
        assert other.determinism == env.determinism
    with pytest.raises(UnknownNameError, match="setting of determinism 'clokc'"):
        intercode.make("bash", TASKS, deterministic={"clokc": "real"})
    with pytest.raises(ConfigError, match="'soon'"):
        intercode.make("bash", TASKS, deterministic={"clock": "soon"})
