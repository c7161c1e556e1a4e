"""Long output is shortened in one way, whether it is bytes or text."""

from __future__ import annotations

import pytest

from intercode_sandbox.long_output import Collector, Excerpt, omission_note, shorten


@pytest.mark.parametrize("limit", [1, 2, 5, 19, 20])
def test_text_and_bytes_keep_the_same_beginning_and_end(limit: int) -> None:
    text = "a" * 10 + "b" * 10
    collector = Collector(limit)
    for character in text:
        collector.add(character.encode())
    excerpt = shorten(text, limit)
    omitted = excerpt.omitted_bytes
    assert (collector.bytes().decode(), collector.dropped) == (excerpt.text, omitted)
    assert (excerpt.shown, omitted) == (limit, len(text) - limit)
    assert omission_note(omitted) in excerpt.text


def test_what_fits_stays_as_it_is() -> None:
    assert shorten("abc", 3) == shorten("abc", 9) == Excerpt("abc", 3, 0)
    assert shorten("", 0) == Excerpt("", 0, 0)


def test_the_size_of_what_is_left_out_is_in_bytes() -> None:
    assert shorten("aäääb", 2) == ("a\n[... 6 bytes left out ...]\nb", 2, 6)
    half_of_a_surrogate_pair = "\udc80"
    assert shorten(f"a{half_of_a_surrogate_pair}b", 2).omitted_bytes == 3
