"""Building packaged recipes: the command, the report, and errors."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from intercode_sandbox.errors import DataError, InfrastructureError, UsageError
from intercode_sandbox.images import resolve
from intercode_sandbox.images.recipes import apt_sources, mmdebstrap, packaged

TOML = 'suite = "bookworm"\ndate = "20261120"\npackages = ["bash", "jq"]\n'
STATUS = """Package: jq
Status: install ok installed
Version: 1.6-2.1
Description: a
 Version: not this

Package: gone
Status: deinstall ok config-files
Version: 1

Package: bash
Status: install ok installed
Version: 5.2
"""


@pytest.fixture
def mine() -> packaged.Recipe:
    return packaged.parse_recipe("mine", TOML, "bash=5.2\njq=1.7\n")


def status_tar(path: Path, name: str = "./var/lib/dpkg/status") -> Path:
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(STATUS)
        tar.addfile(member, io.BytesIO(STATUS.encode()))
    return path


def test_command_and_pins(mine: packaged.Recipe, tmp_path: Path) -> None:
    argv = mmdebstrap.mmdebstrap_command(
        "mmdebstrap", mine, tmp_path / "out", Path("/a b/pins"), "", dated=True
    )
    assert argv[-3:] == ("bookworm", str(tmp_path / "out"), "-")
    assert "--include=bash,jq" in argv and "--variant=minbase" in argv
    assert any("'/a b/pins'" in a for a in argv if a.startswith("--setup-hook="))
    assert any("Check-Valid-Until" in a for a in argv)
    plain = mmdebstrap.mmdebstrap_command(
        "mmdebstrap", mine, tmp_path / "out", None, "deb http://a.example/d bookworm main\n", False
    )
    left_out = ("hook=install", "Check-Valid-Until", "a.example", "apt.conf.d/sandbox-user")
    assert not any(word in a for a in plain for word in left_out)
    first, second = mmdebstrap.apt_preferences(mine).strip().split("\n\n")
    assert first.splitlines() == ["Package: bash", "Pin: version 5.2", "Pin-Priority: 1001"]
    assert "Pin: version 1.7" in second


def test_the_record_says_what_differs(mine: packaged.Recipe, tmp_path: Path) -> None:
    path = status_tar(tmp_path / "a.tar")
    assert mmdebstrap.package_versions(path) == {"bash": "5.2", "jq": "1.6-2.1"}
    report = mmdebstrap.build_report(mine, path, tmp_path)
    assert report["differences"] == {"jq": ["1.7", "1.6-2.1"]}
    assert report["pinned"] is False
    digest = str(report["digest"]).removeprefix("sha256:")
    pinned = packaged.parse_recipe(
        "mine", f'{TOML}[digests]\namd64 = "{digest}"\n', "bash=5.2\nnew=1\n"
    )
    report = mmdebstrap.build_report(pinned, path, tmp_path)
    assert report["pinned"] is True
    assert report["differences"] == {"jq": [None, "1.6-2.1"], "new": ["1", None]}
    with pytest.raises(DataError, match="not a Debian root file system"):
        mmdebstrap.package_versions(status_tar(tmp_path / "b.tar", "etc/passwd"))


def test_without_the_tool(
    mine: packaged.Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"apt-get install mmdebstrap.*--image tar:"):
        mmdebstrap.build_recipe(mine, cache=tmp_path)
    (tmp_path / "images" / "mine.tar").write_bytes(b"built before")
    assert mmdebstrap.build_recipe(mine, cache=tmp_path) == tmp_path / "images" / "mine.tar"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mmdebstrap"), reason="apt-get install mmdebstrap")
def test_a_build_that_fails_leaves_nothing(mine: packaged.Recipe, tmp_path: Path) -> None:
    lines: list[str] = []
    (tmp_path / "empty").mkdir()
    with pytest.raises(InfrastructureError, match=r"(?s)'mine' ended with status \d+:\n."):
        mmdebstrap.build_recipe(mine, f"file://{tmp_path}/empty", lines.append, cache=tmp_path)
    assert lines
    assert [p.name for p in (tmp_path / "images").iterdir()] == [".mine.lock"]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(
    os.environ.get("INTERCODE_TEST_BUILD") != "1",
    reason="set INTERCODE_TEST_BUILD=1 to build a small image from the machine's own archives",
)
def test_a_real_build(tmp_path: Path) -> None:
    assert shutil.which("mmdebstrap") and apt_sources.machine_sources("bookworm")
    small = packaged.parse_recipe("mine", TOML.replace('"bash", "jq"', '"jq"'))
    path = mmdebstrap.build_recipe(small, cache=tmp_path)
    report = json.loads(path.with_suffix(".json").read_text())
    assert "jq" in report["packages"] and "git" not in report["packages"]
    image = resolve(f"tar:{path}", tmp_path)
    assert image.digest == report["digest"]
    assert image.root is not None and (image.root / "usr/bin/jq").is_file()
    first = path.read_bytes()
    assert mmdebstrap.build_recipe(small, cache=tmp_path, force=True).read_bytes() == first
