"""MCP servers whose tools an episode offers, in its sandbox or outside of it.

The client is our own: that of ``mcp`` takes 0.8 s and 37 MB to import, needs a thread with an event
loop, has other calls in lines 1 and 2, and refuses lone surrogates.
"""
