"""Golds have the same results and scores on the tested back end and on the default one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode import datasets
from support import backend, requirements
from support.agreement import compare
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
OTHER = backend.chosen() if backend.is_container() else "namespace/2"


@pytest.mark.slow
def test_the_starter_golds_do_the_same() -> None:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    assert compare(datasets.load("starter:bash"), "namespace", OTHER) == []


@pytest.mark.rootfs
@pytest.mark.slow
@pytest.mark.nl2bash
@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
def test_the_nl2bash_golds_are_given_the_same(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """Rewards are equal for every task whose gold gives the same result twice.

    An engine's containers play half of the tasks in one profile and the other half in the other.
    Some golds print something of the sandbox itself (``SHOWN``). In the original profile the
    gold runs in another sandbox, so a few golds score more if both sandboxes print the same.
    """
    image = requirements.image("nl2bash")
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    original = profile == "original"
    shown = SHOWN | (SHOWN_TO_GIT if original else {})
    shown |= SHOWN_IN_CHROOT if backend.is_chroot() else {}
    settings: dict[str, Any] = {"image": image, "profile": profile, "timeout": 4.0}
    dataset = datasets.load("nl2bash")
    if backend.is_container():
        dataset = replace(dataset, tasks=dataset.tasks[original::2])
    found = compare(dataset, "namespace", OTHER, shown, **settings)
    assert [d for d in found if d.steady and not (original and d.task in SELF)] == []


PROC, DISK, READ = "what of /proc may be read", "the disk's size", "when files were last read"
DIRECTORY = "how large a directory is"
SHOWN: dict[str, str] = {
    "nl2bash/fs_1/6": PROC,
    "nl2bash/fs_1/21": PROC,
    "nl2bash/fs_1/30": PROC,
    "nl2bash/fs_2/36": DISK,
    "nl2bash/fs_3/44": DISK,
    "nl2bash/fs_3/50": DISK,
    "nl2bash/fs_3/3": READ,
    "nl2bash/fs_3/12": READ,
    "nl2bash/fs_3/14": DIRECTORY,
    "nl2bash/fs_3/16": DIRECTORY,
    "nl2bash/fs_3/34": DIRECTORY,
    "nl2bash/fs_3/49": DIRECTORY,
    "nl2bash/fs_4/2": DIRECTORY,
    "nl2bash/fs_3/26": "who owns /dev",
    "nl2bash/fs_4/11": "who owns /dev",
    "nl2bash/fs_4/1": "whether there is IPv6",
    "nl2bash/fs_4/5": "what started the shell",
    "nl2bash/fs_1/11": "how far its background job has got",
}
"""Tasks whose golds print properties of a container, and which ones."""
SHOWN_TO_GIT = {
    "nl2bash/fs_1/55": "whether /dev/tty is there",
    "nl2bash/fs_2/38": "how many links a directory has",
}
"""Further tasks in the original profile."""
SHOWN_IN_CHROOT = {
    "nl2bash/fs_1/9": PROC,
    "nl2bash/fs_4/25": PROC,
    "nl2bash/fs_4/16": "the mounts, which /proc lists",
    "nl2bash/fs_4/12": "the network",
    "nl2bash/fs_4/19": "the network",
}
"""Further tasks below a changed root directory, where neither /proc nor a network is."""
SELF = {"nl2bash/fs_2/36", "nl2bash/fs_3/44", "nl2bash/fs_3/50", "nl2bash/fs_4/2"}
"""Golds that print how full the disk is, and how large and how old the directory `/` is."""
