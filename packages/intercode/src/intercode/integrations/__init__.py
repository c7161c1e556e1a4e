"""Adapters for evaluation and training frameworks. Each is imported only where it is used.

The folder of a framework lists its public names itself, as importing it needs the framework.
"""

__all__: list[str] = []
