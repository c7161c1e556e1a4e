"""The commands and options that this package adds to `intercode`."""
