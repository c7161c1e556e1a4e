"""Tracebacks in records: which errors have one, and how long it gets."""

from __future__ import annotations

from intercode.core.errors import GoldError
from intercode.evaluation.tracebacks import MAX_CHARACTERS, traceback_metadata


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as e:
        return e


def test_an_error_of_this_package_has_none() -> None:
    assert traceback_metadata(raised(GoldError("no gold"))) == {}


def test_a_long_message_is_cut_in_its_middle() -> None:
    text = traceback_metadata(raised(ValueError("x" * 100_000 + "the end")))["traceback"]
    assert len(text) < MAX_CHARACTERS + 100 and " bytes left out ...]" in text
    assert text.startswith("Traceback") and text.endswith("the end")
