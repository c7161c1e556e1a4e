"""Text of agents, models and programs has no effect in a real browser."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import hostile_run
from support.browser import Watched

pytestmark = pytest.mark.browser

ADDRESSES = (
    "#/runs",
    "#/list",
    "#/list?run=0",
    "#/list?sort=task&result=failed",
    "#/episode/0/0",
    "#/episode/1/1?run=1",
    "#/compare/0/1",
    "#/side-by-side/0/0/1/0",
)


@pytest.mark.slow
def test_hostile_texts_are_shown_and_do_nothing(
    watched: Watched, tmp_path: Path, single: Callable[[Path], str]
) -> None:
    url = single(hostile_run.write(tmp_path / "runs"))
    for address in ADDRESSES:
        page = watched.open(url, address)
        watched.press("m", "o")
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("window.taken === undefined")
        assert page.locator("main :is(script, img, svg, iframe, style, object)").count() == 0
        assert page.locator("[onerror], [onload], [onclick], [style*=url]").count() == 0
        page.goto("about:blank")
    assert watched.said == []
    requests = {u for u in watched.requests if u != "about:blank"}
    assert {u.split("#")[0] for u in requests} == {url}


def test_invisible_characters_are_marked(
    watched: Watched, tmp_path: Path, single: Callable[[Path], str]
) -> None:
    page = watched.open(single(hostile_run.write(tmp_path / "runs")), "#/episode/0/0")
    text = page.locator(".turn").last.inner_text()
    for text_shown in (
        "⟨ESC⟩[31mred⟨ESC⟩[0m",
        "⟨U+202E⟩detrevni⟨U+202C⟩",
        "⟨NUL⟩⟨BEL⟩",
        "zero⟨U+200B⟩",
        "⟨U+D800⟩",
        "<script>window.taken = 1</script>",
    ):
        assert text_shown in text, text_shown
    body = page.locator("body").inner_text()
    assert not set(body) & set("\x1b\u202e\u202c\x00\x07\u200b")


@pytest.mark.slow
def test_hostile_addresses_do_nothing(
    watched: Watched, runs: Path, single: Callable[[Path], str]
) -> None:
    url = single(runs)
    for address in (
        "#/list?q=<img src=x onerror=window.taken=1>",
        "#/<script>window.taken=1</script>",
        "#/episode/__proto__/0",
        "#/list?run=__proto__&sort=constructor",
        "#/list?group=%00%FF",
        "#/list?sort=__proto__",
        "#/compare/0/0?only=<b>&sort=<b>",
        "#/side-by-side/0/0/0",
    ):
        page = watched.open(url, address)
        assert page.evaluate("window.taken === undefined")
        page.goto("about:blank")
    assert watched.said == []


def test_the_content_security_policy_stops_scripts_and_requests(
    watched: Watched, runs: Path, single: Callable[[Path], str]
) -> None:
    page = watched.open(single(runs))
    stopped = page.evaluate("""async () => {
        const found = [];
        const note = (event) => event.disposition === 'enforce'
            && found.push(event.effectiveDirective);
        document.addEventListener("securitypolicyviolation", note);
        const script = document.createElement("script");
        script.textContent = "window.taken = 1";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(image);
        await fetch("http://127.0.0.1:9/").catch(() => {});
        await new Promise((done) => setTimeout(done, 100));
        return [window.taken === undefined, found.sort()];
    }""")
    assert stopped == [True, ["connect-src", "img-src", "script-src-elem"]]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_not_blank_in_light_and_in_dark(
    browser: Any, runs: Path, single: Callable[[Path], str], tmp_path: Path, scheme: str
) -> None:
    watched = Watched(browser, color_scheme=scheme, viewport={"width": 480, "height": 300})
    url = single(runs)
    for name, address in (
        ("runs", "#/runs"),
        ("list", "#/list"),
        ("episode", "#/episode/0/1"),
        ("compare", "#/compare/0/1"),
        ("side-by-side", "#/side-by-side/0/1/1/1"),
    ):
        page = watched.open(url, address)
        shot = page.screenshot(path=tmp_path / f"{scheme}-{name}.png")
        values = pixels(shot)
        paper = values[len(values) // 2]
        assert len(set(values)) > 30, f"{name} is blank"
        dark = sum(v < 128 for v in values) / len(values)
        assert dark > 0.7 if scheme == "dark" else dark < 0.3, (name, paper)
        page.goto("about:blank")
    watched.page.close()


def pixels(png: bytes) -> bytes:
    """Return the green values of a PNG with eight bits per channel."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6)
    size, data, at = (3 if kind == 2 else 4), b"", 8
    while at < len(png):
        length = struct.unpack(">I", png[at : at + 4])[0]
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    raw, stride = zlib.decompress(data), width * size
    before, out = bytearray(stride), bytearray()
    for y in range(height):
        start = y * (stride + 1)
        before = unfiltered(raw[start], raw[start + 1 : start + 1 + stride], before, size)
        out += before[1::size]
    return bytes(out)


def unfiltered(way: int, row: bytes, above: bytearray, size: int) -> bytearray:
    """Return a row of a PNG before its filter was applied (PNG specification, 9.2)."""
    out = bytearray(row)
    for n in range(len(out) if way else 0):
        left, up = (out[n - size] if n >= size else 0), above[n]
        corner = above[n - size] if n >= size else 0
        guess = left + up - corner
        distant = (abs(guess - left), abs(guess - up), abs(guess - corner))
        nearest = (left, up, corner)[distant.index(min(distant))]
        out[n] = (out[n] + (0, left, up, (left + up) // 2, nearest)[way]) & 255
    return out
