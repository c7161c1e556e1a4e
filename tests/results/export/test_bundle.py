"""Bundles: the same bytes from the same run, and refusal of modified or malicious archives."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.results.export.bundle.archive import read_archive, write_archive
from intercode.results.export.bundle.bundle import MEMBERS, read_bundle, write_bundle
from support.talks import run_in


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    out = tmp_path / "a.tar.gz"
    write_bundle(run_in(tmp_path / "run"), out)
    return out


def test_the_manifest_describes_the_bundle(bundle: Path) -> None:
    found = read_bundle(bundle)
    assert found.statement.startswith("try-again with p/m solves 2 of 3 episodes of 3 tasks")
    assert found.results["success"] == pytest.approx(66.667, abs=1e-3)
    assert found.results["low"] < 66.7 < found.results["high"]
    assert [t.score for t in found.episodes] == [1.0, 0.0, 1.0]
    with tarfile.open(bundle) as archive:
        assert archive.getnames() == ["manifest.json", "run.json", "trajectories.jsonl"]
        assert all((m.mtime, m.uid, m.uname) == (0, 0, "") for m in archive.getmembers())


def test_the_same_run_gives_the_same_bytes_and_a_torn_line_is_left_out(
    bundle: Path, tmp_path: Path
) -> None:
    log = tmp_path / "run" / trajectories.TRAJECTORIES_FILE
    with log.open("ab") as file:
        file.write(b'{"v": 2, "task": "sta')
    write_bundle(tmp_path / "run", tmp_path / "b.tar.gz")
    assert (tmp_path / "b.tar.gz").read_bytes() == bundle.read_bytes()


def test_paths_without_a_run_are_refused(tmp_path: Path) -> None:
    run_in(tmp_path / "study" / "one")
    with pytest.raises(UsageError, match=r"is not a run directory.*the last runs in it are one"):
        write_bundle(tmp_path / "study", tmp_path / "a.tar.gz")
    with pytest.raises(UsageError, match=r"must end in \.tar\.gz"):
        write_bundle(run_in(tmp_path / "run"), tmp_path / "a.zip")


def _forge(bundle: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    files = read_archive(bundle, MEMBERS)
    change(files)
    write_archive(bundle, files)


def _reseal(files: dict[str, bytes]) -> None:
    """Write correct digests, as a forger who knows the format would."""
    import hashlib

    manifest = json.loads(files["manifest.json"])
    for name, manifest_text in manifest["files"].items():
        manifest_text["sha256"] = hashlib.sha256(files[name]).hexdigest()
        manifest_text["bytes"] = len(files[name])
    files["manifest.json"] = json.dumps(manifest).encode()


def _line(files: dict[str, bytes], number: int, change: Callable[[dict[str, Any]], None]) -> None:
    rows = [json.loads(line) for line in files["trajectories.jsonl"].splitlines()]
    change(rows[number])
    files["trajectories.jsonl"] = b"".join(json.dumps(r).encode() + b"\n" for r in rows)


def test_a_changed_file_is_found_by_its_digest(bundle: Path) -> None:
    _forge(bundle, lambda f: f.update({"run.json": f["run.json"].replace(b"p/m", b"p/n")}))
    with pytest.raises(DataError, match=r"tampered with: run\.json is not what"):
        read_bundle(bundle)


def test_a_changed_reward_is_found_though_the_digests_were_made_again(bundle: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        _line(files, 1, lambda row: row["steps"][1].update(score=1.0))
        _reseal(files)

    _forge(bundle, change)
    with pytest.raises(DataError, match="tampered with: its results"):
        read_bundle(bundle)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("score", 99.0, "score' is 99.0, more than 1"),
        ("score", "1", r"'steps\[0\]\.score' must be a number, not '1'"),
        ("score", float("nan"), r"'steps\[0\]\.score' must be a number, not nan"),
        ("observation", 3, r"'steps\[0\]\.observation' must be a text, not 3"),
        ("valid", "yes", r"'steps\[0\]\.valid' must be true or false, not 'yes'"),
        ("usage", {"cost": "free"}, r"'steps\[0\]\.usage.cost' must be a number, not 'free'"),
        ("strange\x1b[2J", 1, r"steps.0..strange\\x1b.* is unknown"),
    ],
)
def test_values_of_another_type_are_refused(
    bundle: Path, where: str, value: object, message: str
) -> None:
    def change(files: dict[str, bytes]) -> None:
        _line(files, 0, lambda row: row["steps"][0].update({where: value}))
        _reseal(files)

    _forge(bundle, change)
    with pytest.raises(DataError, match=message) as refused:
        read_bundle(bundle)
    assert "line 1" in str(refused.value) and "\x1b" not in str(refused.value)


def test_an_episode_under_other_conditions_than_the_run_is_refused(bundle: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        _line(files, 0, lambda row: row["run"].update(profile="original"))
        _reseal(files)

    _forge(bundle, change)
    with pytest.raises(DataError, match=r"its profile is not that of run\.json"):
        read_bundle(bundle)


@pytest.mark.parametrize(
    ("settings", "restarts", "message"),
    [
        ({"max_turns": 1}, [], r"2 turns are more than max_turns = 1 of run\.json"),
        ({"max_turns": 1}, [1], "1 restarts are more than max_restarts = 0"),
        ({"max_turns": 1, "agent_metadata": {"max_restarts": 1}}, [1], None),
        ({"max_turns": 2, "agent_metadata": {"max_restarts": None}}, [1], None),
    ],
)
def test_turns_and_restarts_that_the_settings_do_not_allow_are_refused(
    tmp_path: Path, settings: dict[str, Any], restarts: list[int], message: str | None
) -> None:
    run = run_in(tmp_path / "run")
    metadata = json.loads((run / "run.json").read_text()) | settings
    (run / "run.json").write_text(json.dumps(metadata))
    row = json.loads((run / "trajectories.jsonl").read_text().splitlines()[0])
    row |= {"steps": row["steps"][:1] * 2, "restarts": restarts, "run": row["run"] | settings}
    (run / "trajectories.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=message) if message else nullcontext():
        write_bundle(run, tmp_path / "b.tar.gz")


def test_nesting_that_breaks_parsers_is_refused(bundle: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["run.json"] = b"[" * 200_000
        _reseal(files)

    _forge(bundle, change)
    with pytest.raises(DataError, match="JSON that cannot be read"):
        read_bundle(bundle)


def _archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with gzip.open(path, "wb") as packed, tarfile.open(mode="w", fileobj=packed) as archive:
        for member, content in members:
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (_member("../run.json"), "a bundle holds no '../run.json'"),
        (_member("/etc/passwd"), "a bundle holds no '/etc/passwd'"),
        (_member("more.txt"), "a bundle holds no 'more.txt'"),
        (_member("run.json", tarfile.SYMTYPE, "/etc/passwd"), "not a plain file"),
        (_member("run.json", tarfile.LNKTYPE, "manifest.json"), "not a plain file"),
        (_member("run.json", tarfile.CHRTYPE), "not a plain file"),
        (_member("run.json", tarfile.FIFOTYPE), "not a plain file"),
        (_member("run.json", tarfile.DIRTYPE), "not a plain file"),
        (_member("x" * 300), "not a plain file"),  # a header with a long name for the next entry
    ],
)
def test_hostile_members_are_refused(tmp_path: Path, member: tarfile.TarInfo, message: str) -> None:
    path = _archive(tmp_path / "a.tar.gz", (member, b"{}"))
    with pytest.raises(DataError, match=message):
        read_bundle(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]


def test_a_file_that_is_twice_in_it_is_refused(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.tar.gz", (_member("run.json"), b"{}"), (_member("run.json"), b""))
    with pytest.raises(DataError, match=r"holds 'run\.json' twice"):
        read_bundle(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    member = tarfile.TarInfo("manifest.json")
    member.size = 1 << 40
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))
    with pytest.raises(DataError, match="bytes, and at most"):
        read_bundle(path)


@pytest.mark.parametrize("keep", [0, 10, 200, 600])
def test_truncated_files_and_other_files_are_refused(bundle: Path, keep: int) -> None:
    bundle.write_bytes(bundle.read_bytes()[:keep])
    with pytest.raises(DataError):
        read_bundle(bundle)


def test_an_archive_that_lacks_a_file_is_refused(bundle: Path) -> None:
    _forge(bundle, lambda files: files.pop("run.json") and None)
    with pytest.raises(DataError, match=r"it has no run\.json"):
        read_bundle(bundle)
