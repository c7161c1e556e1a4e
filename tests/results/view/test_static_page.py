"""The page as one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import UsageError
from intercode.results.view import Library, write_page
from intercode.results.view.page import (
    CONNECT_NONE,
    SCRIPTS,
    browser_json,
    content_security_policy,
    page_head,
)
from support import hostile_run
from support.view_runs import write_run


def unpacked(html: str) -> dict[str, Any]:
    found = re.findall(r'<script type="text/plain" id="([^"]+)">([^<]*)</script>', html)
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


def test_the_file_holds_everything_and_refers_to_nothing(tmp_path: Path) -> None:
    library = Library([write_run(tmp_path / "a"), write_run(tmp_path / "b")])
    size = write_page(library, tmp_path / "out.html")
    html = (tmp_path / "out.html").read_text("utf-8")
    assert size == len(html.encode())
    held = unpacked(html)
    chunk_of = held["index"]["chunk_of"]
    for run, at, episode in library.episodes():
        assert held[f"chunk-{chunk_of[run][str(at)]}"][f"{run}/{at}"] == episode
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)|@import|url\(""", html)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["out.html"]


def test_large_runs_are_split_into_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intercode.results.view.static_page.CHUNK_CHARACTERS", 4000)
    write_page(Library([write_run(tmp_path / "a")]), tmp_path / "out.html")
    held = unpacked((tmp_path / "out.html").read_text("utf-8"))
    assert held["index"]["chunks"] == len(held) - 1 > 2


def test_the_policy_lets_the_pages_own_script_and_style_run_and_no_other(tmp_path: Path) -> None:
    write_page(Library([hostile_run.write(tmp_path)]), tmp_path / "out.html")
    html = (tmp_path / "out.html").read_text("utf-8")
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert len(script) == len(style) == 1
    for kind, text in (("script", script[0]), ("style", style[0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in content_security_policy(CONNECT_NONE)
    assert (
        f'content="{content_security_policy(CONNECT_NONE)}"' in html
        and "connect-src 'none'" in content_security_policy(CONNECT_NONE)
    )
    for attack in hostile_run.ATTACKS:
        assert attack not in html
    assert html.count("<script") == 1 + html.count('<script type="')


def test_the_configuration_cannot_close_its_element() -> None:
    html = page_head({"mode": "</script><script>alert(1)</script>"}, CONNECT_NONE)
    assert "alert" in html and "<script>alert" not in html


def test_the_script_never_turns_text_into_markup() -> None:
    assets = Path(__file__).parents[3] / "packages/intercode/src/intercode/results/view/assets"
    assert {p.name for p in assets.glob("*.js")} == set(SCRIPTS)
    for path in assets.glob("*.js"):
        text = path.read_text("utf-8")
        forbidden = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
            r"|DOMParser|srcdoc|setTimeout\(\s*[\"'`]|createContextualFragment",
            text,
        )
        assert forbidden is None, f"{path.name}: {forbidden}"
        assert text.count("\n") < 300


def test_json_is_what_a_browser_reads() -> None:
    value = {"a": [float("nan"), (float("-inf"), 1.5)], "b": "\ud800</script>"}
    text = browser_json(value)
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": ["nan", ["-inf", 1.5]],
        "b": "\ud800</script>",
    }
    assert text.isascii()


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    library = Library([write_run(tmp_path / "a")])
    write_page(library, tmp_path / "new" / "out.html")
    with pytest.raises(UsageError, match="cannot write"):
        write_page(library, tmp_path / "new" / "out.html" / "out.html")
