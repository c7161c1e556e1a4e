"""A viewer of recorded episodes: a page served on this machine, or one HTML file without external
resources.

Agents, models and programs are untrusted. Their text never becomes markup: the page receives it as
JSON, inserts it as text only, and forbids every script, style and connection but its own.
"""

from __future__ import annotations

from intercode.results.view.library import Library
from intercode.results.view.server import LabelPage, ViewServer
from intercode.results.view.static_page import write_page

__all__ = ["LabelPage", "Library", "ViewServer", "write_page"]
