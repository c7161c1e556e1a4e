"""Searches for drawn tasks that repeat each other, or tasks of benchmarks."""
