"""How recorded episodes of an environment are replayed and compared with their record."""
