"""MCP servers whose tools an episode offers, in its sandbox or outside of it."""
