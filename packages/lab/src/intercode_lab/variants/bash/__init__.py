"""Variants of a Bash task: its file system with further and other files, dates, sizes and modes."""
