"""What the owner reads of a sandbox has a size that the owner chooses."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from intercode.core.types.untrusted import parse_untrusted
from intercode.integrations.swe_bench.grading import read_report
from intercode.sessions.python.values import decode_value
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import drain

_TEXTS = ('"', "\\", "{,:[", "]}", "é", "\U0001f600", "plain", "\n", "")


def _value(random: random.Random, depth: int) -> Any:
    kind = random.randrange(5 if depth else 3)
    if kind == 0:
        return random.choice((None, True, 17, -1.5e30))
    if kind <= 2:
        return "".join(random.choices(_TEXTS, k=3))
    values = [_value(random, depth - 1) for _ in range(random.randrange(4))]
    return values if kind == 3 else {f"{random.choice(_TEXTS)}{n}": v for n, v in enumerate(values)}


def _separators(value: Any) -> int:
    """Return how many of ``[{,:`` the JSON of a value has outside of texts."""
    if isinstance(value, dict):
        return len(value) + max(1, len(value)) + sum(map(_separators, value.values()))
    return max(1, len(value)) + sum(map(_separators, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("value", [7, None, ["1"], {"value": "1"}])
def test_what_is_no_text_is_not_decoded(value: Any) -> None:
    with pytest.raises(ValueError, match="it is no text"):
        parse_untrusted(value)


def test_values_are_those_of_json_up_to_the_limit() -> None:
    for seed in range(500):
        value = _value(random.Random(seed), 4)
        text = json.dumps(value, ensure_ascii=seed % 2 == 0, indent=seed % 3 or None)
        count = _separators(value)
        assert parse_untrusted(text.encode(), count) == parse_untrusted(text, count) == value
        if count:
            with pytest.raises(ValueError, match=f"more than {count - 1} values"):
                parse_untrusted(text, count - 1)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" + "{}," * (2 << 20) + "{}]",
        '""' * (2 << 20) + "," * 300_000,
        '\\"' * (2 << 20) + "," * 300_000,
        "," * 300_000,
        "," * 300_000 + '"' + "x" * (4 << 20),
        '"' * (4 << 20),
        "[]".encode("utf-16").decode("latin-1"),
    ],
    ids=["deep", "objects", "texts", "escapes", "commas", "open text", "quotes", "utf-16"],
)
def test_hostile_texts_are_refused(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError):
            parse_untrusted(given)


def test_a_large_text_within_a_value_is_no_large_value() -> None:
    text = "{[,:" * 250_000
    assert parse_untrusted(json.dumps([text, 1])) == [text, 1]


def test_values_of_tested_functions() -> None:
    assert decode_value(json.dumps(["l", *range(100_000)])) == list(range(100_000))
    with pytest.raises(ValueError, match="more than 2000000 values"):
        decode_value("[" + "[]," * 1_000_000 + "[]]")


@pytest.mark.parametrize(
    "report",
    [
        b"<a>" + b"<b/>" * 2_100_000 + b"</a>",
        b"<a " + b" ".join(b'b%d=""' % n for n in range(1_100_000)) + b"/>",
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'.encode("utf-16"),
    ],
    ids=["tags", "attributes", "entities"],
)
def test_reports_that_take_more_memory_than_their_bytes_are_refused(report: bytes) -> None:
    with pytest.raises(ValueError, match="report of pytest"):
        read_report(report)


def test_output_without_end_is_read_in_part() -> None:
    collector = Collector(100)
    endless = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert drain(endless, collector)
    finally:
        os.close(endless)
    assert collector.dropped > 0
