"""Decodes JSON that code in a sandbox has written, within a number of values.

A few bytes of JSON can make an object of hundreds of bytes, so a limit on bytes does not bound the
memory and the time that decoding takes.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_VALUES = 250_000
"""Values that a text may hold, unless another number is given."""
MAX_RETURNED_VALUES = 2_000_000
"""Values in what a tested function returns."""
_SEPARATORS = "[{,:"
"""Each value but the first follows one of these."""
_TO_SEPARATOR = re.compile(
    r'[^"\[{,:]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"?[^"\[{,:]*+)?[\[{,:]', re.DOTALL
)
"""What is before the next separator, with at most one text in quotes, and the separator. Where JSON
has two texts without a separator between them, it is broken."""


def parse_untrusted(text: str | bytes, most: int = MAX_VALUES) -> Any:
    """Return the value of a text in UTF-8. Raises ValueError for what is no text, for any text that
    is not JSON, has more than ``most`` values, or is nested too deeply."""
    if not isinstance(text, str | bytes):  # it was decoded from what code in a sandbox has written
        raise ValueError(f"it is no text, but {text!r:.80}")
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "surrogatepass")
    if _has_more(text, most):
        raise ValueError(f"it has more than {most} values")
    try:
        return json.loads(text)
    except RecursionError as e:
        raise ValueError("it is nested too deeply") from e


def _has_more(text: str, most: int) -> bool:
    """Return whether a text has more than ``most`` separators outside of quotes."""
    if sum(map(text.count, _SEPARATORS)) <= most:
        return False
    at = 0
    for _ in range(most):
        separator = _TO_SEPARATOR.match(text, at)  # a search would try each place of the rest
        if separator is None:
            return False
        at = separator.end()
    return _TO_SEPARATOR.match(text, at) is not None
