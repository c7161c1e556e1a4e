"""Values and texts of others that are at the edge of JSON, TOML or a type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from intercode.core.decoding import bounded, decode_as, parse_json
from intercode.core.errors import ConfigError, DataError
from intercode.environments.base.policy.policy import read_policy
from intercode.results.export.bundle.receipt import read_receipt, receipt_path


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (str, 1 << 20_000, "must be a text, not a whole number of too many digits"),
        (Annotated[int, bounded(0, 9)], 1 << 20_000, "at most 9, not a whole number of too many"),
        (Literal[1, 2], True, "must be one of 1, 2, not True"),
    ],
    ids=["text", "number", "literal"],
)
def test_a_value_that_does_not_fit_is_named(kind: Any, value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        decode_as(kind, value)


def test_bytes_of_json_are_utf_8_and_a_byte_order_mark_is_allowed() -> None:
    assert parse_json("\ufeff[1]", "f") == parse_json("\ufeff[1]".encode(), "f") == [1]
    with pytest.raises(DataError, match=r"f, line 3: .*utf-8"):
        parse_json("[1]".encode("utf-16"), "f", 3)


def test_a_number_of_too_many_digits_in_toml_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    for digits in ("1" * 5000, "0x" + "f" * 5000):
        file.write_text(f"message = {digits}")
        with pytest.raises(ConfigError, match=r"policy\.toml is not TOML"):
            read_policy(file)


def test_a_receipt_with_lists_too_deep_is_not_a_receipt(tmp_path: Path) -> None:
    receipt_path(tmp_path / "b.tar").write_text("[" * 100_000)
    with pytest.raises(DataError, match="is not a receipt"):
        read_receipt(tmp_path / "b.tar", "")
