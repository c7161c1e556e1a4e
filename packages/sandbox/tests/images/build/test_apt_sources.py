"""The Debian archives that images are built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.recipes import apt_sources

STANZAS = """# comment
Types: deb deb-src
URIs: http://one.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs:
 http://two.example/debian
 http://three.example/debian
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://other.example/tools
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/other.gpg
"""
LINES = """deb http://one.example/debian bookworm main
# deb http://off.example/debian bookworm main
deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://l.example/d bookworm main  # x
deb [signed-by=/k/other.gpg] http://other.example/d bookworm main
deb http://docker.example/linux bookworm stable
deb-src http://src.example/debian bookworm main
deb http://old.example/debian bullseye main
deb
"""


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    folder = tmp_path / "apt" / "sources.list.d"
    folder.mkdir(parents=True)
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    (tmp_path / "apt" / "sources.list").write_text(LINES)
    (folder / "debian.sources").write_text(STANZAS)
    (folder / "off.list.disabled").write_text("deb http://off.example/debian bookworm main\n")
    return tmp_path


def test_the_machines_own(etc: Path) -> None:
    assert apt_sources.machine_sources("bookworm", etc) == [
        "deb http://one.example/debian bookworm main\n",
        "deb http://l.example/d bookworm main\n",
        "deb http://one.example/debian bookworm-updates main\n",
        "deb http://two.example/debian bookworm-security main\n",
        "deb http://three.example/debian bookworm-security main\n",
    ]
    assert apt_sources.recipe_sources("bookworm", "20261120", (), etc).count("\n") == 5


def test_another_machine_needs_a_mirror(etc: Path, tmp_path: Path) -> None:
    assert apt_sources.machine_sources("trixie", etc) == []
    with pytest.raises(UsageError, match=r"'trixie'.*--mirror.*20261120.*--image tar:"):
        apt_sources.recipe_sources("trixie", "20261120", (), etc)
    (etc / "os-release").write_text("ID=ubuntu\nVERSION_CODENAME=bookworm\n")
    assert apt_sources.machine_sources("bookworm", etc) == []
    assert apt_sources.machine_sources("bookworm", tmp_path / "absent") == []


def test_mirrors_replace_the_archives_of_the_machine(etc: Path) -> None:
    lines = apt_sources.recipe_sources(
        "bookworm",
        "20261120",
        ["http://dated.example/{date}", "deb http://s.example/{date} bookworm-security main"],
        etc,
    )
    assert lines.splitlines() == [
        "deb http://dated.example/20261120T000000Z bookworm main",
        "deb http://s.example/20261120T000000Z bookworm-security main",
    ]


def test_an_image_gets_the_archives_that_its_commands_reach(etc: Path) -> None:
    archives = apt_sources.recipe_sources("bookworm", "20261120", (), etc)
    archives += "deb http://me:secret@in.example/d bookworm main\ndeb file:/d bookworm main\n"
    text = apt_sources.image_sources(archives, dated=False)
    assert "secret" not in text and "file:" not in text and "Check-Valid-Until" not in text
    first, *others = text.split("\n\n")
    assert first.splitlines()[:3] == [
        "Types: deb",
        "URIs: http://one.example/debian",
        "Suites: bookworm bookworm-updates",
    ]
    assert [block.splitlines()[1] for block in others] == [
        "URIs: http://l.example/d",
        "URIs: http://two.example/debian",
        "URIs: http://three.example/debian",
    ]
    dated = apt_sources.image_sources("deb http://a.example/2026 bookworm main\n", dated=True)
    assert dated.splitlines()[-1] == "Check-Valid-Until: no"
