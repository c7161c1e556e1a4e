"""Long output is shortened in one way, whether it is bytes or text."""

from __future__ import annotations

import pytest

from intercode_sandbox.long_output import Collector, shorten


@pytest.mark.parametrize("limit", [1, 2, 5, 19])
def test_text_and_bytes_keep_the_same_beginning_and_end(limit: int) -> None:
    text = "a" * 10 + "b" * 10
    collector = Collector(limit)
    for character in text:
        collector.add(character.encode())
    shown, omitted = shorten(text, limit)
    assert (collector.bytes().decode(), collector.dropped) == (shown, omitted)
    assert omitted == len(text) - limit
    assert f"\n[... {omitted} bytes left out ...]\n" in shown


def test_what_fits_stays_as_it_is() -> None:
    assert shorten("abc", 3) == ("abc", 0)
    assert shorten("", 0) == ("", 0)


def test_the_size_of_what_is_left_out_is_in_bytes() -> None:
    assert shorten("aäääb", 2) == ("a\n[... 6 bytes left out ...]\nb", 6)
    assert shorten("a\udc80b", 2)[1] == 3, "half of a surrogate pair has the bytes that it takes"
