"""Adapters for evaluation and training frameworks. Each is imported only where it is used."""
