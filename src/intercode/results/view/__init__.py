"""Recorded episodes to look at: a page served on this machine, or one HTML file that needs nothing
else.

What agents, models and programs wrote is hostile to a page. It never becomes markup: the page gets
it as JSON, puts it in as text only, and forbids every script, style and connection but its own.
"""

from __future__ import annotations

from intercode.results.view.library import Library
from intercode.results.view.server import Server
from intercode.results.view.static_page import write_page

__all__ = ["Library", "Server", "write_page"]
