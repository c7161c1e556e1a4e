"""Adapters for frameworks that evaluate and train; each is imported only where it is used."""
