"""`intercode image`: its effects on the cache, and its output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.cli import main
from intercode_sandbox.images.recipes import packaged
from support.registries import Faults, faulty
from support.saved_images import Saved, entry, layer

IMAGE = Saved([layer(entry("a", content=b"x" * 5000))])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))
    return tmp_path / "cache"


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["image", *words]) == 0
    return capsys.readouterr().out


def test_import_list_show_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = IMAGE.docker_archive(tmp_path / "a.tar")
    assert output(capsys, "import", f"docker-archive:{path}", "mine") == (
        f"image:mine\t{IMAGE.digest}\n"
    )
    text = output(capsys, "list")
    short = IMAGE.digest.removeprefix("sha256:")[:12]
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["image:mine"][0] == rows[f"docker-archive:{path}"][0] == short
    assert rows["image:mine"][2] == "KB" and rows["recipe:nl2bash"] == ["-", "not", "built"]
    facts = json.loads(output(capsys, "show", "image:mine"))
    assert facts["digest"] == IMAGE.digest and facts["source"] == f"docker-archive:{path}"
    assert facts["size"] >= 5000 and Path(facts["path"], "a").is_file()
    listed = json.loads(output(capsys, "list", "--json"))
    assert facts in listed and {"recipe:nl2bash", "recipe:ctf"} <= {r["name"] for r in listed}
    assert output(capsys, "remove", "image:mine").startswith("removed image:mine;")
    assert main(["image", "remove", "image:mine"]) == 1
    assert "nothing to remove" in capsys.readouterr().err
    assert main(["image", "show", "image:min"]) == 2
    assert "unknown image 'image:min'" in capsys.readouterr().err
    assert main(["image", "show", "dir:/not/used/yet"]) == 2
    assert "is not in the cache" in capsys.readouterr().err


def test_recipes(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(output(capsys, "show", "nl2bash"))
    assert facts["note"] == "not built" and "jq" in facts["packages"]
    built = packaged.built_path("nl2bash", cache)
    built.parent.mkdir(parents=True, exist_ok=True)
    built.write_bytes(IMAGE.layers[0])
    told = {"digest": "sha256:0", "pinned": False, "differences": {"jq": ["1", "2"]}}
    built.with_suffix(".json").write_text(json.dumps(told))
    assert "built, not unpacked yet" in output(capsys, "list")
    assert json.loads(output(capsys, "show", "nl2bash"))["differences"] == {"jq": ["1", "2"]}
    assert output(capsys, "remove", "nl2bash") == "removed recipe:nl2bash\n"
    assert not built.exists() and not built.with_suffix(".json").exists()
    assert main(["image", "remove", "nl2bash"]) == 1


@pytest.mark.slow
def test_pull_and_prune(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blobs: dict[str, bytes] = {}
    with faulty(Faults(IMAGE.manifest(blobs), blobs)) as host:
        for name in (f"{host}/x:1", f"registry:{host}/x:1"):
            assert main(["image", "pull", name]) == 0
            text = capsys.readouterr()
            assert text.out == f"registry:{host}/x:1\t{IMAGE.digest}\n"
        assert "fetching layer" not in text.err, "the second time everything is here"
    assert "downloads 0 B" not in output(capsys, "list")
    used = output(capsys, "prune", "--all")
    assert used == "0 trees and files removed, 0 B freed\n", "this process uses it all"
    assert main(["image", "pull", "debian:12"]) == 2
    assert "is not a reference to an image" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_built_from_a_file_that_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "Dockerfile"
    source.write_text("FROM host\nCOPY hello /srv/hello\n")
    (tmp_path / "hello").write_text("hello")
    spec = output(capsys, "build", str(tmp_path)).split()[-1]
    assert spec == f"dockerfile:{tmp_path}" and spec in output(capsys, "list")
    assert "removed dockerfile:" not in output(capsys, "prune") and spec in output(capsys, "list")
    source.unlink()
    assert f"removed {spec}, whose source is deleted" in output(capsys, "prune")
    assert spec not in output(capsys, "list")
