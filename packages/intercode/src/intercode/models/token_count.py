"""Counts the tokens of texts and conversations without a request."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from intercode.models.base import Message, Model, Tool

BYTES_PER_TOKEN = 3.5
TOKENS_PER_MESSAGE = 4
"""Tokens that a chat endpoint adds around a message (OpenAI's guide to counting tokens: 3, and the
role)."""

_PIECE = 1 << 16
"""Characters that are counted at once: the time of tiktoken grows faster than a word."""
_TABLE_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


class Calibration:
    """Corrects token estimates by the endpoint's own counts, for one episode.

    Each episode has its own, so that the history shown to its agent does not depend on other
    episodes that run at the same time.
    """

    def __init__(self) -> None:
        self.ratio = 1.0

    def update(self, estimated: int, counted: int | None) -> None:
        """Correct later estimates by the endpoint's count of a prompt; ignore an implausible
        count."""
        if counted and estimated > 0 and 0.1 <= counted / estimated <= 10:
            self.ratio = counted / estimated


def count_tokens(model: Model | None, content: str | Sequence[Message] | Mapping[str, Any]) -> int:
    """Return the number of tokens of a text or of messages for ``model``; never raises.

    Uses the model's own ``count_tokens`` if that knows, else tiktoken for OpenAI's models if it is
    installed and its table is on this machine (nothing is downloaded), else an estimate: bytes /
    3.5 plus 4 per message, scaled by the endpoint's own counts in this episode.

    >>> from intercode.models import count_tokens
    >>> count_tokens(None, "List the files.") > 0
    True
    """
    if model is None:
        return math.ceil(estimate_tokens(content))
    try:
        if (counted := model.count_tokens(content)) is not None:
            return int(counted)
    except Exception:  # a faulty counter of the user must not end an episode
        pass
    return math.ceil(estimate_tokens(content, model.name) * model.token_ratio)


def estimate_tokens(
    content: str | Sequence[Message] | Mapping[str, Any], name: str = "", tools: Sequence[Tool] = ()
) -> int:
    """Return the count before any calibration; the descriptions of ``tools`` are counted as
    well."""
    if isinstance(content, str):
        return _estimate_text(content, name)
    messages = [content] if isinstance(content, Mapping) else list(content)
    total = 3 if messages and not isinstance(content, Mapping) else 0  # the answer's beginning
    for message in messages:
        total += TOKENS_PER_MESSAGE + _estimate_text(str(message.get("content") or ""), name)
        if calls := message.get("tool_calls"):
            total += _estimate_text(json.dumps(calls, default=str), name)
        if provider := message.get("provider"):
            total += _estimate_text(json.dumps(provider, default=str), name)
    for tool in tools:
        described = [tool.name, tool.description, dict(tool.parameters)]
        total += TOKENS_PER_MESSAGE + _estimate_text(json.dumps(described, default=str), name)
    return total


def _estimate_text(text: str, name: str) -> int:
    encoding = _encoding(name.rpartition("/")[2]) if name else None
    if encoding is not None:
        pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
        return sum(len(encoding.encode(piece, disallowed_special=())) for piece in pieces)
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


@cache
def _encoding(name: str) -> Any:
    """Return tiktoken's encoding of a model if it is available offline, else None."""
    try:
        import tiktoken

        kind = tiktoken.encoding_name_for_model(name)
        if not _table_path(kind).is_file():
            return None
        return tiktoken.get_encoding(kind)
    except (ImportError, KeyError, ValueError, OSError):
        return None


def _table_path(kind: str) -> Path:
    """Return where tiktoken keeps the table of an encoding: under the SHA-1 of its address."""
    kind = {"o200k_harmony": "o200k_base", "p50k_edit": "p50k_base"}.get(kind, kind)
    values = (os.environ.get(v) for v in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    folder = next((v for v in values if v is not None), None)
    directory = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    return directory / hashlib.sha1(_TABLE_URL.format(kind).encode()).hexdigest()
