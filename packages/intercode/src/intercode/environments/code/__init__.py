"""The environment for code in any language of the table."""
