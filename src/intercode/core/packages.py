"""The names of packages that add to this one."""

LAB = "intercode-lab"
"""Task families, variants, audits, contamination and validity."""
